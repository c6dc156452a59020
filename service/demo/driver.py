"""The demo's clients: they send prompts through the proxy, a few at a time, from a thread of their own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import TracebackType
from typing import Self

import httpx

from service.demo.prompt import Prompt

PATIENCE = 120.0
"""Seconds that a client waits for the next byte."""
FAILURES_KEPT = 20


class Driver:
    """Sends prompts in order while the `with` block lasts, never beyond what `allow` has let go.

    Counts are written by its thread alone and may be read from any.
    """

    def __init__(self, prompts: Sequence[Prompt], *, proxy_url: str, model: str, clients: int) -> None:
        self._prompts = tuple(prompts)
        self._proxy_url = proxy_url
        self._model = model
        self._clients = clients
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main: asyncio.Task[None] | None = None
        self._allowed = asyncio.Semaphore(0)
        self._let_go = 0
        self._halted = False
        self._thread = threading.Thread(target=self._run, name="clients", daemon=True)
        self.started = 0
        self.answered = 0
        """With status 200, to the end."""
        self.failed = 0
        self.failures: list[str] = []
        """The first few, in words."""

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._main = self._loop.create_task(self._send_all())
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends at once; requests under way are hung up on."""
        if self._main is not None:
            self._tell(self._main.cancel)
        self._thread.join()

    @property
    def settled(self) -> int:
        """Requests that have ended, well or badly."""
        return self.answered + self.failed

    def halt(self) -> None:
        """Start no further request."""
        self._halted = True

    @property
    def all_sent(self) -> bool:
        return self.started == len(self._prompts)

    def allow(self, count: int) -> None:
        """Let requests start until so many have."""
        more = min(count, len(self._prompts)) - self._let_go
        if more > 0:
            self._let_go += more
            self._tell(partial(self._release, more))

    def _release(self, more: int) -> None:
        for _ in range(more):
            self._allowed.release()

    def _tell(self, call: Callable[[], object]) -> None:
        # A loop that has ended needs to be told nothing.
        with contextlib.suppress(RuntimeError):
            if self._loop is not None:
                self._loop.call_soon_threadsafe(call)

    def _run(self) -> None:
        assert self._loop is not None
        assert self._main is not None
        try:
            with contextlib.suppress(asyncio.CancelledError):
                self._loop.run_until_complete(self._main)
        finally:
            self._loop.close()

    async def _send_all(self) -> None:
        waiting = iter(self._prompts)
        async with (
            # Loopback only: no proxy that the environment names may come between.
            httpx.AsyncClient(base_url=self._proxy_url, timeout=PATIENCE, trust_env=False) as http,
            asyncio.TaskGroup() as clients,
        ):
            for _ in range(self._clients):
                clients.create_task(self._client(http, waiting))

    async def _client(self, http: httpx.AsyncClient, waiting: Iterator[Prompt]) -> None:
        """One client; after its last prompt it waits until it is told to end."""
        while True:
            await self._allowed.acquire()
            if self._halted:
                continue
            prompt = next(waiting)
            self.started += 1
            await self._send(http, prompt)

    async def _send(self, http: httpx.AsyncClient, prompt: Prompt) -> None:
        trouble = ""
        try:
            async with http.stream("POST", "/v1/chat/completions", json=prompt.body(self._model)) as answer:
                received = await answer.aread()
                if answer.status_code != httpx.codes.OK:
                    trouble = f"status {answer.status_code}: {received[:200].decode('utf-8', 'replace')}"
        except httpx.HTTPError as error:
            trouble = f"{type(error).__name__}: {error}"
        if not trouble:
            self.answered += 1
            return
        self.failed += 1
        if len(self.failures) < FAILURES_KEPT:
            self.failures.append(trouble)
