"""What the engines under load tell of themselves, before, during and after a block."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSummary:
    """All backends of a block together; what one of them does not tell is told of none."""

    kv_usage_mean: float | None = None
    kv_usage_most: float | None = None
    running_mean: float | None = None
    waiting_mean: float | None = None
    waiting_most: float | None = None
    preemptions: float | None = None
    """During the block, where the engines' counters tell."""
    prefix_hit_rate: float | None = None
    """Tokens of prompts found in the prefix cache, of those looked up during the block."""


def summary(samples: Iterable[EngineSample]) -> EngineSummary:
    """Of a block's samples; those before and after it count for the differences of counters alone."""
    backends: dict[str, list[EngineSample]] = {}
    for sample in samples:
        backends.setdefault(sample.backend, []).append(sample)
    during = [
        [each.load for each in sorted(seen, key=lambda each: each.at)[1:-1] or seen if each.load is not None]
        for seen in backends.values()
    ]
    queries, hits = (_gained(backends, name) for name in ("prefix_queries", "prefix_hits"))
    return EngineSummary(
        kv_usage_mean=_over(during, "kv_usage", _mean, _mean),
        kv_usage_most=_over(during, "kv_usage", max, max),
        running_mean=_over(during, "running", _mean, math.fsum),
        waiting_mean=_over(during, "waiting", _mean, math.fsum),
        waiting_most=_over(during, "waiting", max, math.fsum),
        preemptions=_gained(backends, "preemptions"),
        prefix_hit_rate=hits / queries if queries and hits is not None else None,
    )


Over = Callable[[Sequence[float]], float]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _over(during: Sequence[Sequence[EngineLoad]], name: str, times: Over, backends: Over) -> float | None:
    """One gauge over the samples of each backend, then over the backends."""
    found: list[float] = []
    for loads in during:
        told = [value for load in loads if (value := getattr(load, name)) is not None]
        if not told:
            return None
        found.append(times(told))
    return backends(found) if found else None


def _gained(backends: Mapping[str, Sequence[EngineSample]], name: str) -> float | None:
    """What a counter grew by between the first look and the last; None where one fell, as after a restart."""
    total = 0.0
    for samples in backends.values():
        ordered = sorted(samples, key=lambda each: each.at)
        first, last = ordered[0].load, ordered[-1].load
        before = None if first is None else getattr(first, name)
        after = None if last is None else getattr(last, name)
        if before is None or after is None or after < before or len(ordered) < 2:
            return None
        total += after - before
    return total if backends else None
