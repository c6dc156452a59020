"""A criterion's e-values, in the directions its hypothesis asks for.

Non-inferiority looks one way. Equivalence looks both: both must pass, so the lesser e-value counts, while
harm either way is harm, by the mean of the two e-values, which is again an e-value. So a criterion counts
once among the M of the harm threshold whatever its hypothesis.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from service.decision.eprocess import (
    Differences,
    log_e_harm,
    log_e_noninferiority,
    log_factors,
    log_mean,
    log_mixtures,
)
from service.decision.grid import H5
from service.decision.policy import Criterion, Hypothesis
from service.decision.tally import Tally, Triple
from service.decision.unscored import had_they_been
from service.decision.verdict import LogE


@lru_cache(maxsize=1024)
def log_e_values(criterion: Criterion, tally: Tally) -> LogE:
    """The three e-values of the whole tally; whoever looks again at the same counts is told at once."""
    upward = Differences.of_tally(tally)
    noninferiority = log_e_noninferiority(upward, criterion.margin)
    harm, warn = log_e_harm(upward, criterion.margin), log_e_harm(upward, 0.0)
    if criterion.hypothesis is Hypothesis.NON_INFERIOR:
        return LogE(noninferiority=noninferiority, harm=harm, warn=warn)
    downward = upward.mirrored()
    return LogE(
        noninferiority=min(noninferiority, log_e_noninferiority(downward, criterion.margin)),
        harm=log_mean(harm, log_e_harm(downward, criterion.margin)),
        warn=log_mean(warn, log_e_harm(downward, 0.0)),
    )


def log_e_least_harm(criterion: Criterion, tally: Tally) -> float:
    """The harm e-value had every missing score spoken against it: in each direction, the other way round."""
    benefits, harms = had_they_been(tally, Triple(1, 0, 1)), had_they_been(tally, Triple(1, 1, 0))
    upward = log_e_harm(Differences.of_tally(benefits), criterion.margin)
    if criterion.hypothesis is Hypothesis.NON_INFERIOR:
        return upward
    return log_mean(upward, log_e_harm(Differences.of_tally(harms).mirrored(), criterion.margin))


def log_e_harms(criterion: Criterion, tallies: Collection[Tally], believed: Sequence[bool]) -> list[float]:
    """log E_HARM(margin) of many tallies at once, each with a pair; the least harm of those not believed."""
    upward = _harms(
        criterion,
        (
            tally if trusted else had_they_been(tally, Triple(1, 0, 1))
            for tally, trusted in zip(tallies, believed, strict=True)
        ),
        mirrored=False,
    )
    if criterion.hypothesis is Hypothesis.NON_INFERIOR:
        return upward
    downward = _harms(
        criterion,
        (
            tally if trusted else had_they_been(tally, Triple(1, 1, 0))
            for tally, trusted in zip(tallies, believed, strict=True)
        ),
        mirrored=True,
    )
    return [log_mean(up, down) for up, down in zip(upward, downward, strict=True)]


def _harms(criterion: Criterion, tallies: Iterable[Tally], *, mirrored: bool) -> list[float]:
    """One matrix product over all the conversations that occur, instead of one for every tally."""
    columns: dict[Triple, int] = {}
    entries = [
        (row, columns.setdefault(triple, len(columns)), count)
        for row, tally in enumerate(tallies)
        for triple, count in tally.units.items()
    ]
    counts: NDArray[np.float64] = np.zeros(
        (1 + max((row for row, _, _ in entries), default=-1), len(columns))
    )
    if entries:
        rows, places, amounts = zip(*entries, strict=True)
        counts[rows, places] = amounts
    values = np.array([(triple.harm - triple.benefit) / triple.pairs for triple in columns])
    factors = log_factors(values if mirrored else -values, -criterion.margin, H5)
    return [float(log_e) for log_e in log_mixtures(counts @ factors.T, H5)]
