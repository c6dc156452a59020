"""One cell of a workload matrix as a block of load: what is sent, and what the block tells of the cell."""

from __future__ import annotations

from collections.abc import Iterable

from service.capacity.matrix import Spot
from service.capacity.matrix_cells import Cell, Times
from service.engines.looks import fullest, grown, hit_rate, mean, summed
from service.load.block import Block
from service.load.figures import Quantiles
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
    usage = fullest(seen)
    return Cell(
        prompt=spot.row.prompt,
        batch_tokens=spot.row.batch_tokens,
        concurrency=spot.concurrency,
        offered=told.offered,
        passed=told.passed,
        failed=dict(told.failed),
        prompt_tokens=mean(_prompts(window)),
        output_tokens=told.mean_output_tokens,
        repeated=told.repeated,
        ttft=_times(told.ttft),
        tpot=_times(told.tpot),
        throughput=told.throughput,
        goodput=told.goodput,
        running=mean(summed(seen, lambda load: load.running)),
        waiting=mean(summed(seen, lambda load: load.waiting)),
        kv_usage=usage,
        kv_bytes=None if usage is None or kv_bytes is None else usage * kv_bytes,
        preemptions=grown(engine, lambda load: load.preemptions),
        evictions=grown(engine, lambda load: load.evicted_tokens),
        prefix_rate=hit_rate(engine),
        memory=max(summed(seen, lambda load: load.resident_bytes), default=None),
        invalid=told.invalid,
    )


def _prompts(window: Iterable[Timed]) -> list[float]:
    return [float(each.prompt_tokens) for each in window if each.prompt_tokens is not None]


def _times(told: Quantiles) -> Times:
    return Times(p50=told.p50, p95=told.p95, lower=told.p95_lower, upper=told.p95_upper)
