"""The processes of a drill: Valkey, proxy and worker as `tiergate up` starts them, on stores of their own.

Nothing here knows the addresses of the real stores: the environment's TIERGATE_* variables are left out.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from service.demo.places import own_environ
from service.drill.configuration import PROXY_SOCKET
from service.launch import Supervisor
from service.launch.everything import tiergate_parts
from service.launch.ports import free_ports
from service.launch.valkey import embedded_valkey
from service.settings import Settings, load
from service.settings.questions import question_of
from service.settings.units import Listen
from service.store.redis.captures import Captures, open_captures
from service.store.sql.database import Database, open_database
from service.store.verdicts.standing import Standing, read_account, read_standing

PARTS = ("worker", "proxy")
"""A verdict on read needs no API, and what no guard does is not needed for minutes."""
AT_ONCE = 8
"""Requests of the drill's clients under way."""
TICK = 1.0
"""Seconds between two words to whoever waits for answers."""
LOOK = 0.1
"""Seconds between two looks at the ledger."""


@dataclass(slots=True, kw_only=True)
class Chain:
    """A running chain."""

    settings: Settings
    """The drill's own."""
    db: Database
    captures: Captures
    socket: Path
    """Of the proxy."""
    sent: int = 0
    failures: list[str] = field(default_factory=list)
    """Requests that the proxy did not answer 200, in words."""

    def send(self, bodies: Sequence[Mapping[str, Any]], *, tick: Callable[[], None]) -> None:
        """All of them, some at a time; returns when the last is answered, and calls `tick` meanwhile."""
        asyncio.run(self._send_all(bodies, tick))

    async def _send_all(self, bodies: Sequence[Mapping[str, Any]], tick: Callable[[], None]) -> None:
        places = asyncio.Semaphore(AT_ONCE)
        async with (
            httpx.AsyncClient(
                base_url="http://localhost",
                transport=httpx.AsyncHTTPTransport(uds=str(self.socket)),
                timeout=self.settings.shadow.timeout_seconds,
                trust_env=False,
            ) as client,
            asyncio.TaskGroup() as group,
        ):
            waiting = {group.create_task(self._send(client, places, body)) for body in bodies}
            while waiting:
                _, waiting = await asyncio.wait(waiting, timeout=TICK)
                tick()

    async def _send(
        self, client: httpx.AsyncClient, places: asyncio.Semaphore, body: Mapping[str, Any]
    ) -> None:
        async with places:
            try:
                answer = await client.post("/v1/chat/completions", json=body)
            except httpx.HTTPError as error:
                self.failures.append(f"{type(error).__name__}: {error}")
                return
            self.sent += 1
            if answer.status_code != httpx.codes.OK:
                self.failures.append(f"{answer.status_code}: {answer.text[:300]}")

    def is_settled(self) -> bool:
        """Whether every request sent so far is judged and recorded, or given up."""
        account = read_account(self.db, self.captures, now=time.time())
        return account.seen >= self.sent and account.waiting == 0 and account.in_flight == 0

    def standings(self) -> Mapping[str, Standing]:
        """Every ladder as the API would show it."""
        question = question_of(self.settings, self.db)
        return {
            model: read_standing(self.db, ladder, question, now=time.time())
            for model, ladder in self.settings.ladders.items()
        }


@contextmanager
def chain(
    configuration: Path,
    environ: Mapping[str, str],
    *,
    admin: Listen,
    say: Callable[[str], None],
    hurry: Callable[[], bool] = lambda: False,
) -> Iterator[Chain]:
    """The chain of one configuration file, for as long as the block lasts; raises `StartFailed`."""
    directory = configuration.parent
    valkey = embedded_valkey(directory / "state")
    told = {
        **own_environ(environ),
        "TIERGATE_CONFIG": str(configuration),
        "TIERGATE_REDIS_URL": valkey.url,
        "PYTHONUNBUFFERED": "1",
    }
    settings = load(configuration, told)
    api, guard, worker, beat, loader = (Listen(host="127.0.0.1", port=port) for port in free_ports(5))
    parts = tiergate_parts(
        settings,
        proxy_admin=admin,
        api=api,
        guard=guard,
        worker=worker,
        beat=beat,
        load=loader,
        last_copy=lambda: None,
    )
    with ExitStack() as stack:
        # Made before the worker looks for it, so that two do not make it at once.
        db = open_database(settings.database_url)
        stack.callback(db.close)
        stack.enter_context(
            Supervisor(
                [valkey.part(), *(part for part in parts if part.name in PARTS)],
                directory / "logs",
                environ=told,
                say=say,
                hurry=hurry,
            )
        )
        captures = open_captures(settings.redis_url)
        stack.callback(captures.close)
        yield Chain(settings=settings, db=db, captures=captures, socket=directory / PROXY_SOCKET)
