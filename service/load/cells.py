"""One cell of a workload matrix as a block of load: what is sent, and what the block then tells of the cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from service.capacity.matrix import Cell, Spot, Times
from service.engines.load import EngineLoad
from service.load.block import Block
from service.load.figures import EngineSample, Quantiles
from service.load.plan import Arrivals, BlockPlan, Part
from service.load.timed import Timed

COOL_DOWN_SECONDS = 30.0
LEAST_PROMPTS, MOST_PROMPTS, PROMPTS_EACH = 64, 1024, 16
"""Distinct prompts of a cell: so many for each request at once, within these."""
MOST_CHARACTERS = 64 * 1024 * 1024
"""Of all prompts of a cell: those of a hundred thousand tokens are fewer, and repeat."""


def plan_of(tier: str, spot: Spot, *, seed: int, warm_up_seconds: float, window_seconds: float) -> BlockPlan:
    """A closed loop, with a seed of its own for each cell."""
    return BlockPlan(
        tier=tier,
        part=Part.CONCURRENCY,
        arrivals=Arrivals.CLOSED,
        concurrency=spot.concurrency,
        seed=seed,
        warm_up_seconds=warm_up_seconds,
        window_seconds=window_seconds,
        cool_down_seconds=COOL_DOWN_SECONDS,
    )


def prompts_for(concurrency: int, *, characters: int) -> int:
    """How many distinct prompts of so many characters a cell gets; what is sent more often is told."""
    wanted = min(MOST_PROMPTS, max(LEAST_PROMPTS, PROMPTS_EACH * concurrency))
    return max(1, min(wanted, MOST_CHARACTERS // max(1, characters)))


def cell_of(spot: Spot, block: Block, *, kv_bytes: float | None = None) -> Cell:
    """What a block showed of its cell; `kv_bytes` is how many all caches of the tier have."""
    told, plan = block.figures, block.figures.plan
    window = [each for each in block.timed if plan.counts(each.scheduled)]
    engine = told.engine
    seen = [each for each in engine if plan.warm_up_seconds <= each.at <= plan.seconds]
    usage = _most(_each(seen, lambda load: load.kv_usage))
    queries, hits = (_grown(engine, name) for name in ("prefix_queries", "prefix_hits"))
    return Cell(
        prompt=spot.row.prompt,
        batch_tokens=spot.row.batch_tokens,
        concurrency=spot.concurrency,
        offered=told.offered,
        passed=told.passed,
        failed=dict(told.failed),
        prompt_tokens=_mean(_prompts(window)),
        output_tokens=told.mean_output_tokens,
        repeated=told.repeated,
        ttft=_times(told.ttft),
        tpot=_times(told.tpot),
        throughput=told.throughput,
        goodput=told.goodput,
        running=_mean(_sums(seen, lambda load: load.running)),
        waiting=_mean(_sums(seen, lambda load: load.waiting)),
        kv_usage=None if usage is None else min(1.0, usage),
        kv_bytes=None if usage is None or kv_bytes is None else min(1.0, usage) * kv_bytes,
        preemptions=_grown(engine, "preemptions"),
        evictions=_grown(engine, "evicted_tokens"),
        prefix_rate=min(1.0, hits / queries) if queries and hits is not None else None,
        memory=_most(_sums(seen, lambda load: load.resident_bytes)),
        invalid=told.invalid,
    )


def _prompts(window: Iterable[Timed]) -> list[float]:
    return [float(each.prompt_tokens) for each in window if each.prompt_tokens is not None]


def _times(told: Quantiles) -> Times:
    return Times(p50=told.p50, p95=told.p95, lower=told.p95_lower, upper=told.p95_upper)


Read = Callable[[EngineLoad], float | None]


def _each(samples: Iterable[EngineSample], read: Read) -> list[float]:
    loads = [each.load for each in samples if each.load is not None]
    return [number for load in loads if (number := read(load)) is not None]


def _sums(samples: Sequence[EngineSample], read: Read) -> list[float]:
    """At each moment over all backends; of each its latest look, none before all have told."""
    backends = {each.backend for each in samples}
    latest: dict[str, float] = {}
    found = []
    for each in samples:
        number = None if each.load is None else read(each.load)
        if number is None:
            latest.pop(each.backend, None)
            continue
        latest[each.backend] = number
        if len(latest) == len(backends):
            found.append(math.fsum(latest.values()))
    return found


def _grown(samples: Sequence[EngineSample], name: str) -> float | None:
    """What counters added from the look before the block to the one after it; one that fell began anew."""
    before: dict[str, float] = {}
    total, known = 0.0, False
    for each in samples:
        number = None if each.load is None else getattr(each.load, name)
        if number is None:
            continue
        last = before.get(each.backend)
        if last is not None:
            total += number - last if number >= last else number
            known = True
        before[each.backend] = number
    return total if known else None


def _mean(numbers: Sequence[float]) -> float | None:
    return math.fsum(numbers) / len(numbers) if numbers else None


def _most(numbers: Sequence[float]) -> float | None:
    return max(numbers, default=None)
