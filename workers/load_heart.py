"""What beats beside a block of load: its lease, whether it must end, and the clients it may disturb.

A thread of its own, so that no waiting for SQL or a page of metrics holds up what is being timed. The loop
that sends asks `objection` once a second.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import httpx

from service.load.clients import ClientCounts, breach, client_counts
from service.store.load.jobs import JobState, cancelled
from service.store.load.load_blocks import LEASE_SECONDS, Block, hold_on
from service.store.load.turns import Ending
from service.store.sql.database import Database, StoreUnusable

log = logging.getLogger("tiergate.load")

BEAT_SECONDS = 1.0
LOOK_SECONDS = 2.0
"""Between two looks at SQL, and at the clients."""
PAGE_SECONDS = 3.0
MOST_UNSEEN = 3
"""Looks at the clients in a row that may fail: who cannot be watched is not loaded."""


class Unwatchable(RuntimeError):
    """No proxy tells how its clients fare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Why a block ends before its time."""

    ending: Ending | None = None
    """Of the whole job; None: the block is given back, and another worker begins it anew."""
    lost: bool = False
    """The lease is somebody else's: nothing is to be done any more."""


@dataclass(slots=True, kw_only=True)
class Clients:
    """The clients of the proxies at these addresses, against the TTFT that they are promised, by model."""

    addresses: Sequence[str]
    promises: Mapping[str, float]
    """Seconds by model."""
    since: dict[str, ClientCounts] = field(default_factory=dict)
    """What a change is measured from."""
    first: dict[str, ClientCounts] = field(default_factory=dict)
    latest: dict[str, ClientCounts] = field(default_factory=dict)
    unseen: int = 0

    def begin(self) -> None:
        """The first look; Unwatchable when there is nothing to see."""
        counts = self._look()
        self.since, self.first, self.latest = dict(counts), dict(counts), dict(counts)

    def follow(self) -> str:
        """Why the load must end: a promise is broken, or nobody can tell; empty when all is well."""
        try:
            self.latest = self._look()
        except Unwatchable as error:
            self.unseen += 1
            return str(error) if self.unseen >= MOST_UNSEEN else ""
        self.unseen = 0
        for model, now in self.latest.items():
            found = breach(self.since[model], now)
            if found:
                return f"clients of {model} lose their SLO: {found}"
            if found is not None or now.answers < self.since[model].answers:
                self.since[model] = now
        return ""

    @property
    def answers(self) -> int:
        """That clients were given since the first look, of all models."""
        return round(
            sum(max(0.0, now.answers - self.first[model].answers) for model, now in self.latest.items())
        )

    def _look(self) -> dict[str, ClientCounts]:
        pages = [_page(address) for address in self.addresses]
        found = {}
        for model, seconds in self.promises.items():
            try:
                counts = [client_counts(page, model, ttft_seconds=seconds) for page in pages]
            except ValueError as error:
                raise Unwatchable(
                    f"what {', '.join(self.addresses)} tells is no page of a proxy's metrics ({error}): "
                    "correct shadow_job.watch"
                ) from error
            found[model] = ClientCounts(
                answers=sum(each.answers for each in counts),
                late=sum(each.late for each in counts),
                failed=sum(each.failed for each in counts),
            )
        return found


def _page(address: str) -> str:
    try:
        answer = httpx.get(f"{address}/metrics", timeout=PAGE_SECONDS, trust_env=False)
        answer.raise_for_status()
    except httpx.HTTPError as error:
        raise Unwatchable(
            f"the proxy at {address} does not tell how its clients fare ({type(error).__name__}): correct "
            "shadow_job.watch"
        ) from error
    return answer.text


class Heart:
    """Keeps a block's lease for as long as the `with` block lasts, and finds out why it should not go on."""

    def __init__(
        self,
        db: Database,
        block: Block,
        *,
        stopping: Callable[[], bool],
        objecting: Callable[[], Ending | None],
        clients: Clients | None = None,
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        """`stopping`: this worker is to end; `objecting` says why the job may not go on, if it may not."""
        self._db = db
        self._block = block
        self._stopping = stopping
        self._objecting = objecting
        self._clients = clients
        self._lease_seconds = lease_seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="load-heart", daemon=True)
        self.why: Why | None = None
        """Set once, when it must end."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    async def objection(self) -> str:
        """For the loop that sends: why it must stop, empty while it may go on."""
        return "" if self.why is None else "told to stop"

    def _beat(self) -> None:
        renewed = looked = time.monotonic()
        every = min(LOOK_SECONDS, self._lease_seconds / 4)
        while not self._over.wait(min(BEAT_SECONDS, every)):
            if self._stopping():
                self.why = Why()
                return
            now = time.monotonic()
            if now - looked < every:
                continue
            looked = now
            try:
                self.why = self._look()
            except StoreUnusable as error:
                log.error("the lease of block %d waits: %s", self._block.number, error)
                if now - renewed > self._lease_seconds:
                    self.why = Why(lost=True)
            except Exception as error:
                # Without this thread nobody keeps the lease or watches the clients, and the load goes on.
                log.exception("block %d is watched by nobody", self._block.number)
                reason = f"whether the block may go on cannot be told: {type(error).__name__}: {error}"
                self.why = Why(ending=Ending(state=JobState.FAILED, reason=reason))
            else:
                renewed = now
            if self.why is not None:
                return

    def _look(self) -> Why | None:
        grip = hold_on(self._db, self._block, now=time.time(), seconds=self._lease_seconds)
        if not grip.held:
            return Why(lost=True)
        if grip.cancelled_by is not None:
            return Why(ending=Ending(state=JobState.CANCELLED, reason=cancelled(grip.cancelled_by)))
        if (ending := self._objecting()) is not None:
            return Why(ending=ending)
        if self._clients is not None and (broken := self._clients.follow()):
            return Why(ending=Ending(state=JobState.ABORTED, reason=broken))
        return None
