"""What the engines under load tell of themselves, before, during and after a block."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress

from service.engines.load import EngineLoad, engine_load
from service.load.figures import EngineSample
from service.load.servers import Server

METRICS_PATH = "/metrics"
EVERY_SECONDS = 5.0


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

    async def follow(self, seconds: float = EVERY_SECONDS) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(seconds)
            await self.look()

    async def _look_at(self, server: Server) -> None:
        load: EngineLoad | None = None
        with suppress(OSError, TimeoutError):
            load = engine_load(await server.page(METRICS_PATH))
        self._seen.append((time.monotonic(), server.url, load))
