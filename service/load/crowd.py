"""The most requests at once that keep TPOT, and the curve on the way there. Pure.

    kept at N: P95 of TPOT with N requests at once <= .8 of its SLO

In a closed loop of N there are always N requests under way, so N is what an engine's `max-num-seqs` would
allow: the largest N that keeps it is where to start with that flag. Doubling until TPOT is too high, then
halving the gap. Where the most that was tried still keeps it, or one at a time does not, it was not reached.

An engine takes so many in and lets the others wait, where TPOT knows nothing of them. So an N that keeps TPOT
and of which nobody met the SLO, since all first tokens were late, tells nothing of N at work; nor would more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from service.capacity.batch import edges, limit_told, tpot_limit
from service.load.figures import BlockFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One block with so many requests at once."""

    concurrency: int
    tpot_p95: float | None
    """Seconds; None when so many requests failed that there is none."""
    throughput: float
    """Output tokens a second, of complete answers."""
    valid: bool = True
    in_time: bool = True
    """Whether any of them met the SLO."""

    @classmethod
    def of(cls, block: BlockFigures) -> Step:
        """ValueError for a block without a concurrency."""
        if block.plan.concurrency is None:
            raise ValueError("a step has a concurrency")
        return cls(
            concurrency=block.plan.concurrency,
            tpot_p95=block.tpot.p95,
            throughput=block.throughput,
            valid=block.valid,
            in_time=block.passed > 0,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """What the steps show together."""

    concurrency: int | None
    """The most that keeps TPOT; None when not even one does, or nothing is known."""
    reached: bool
    """Whether more was seen not to keep it."""
    limit_seconds: float
    """What P95 of TPOT must keep to."""
    curve: tuple[Step, ...]
    """Valid steps, by concurrency."""
    reason: str


def next_concurrency(
    steps: Sequence[Step], *, tpot_seconds: float, most: int, blocks: int = 16, precision: float = 1.05
) -> int | None:
    """How many at once the next block has; None when the search is over.

    `precision`: the ratio of the least that does not keep it to the most that does, at which to stop.
    """
    if most < 1 or tpot_seconds <= 0:
        raise ValueError(f"most must be at least 1 and TPOT above 0 s, got {most} and {tpot_seconds}")
    if len(steps) >= blocks:
        return None
    keeps, fails = _edges(steps, tpot_seconds)
    if fails is None:
        following = 1 if keeps is None else min(2 * keeps, most)
        late = _late(steps, tpot_seconds)
        if late is not None and following >= late:
            return None
        return _untried(steps, following if following != keeps else None)
    if keeps is None:
        return _untried(steps, fails // 2 or None)
    if fails - keeps <= 1 or fails / keeps <= precision:
        return None
    return _untried(steps, round(math.sqrt(keeps * fails)))


def crowd(steps: Sequence[Step], *, tpot_seconds: float) -> Crowd:
    """The most at once that keeps TPOT among the steps, and whether it may be called the most."""
    keeps, fails = _edges(steps, tpot_seconds)
    limit = tpot_limit(tpot_seconds)
    curve = tuple(sorted((step for step in steps if step.valid), key=lambda step: step.concurrency))
    bound = limit_told(tpot_seconds)
    late = _late(steps, tpot_seconds)
    more = f"of {late} at once none met the SLO, all first tokens being late"
    if keeps is None:
        nothing = "no block tells anything" if late is None else more
        reason = nothing if fails is None else f"{fails} at once does not keep {bound}"
        return Crowd(
            concurrency=None, reached=False, limit_seconds=limit, curve=curve, reason=f"not reached: {reason}"
        )
    if fails is None:
        reason = (
            f"not reached: {keeps} at once keeps {bound}, and {'no more was tried' if late is None else more}"
        )
        return Crowd(concurrency=keeps, reached=False, limit_seconds=limit, curve=curve, reason=reason)
    reason = f"{keeps} at once keeps {bound}; {fails} does not"
    return Crowd(concurrency=keeps, reached=True, limit_seconds=limit, curve=curve, reason=reason)


def _edges(steps: Sequence[Step], tpot_seconds: float) -> tuple[int | None, int | None]:
    """Those of the valid steps that tell of so many at work."""
    limit = tpot_limit(tpot_seconds)
    told = ((step.concurrency, step.tpot_p95) for step in steps if step.valid and not _waits(step, limit))
    return edges(told, tpot_seconds=tpot_seconds)


def _late(steps: Sequence[Step], tpot_seconds: float) -> int | None:
    """The least at once of which all that can be told is that they waited."""
    limit = tpot_limit(tpot_seconds)
    return min((step.concurrency for step in steps if step.valid and _waits(step, limit)), default=None)


def _waits(step: Step, limit: float) -> bool:
    return not step.in_time and step.tpot_p95 is not None and step.tpot_p95 <= limit


def _untried(steps: Sequence[Step], concurrency: int | None) -> int | None:
    """Not what a valid block has told already, and not what was spoiled twice."""
    if concurrency is None:
        return None
    seen = [step for step in steps if step.concurrency == concurrency]
    return None if len(seen) >= 2 or any(step.valid for step in seen) else concurrency
