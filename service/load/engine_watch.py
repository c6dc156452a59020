"""What the engines under load tell of themselves, before, during and after a block.

Before it they come to rest. A request that was given up is closed, but an engine may notice late: llama.cpp
looks about once a second at each of the few that it has read, and only then reads others, so that a hundred
of them held up the next one by 12 to 15 s (measured, on two busy cores).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress

from service.engines.load import EngineLoad, engine_load, own_words
from service.load.figures import EngineSample
from service.load.servers import Server

METRICS_PATH = "/metrics"
EVERY_SECONDS = 5.0
REST_LOOK_SECONDS = 0.25
"""Between two looks at an engine that is to come to rest."""
STALE_SECONDS = 5.0
"""Of metrics that do not move: SGLang's gauges are those of its last work for up to 30 s."""


class EngineWatch:
    """Looks at every backend's metrics, by `look`, or every few seconds."""

    def __init__(self, servers: Sequence[Server]) -> None:
        self._servers = servers
        self._seen: list[tuple[float, str, EngineLoad | None]] = []

    def samples(self, start: float) -> tuple[EngineSample, ...]:
        """All so far, with times since `start`."""
        return tuple(
            EngineSample(at=round(at - start, 3), backend=backend, load=load)
            for at, backend, load in sorted(self._seen, key=lambda seen: seen[0])
        )

    async def look(self) -> None:
        """One sample of each; of who does not answer, one that says so."""
        await asyncio.gather(*(self._look_at(server) for server in self._servers))

    async def rest(self, seconds: float) -> tuple[str, ...]:
        """Until none tells of requests that it works on or has waiting; the last sample of each is kept.

        Those who still did after `seconds`, or could not even tell for being busy; 0 asks nobody to rest. Who
        tells nothing, or says the same while nothing moves, is not waited for.
        """
        if not seconds:
            await self.look()
            return ()
        until = time.monotonic() + seconds
        busy = await asyncio.gather(*(self._rest(server, until) for server in self._servers))
        return tuple(server.url for server, is_busy in zip(self._servers, busy, strict=True) if is_busy)

    async def follow(self, seconds: float = EVERY_SECONDS) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(seconds)
            await self.look()

    async def _look_at(self, server: Server) -> None:
        page = ""
        with suppress(OSError, TimeoutError):
            page = await server.page(METRICS_PATH)
        self._saw(server, page)

    def _saw(self, server: Server, page: str) -> EngineLoad | None:
        load = engine_load(page)
        self._seen.append((time.monotonic(), server.url, load))
        return load

    async def _rest(self, server: Server, until: float) -> bool:
        """Whether it is busy still, when it need not be waited for any longer."""
        told, moved = "", time.monotonic()
        while True:
            page, timed_out = "", False
            try:
                page = await server.page(METRICS_PATH)
            except TimeoutError:
                timed_out = True  # it has no thread left for us
            except OSError:
                pass
            now = time.monotonic()
            if timed_out or (words := own_words(page)) != told:
                told, moved = "" if timed_out else words, now
            load = engine_load(page)
            busy = timed_out or (load is not None and (load.running or 0.0) + (load.waiting or 0.0) > 0)
            if not busy or now >= until or now - moved >= STALE_SECONDS:
                self._saw(server, page)
                return busy and now >= until
            await asyncio.sleep(REST_LOOK_SECONDS)
