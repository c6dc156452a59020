"""Which rate to try next, on the way to a tier's best goodput. Pure: from the blocks so far to the next one.

Goodput rises with the rate until the tier misses its SLO, and then falls. So: upwards by a factor until it
has fallen (or the tier is over-saturated), downwards from a start that was too high, by ever longer steps,
and then the wider side of the best rate is halved, on a scale of logarithms, until its neighbours are near.
Where goodput was still rising at the highest rate allowed, the best was not reached, and the answer says so:
it is never extrapolated. Costs are measured afterwards, on fresh blocks: those of the sweep were selected for
being good.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from service.load.figures import BlockFigures

LOWER = 0.9
"""Of a rate: where costs are measured next if the tier turns out over-saturated at it."""
_SAME = 0.01
"""Goodputs that near are one; the lowest rate that has it is the best."""
_MOST_LAGGED = 2
"""Blocks at one rate that the generator may spoil before that rate is its limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Bounds of one sweep; rates in requests a second."""

    start: float
    least: float = 0.01
    most: float = 1000.0
    factor: float = 1.5
    """From one rate to the next, before the best is between two."""
    precision: float = 1.1
    """As near as the best rate's neighbours must be, as a ratio."""
    blocks: int = 24
    """That may be spent."""

    def __post_init__(self) -> None:
        if not 0 < self.least <= self.start <= self.most < math.inf:
            raise ValueError(f"0 < least <= start <= most: {self.least}, {self.start}, {self.most}")
        if not 1 < self.precision <= self.factor:
            raise ValueError(f"1 < precision <= factor: {self.precision}, {self.factor}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One block of a sweep."""

    rate: float
    goodput: float
    over_saturated: bool = False
    lagged: bool = False
    """The generator spoiled it; it says nothing of the tier."""


def tries(blocks: Sequence[BlockFigures]) -> list[Tried]:
    """The blocks of one tier's sweep; ValueError for one without a rate.

        goodput = rate x complete / offered x goodput / throughput x mean tokens of an answer, over all blocks

    How many requests came by chance, and how long their answers happened to be, differs between blocks by
    more than between neighbouring rates: it must not look like a tier that gives way.
    """
    complete = [each.offered - sum(each.failed.values()) for each in blocks]
    answers = sum(count for each, count in zip(blocks, complete, strict=True) if each.mean_output_tokens)
    tokens = math.fsum(
        (each.mean_output_tokens or 0.0) * count for each, count in zip(blocks, complete, strict=True)
    )
    mean = tokens / answers if answers else 0.0
    return [_tried(each, count, mean) for each, count in zip(blocks, complete, strict=True)]


def _tried(block: BlockFigures, complete: int, mean_tokens: float) -> Tried:
    rate = block.plan.rate
    if rate is None:
        raise ValueError("a block of a sweep has a rate")
    goodput = 0.0
    if block.throughput:
        goodput = rate * complete / block.offered * (block.goodput / block.throughput) * mean_tokens
    return Tried(rate=rate, goodput=goodput, over_saturated=block.over_saturated, lagged=block.lagged)


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """What a sweep found so far."""

    rate: float | None
    """None when no rate at all was steady."""
    goodput: float
    """At that rate, by the sweep's own blocks: flattering, and no ground for a cost."""
    reached: bool
    """Whether goodput was seen to be lower on both sides."""
    reason: str
    """In words, also of what was not reached."""


def next_rate(search: Search, tried: Sequence[Tried]) -> float | None:
    """The rate of the next block; None when the sweep is over."""
    if len(tried) >= search.blocks:
        return None
    known = _Known(search, tried)
    if not known.goodputs and not known.beyond:
        return search.start if search.start < known.ceiling else None
    if not any(known.goodputs.values()):
        # At no steady rate anything met the SLO. A tier that hangs is known in six steps to a hundredth.
        rates = {*known.goodputs, *known.beyond}
        lower = max(min(rates) / search.factor ** len(rates), search.least)
        return lower if lower < min(rates) else None
    assert known.best is not None, "some goodput is the most"
    below, above = known.below, known.above
    if above is None:
        return _allowed(known, min(known.best * search.factor, search.most))
    if below is None and known.best > search.least:
        return max(known.best / search.factor, search.least)
    up = above / known.best
    down = known.best / below if below is not None else 1.0
    if max(up, down) <= search.precision:
        return None
    if up >= down or below is None:
        return _allowed(known, math.sqrt(known.best * above))
    return _allowed(known, math.sqrt(below * known.best))


def best(search: Search, tried: Sequence[Tried]) -> Best:
    """The best rate among those tried, and whether it may be called the best."""
    known = _Known(search, tried)
    if known.best is None:
        if known.beyond:
            reason = f"not reached: over-saturated at every rate tried, down to {min(known.beyond):.3g}/s"
        elif known.limited:
            reason = f"not reached: the generator was too slow at {known.ceiling:.3g}/s"
        else:
            reason = "not reached: no block tells anything"
        return Best(rate=None, goodput=0.0, reached=False, reason=reason)
    found = f"{known.goodputs[known.best]:.4g} tokens/s within the SLO at {known.best:.3g} requests/s"
    below, above = known.below, known.above
    if not known.goodputs[known.best]:
        reached, reason = False, f"not reached: no token met the SLO, down to {min(known.goodputs):.3g}/s"
    elif above is None:
        slow = f"the generator was too slow at {known.ceiling:.3g}/s"
        limit = slow if known.limited else "no more was tried"
        rising = f"still rising at {known.best:.3g} requests/s"
        reached, reason = False, f"not reached: {rising}, and {limit}; {found}"
    elif below is None:
        reached, reason = False, f"not reached: no lower rate was tried; {found}, less at {above:.3g}/s"
    else:
        reached, reason = True, f"{found}, less at {below:.3g}/s and at {above:.3g}/s"
    return Best(rate=known.best, goodput=known.goodputs[known.best], reached=reached, reason=reason)


class _Known:
    """What the blocks tell together."""

    def __init__(self, search: Search, tried: Iterable[Tried]) -> None:
        blocks: dict[float, list[Tried]] = {}
        for each in tried:
            blocks.setdefault(each.rate, []).append(each)
        lagged = {rate for rate, seen in blocks.items() if sum(each.lagged for each in seen) >= _MOST_LAGGED}
        self.limited = bool(lagged)
        self.ceiling = min(lagged, default=math.inf)
        """A rate that the generator cannot keep."""
        told = {rate: [each for each in seen if not each.lagged] for rate, seen in blocks.items()}
        self.beyond = {
            rate for rate, seen in told.items() if seen and any(each.over_saturated for each in seen)
        }
        """Rates at which the tier did not keep up."""
        self.goodputs = {
            rate: fmean(each.goodput for each in seen)
            for rate, seen in told.items()
            if seen and rate not in self.beyond
        }
        self.best: float | None = None
        if self.goodputs:
            most = max(self.goodputs.values())
            self.best = min(rate for rate, found in self.goodputs.items() if found >= (1 - _SAME) * most)
        known = {*self.goodputs, *self.beyond}
        self.above = min((rate for rate in known if self.best is not None and rate > self.best), default=None)
        self.below = max((rate for rate in known if self.best is not None and rate < self.best), default=None)


def _allowed(known: _Known, rate: float) -> float | None:
    """The rate, unless the generator cannot keep it or it has been tried."""
    return None if rate >= known.ceiling or rate in known.goodputs or rate in known.beyond else rate
