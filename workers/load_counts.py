"""What running blocks of load adds to the metrics of its worker: of the generator, and of its blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from service.load.block import Block as Run
from service.store.load.load_blocks import Block
from workers.metrics import LOAD_BLOCKS, LOAD_INVALID, LOAD_LAG, LOAD_REQUESTS, LOAD_TOKENS, buckets, series

LAG_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2.0)
"""Upper bounds of the histogram: at 20 ms a block counts no more, unless the SLO's TTFT is long."""


def ended(model: str, blocks: Sequence[Block], ending: str) -> Mapping[str, int]:
    """Blocks of one lease, by the word of how it ended."""
    return Counter(
        series(LOAD_BLOCKS, model=model, tier=each.tier, part=each.part, ending=ending) for each in blocks
    )


def counted(model: str, run: Run) -> Mapping[str, int]:
    """Requests that were due, taken up and served in time, how late each was taken up, and tokens.

    A closed loop has no schedule to be late for.
    """
    figures, plan = run.figures, run.figures.plan
    place = {"model": model, "tier": plan.tier}
    found: dict[str, int] = {
        series(LOAD_TOKENS, **place, kind="prompt"): figures.spent_prompt_tokens,
        series(LOAD_TOKENS, **place, kind="output"): figures.spent_output_tokens,
    }
    for reason in figures.invalid:
        found[series(LOAD_INVALID, **place, reason=reason.partition(":")[0])] = 1
    if plan.concurrency is None:
        taken_up = sum(plan.counts(each.begun) for each in run.timed)
        for count, amount in (("due", figures.offered), ("taken_up", taken_up), ("met", figures.passed)):
            found[series(LOAD_REQUESTS, **place, count=count)] = amount
        found |= buckets(LOAD_LAG, [each.lag for each in run.timed], LAG_SECONDS)
    return found
