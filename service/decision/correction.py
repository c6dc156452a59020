"""The difference as people see it: the evaluator's, rectified by labels of a known sample of its pairs.

Every pair has been judged by the evaluator, a few by people too. The evaluator's word alone decides how
likely a pair is to be labelled (discordant pairs always, concordant ones at the audit's share), so labels are
a stratified sample with known chances: the strata are what the evaluator said of both arms, N_h counted pairs
of which n_h have a label. Prediction-powered inference (Angelopoulos et al. 2023, Science 382:669;
stratified: Fisch et al. 2024, arXiv 2406.04291) adds to the mean of predictions f the mean error that labels
show,

    theta = mean f + sum_h (N_h/N) mean_labelled_h (D - f)

Labelled pairs are weighted by N_h/n_h, the inverse of their chance (Horvitz & Thompson 1952, J Am Stat Assoc
47:663), in place of the chance that was meant: what people have not come to yet is missing at random, since
they are given pairs in a random order. Within a stratum f is constant, so that

    theta = sum_h W_h m_h,    W_h = N_h/N,    m_h = mean of D over the labelled pairs of h

whatever the weight of the predictions (the lambda of PPI++, arXiv 2311.01453). The same figure follows from
Rogan and Gladen's formula, arm by arm, when sensitivity and specificity come from these very labels with
these weights. The two-phase variance is

    Var = (1/N) Var_h(m_h) + sum_h W_h^2 Var_h(D)/n_h

and as an interval, never of width 0: Tango's limits (l_h, u_h) of each m_h, and for the first term the wider
of its normal limit and Tango's limits of the raw difference, added in squares (MOVER, Zou & Donner 2008):

    L = theta - sqrt(s_1^2 + sum_h W_h^2 (m_h - l_h)^2),    U mirrored

All counts are divided by the design effect of the tally (`clusters`), since pairs of a conversation go
together. A pair that people could not decide, or disagree on, may have been anything: it widens the interval
by its worst case (Manski 1990, Am Econ Rev 80:319), and lies in no denominator.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from scipy.special import ndtri

from service.decision import tango
from service.decision.clusters import design_effect
from service.decision.tally import Tally
from service.decision.verdict import Interval

METHOD = "stratified prediction-powered inference (Tango limits, MOVER)"


class Cell(NamedTuple):
    """Whether each arm of a pair failed."""

    baseline: bool
    candidate: bool

    @property
    def difference(self) -> int:
        """D: 1 where only the candidate failed, -1 where only the baseline did."""
        return int(self.candidate) - int(self.baseline)


BOTH_PASSED, HARM, BENEFIT, BOTH_FAILED = (
    Cell(False, False),
    Cell(False, True),
    Cell(True, False),
    Cell(True, True),
)
DISCORDANT = (HARM, BENEFIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """What people say of a random sample of the counted pairs of one evaluator."""

    table: Mapping[tuple[Cell, Cell], int] = field(default_factory=dict)
    """Pairs by what the evaluator and by what people say."""
    open: Mapping[Cell, int] = field(default_factory=dict)
    """Pairs that people skipped or disagree on, by what the evaluator says."""
    by_two: int = 0
    """Pairs that two people or more labelled."""
    kappa: float | None = None
    """Of every two who labelled the same pair, pooled; see `agreement`."""

    def __post_init__(self) -> None:
        if any(count < 0 for counts in (self.table, self.open) for count in counts.values()):
            raise ValueError("labels are counts: none can be negative")

    @property
    def labelled(self) -> int:
        """Pairs of which people say what they are."""
        return sum(self.table.values())

    @property
    def undecided(self) -> int:
        """Pairs that were looked at and left open."""
        return sum(self.open.values())

    def of(self, cell: Cell) -> dict[Cell, int]:
        """What people say of the pairs of which the evaluator says `cell`."""
        return {truth: count for (said, truth), count in self.table.items() if said == cell and count}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rectified:
    """The difference by people's labels."""

    estimate: float
    """sum_h W_h m_h, in [-1, 1]; positive is worse."""
    interval: Interval


def pairs_by_cell(tally: Tally) -> dict[Cell, int]:
    """The counted pairs by what the evaluator says of them: N_h."""
    concordant = tally.n - tally.harm - tally.benefit
    return {
        BOTH_PASSED: concordant - tally.both_failed,
        HARM: tally.harm,
        BENEFIT: tally.benefit,
        BOTH_FAILED: tally.both_failed,
    }


def rectify(tally: Tally, labels: Labels, *, level: float) -> Rectified | None:
    """The difference by people's labels, and its two-sided limits; None without pairs or labels."""
    if not 0 < level < 1:
        raise ValueError(f"level must be in (0, 1), got {level}")
    if not tally.n or not labels.labelled:
        return None
    effect = design_effect(tally)
    estimate = squares = below = above = 0.0
    worst_below = worst_above = 0.0
    for cell, pairs in pairs_by_cell(tally).items():
        if not pairs:
            continue
        weight = pairs / tally.n
        stratum = _stratum(cell, labels, level, effect)
        estimate += weight * stratum.mean
        squares += weight * stratum.mean**2
        below += (weight * stratum.below) ** 2
        above += (weight * stratum.above) ** 2
        worst_below += weight * stratum.worst_below
        worst_above += weight * stratum.worst_above
    raw = (tally.harm - tally.benefit) / tally.n
    low, high = _limits(tally.harm / effect, tally.benefit / effect, tally.n / effect, level)
    quantile = -float(ndtri((1 - level) / 2))
    between = quantile * math.sqrt(max(0.0, squares - estimate**2) * effect / tally.n)
    lower = estimate - math.hypot(max(between, raw - low), math.sqrt(below)) - worst_below
    upper = estimate + math.hypot(max(between, high - raw), math.sqrt(above)) + worst_above
    return Rectified(
        estimate=estimate,
        interval=Interval(lower=max(-1.0, lower), upper=min(1.0, upper), level=level, method=METHOD),
    )


@lru_cache(maxsize=4096)
def _limits(harm: float, benefit: float, n: float, level: float) -> tuple[float, float]:
    """Tango's, found once for the same counts: a verdict is read far more often than a label comes in."""
    return tango.interval(harm, benefit, n, level)


class _Stratum(NamedTuple):
    """m_h with the distances to its limits, and what undecided pairs may move it at worst."""

    mean: float
    below: float
    above: float
    worst_below: float
    worst_above: float


def _stratum(cell: Cell, labels: Labels, level: float, effect: float) -> _Stratum:
    told, undecided = labels.of(cell), labels.open.get(cell, 0)
    labelled = sum(told.values())
    if not labelled:
        # Nobody said anything: the evaluator's word, and no bound at all on how wrong that is.
        mean = float(cell.difference)
        return _Stratum(mean, 1.0 + mean, 1.0 - mean, 0.0, 0.0)
    worse = sum(count for truth, count in told.items() if truth.difference > 0)
    better = sum(count for truth, count in told.items() if truth.difference < 0)
    mean = (worse - better) / labelled
    low, high = _limits(worse / effect, better / effect, labelled / effect, level)
    known = labelled / (labelled + undecided)
    return _Stratum(
        mean,
        known * (mean - low),
        known * (high - mean),
        (1 - known) * (1 + mean),
        (1 - known) * (1 - mean),
    )
