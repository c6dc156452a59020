"""How wrong an instrument is against people, and the difference that it shows once that is taken into
account.

The instrument is the evaluator itself, or the judge. Pairs are labelled more often where the evaluator says
that the arms differ, so that each labelled pair stands for N_h/n_h pairs (`correction`): unweighted, an
evaluator would look far worse than it is. Both arms have errors of their own: nothing says that answers of a
quantized tier are as easily read as the baseline's. Shown, and never part of a finding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from service.decision.correction import Cell, pairs_by_cell
from service.decision.rogan_gladen import Rate, Seen, corrected_difference, corrected_share
from service.decision.tally import Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Of one instrument on both arms, in weighted pairs that add up to their effective number."""

    pairs: int
    """That both it and people labelled."""
    baseline: Seen
    candidate: Seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One labelled pair."""

    scored: Cell
    """What the evaluator says: its stratum."""
    said: Cell
    """What the instrument says."""
    truth: Cell | None = None
    """What people say, where they do."""


def errors_of(tally: Tally, readings: Iterable[Reading]) -> Errors:
    """Against people, of the readings that have both."""
    known = [each for each in readings if each.truth is not None]
    weights = _weights(tally, known)
    return Errors(
        pairs=len(known),
        baseline=_seen(weights, [(each, each.said.baseline, _truth(each).baseline) for each in known]),
        candidate=_seen(weights, [(each, each.said.candidate, _truth(each).candidate) for each in known]),
    )


def corrected_by_errors(tally: Tally, readings: Iterable[Reading], *, level: float) -> Rate | None:
    """The difference by the instrument, corrected arm by arm for its error; None where that is not known."""
    told = list(readings)
    errors = errors_of(tally, told)
    weights = _weights(tally, told)
    effective = _effective(weights, told)
    total = sum(weights[each.scored] for each in told)
    if not total:
        return None
    arms = []
    for seen, failed in (
        (errors.baseline, sum(weights[each.scored] for each in told if each.said.baseline)),
        (errors.candidate, sum(weights[each.scored] for each in told if each.said.candidate)),
    ):
        arms.append(corrected_share(failed / total * effective, effective, seen, level=level))
    baseline, candidate = arms
    if baseline is None or candidate is None:
        return None
    return corrected_difference(baseline, candidate)


def _truth(reading: Reading) -> Cell:
    assert reading.truth is not None, "only readings that people labelled too are held against them"
    return reading.truth


def _weights(tally: Tally, readings: Iterable[Reading]) -> Mapping[Cell, float]:
    """N_h / n_h: how many pairs a labelled one stands for."""
    labelled = Counter(each.scored for each in readings)
    return {cell: pairs / labelled[cell] for cell, pairs in pairs_by_cell(tally).items() if labelled[cell]}


def _effective(weights: Mapping[Cell, float], readings: Iterable[Reading]) -> float:
    """Pairs that would tell as much if all weighed the same (Kish 1965): (sum w)^2 / sum w^2."""
    found = [weights[each.scored] for each in readings]
    squares = sum(weight**2 for weight in found)
    return sum(found) ** 2 / squares if squares else 0.0


def _seen(weights: Mapping[Cell, float], told: list[tuple[Reading, bool, bool]]) -> Seen:
    total = sum(weights[each.scored] for each, _, _ in told)
    if not total:
        return Seen()
    scale = _effective(weights, [each for each, _, _ in told]) / total

    def amount(says: bool, is_so: bool) -> float:
        return scale * sum(
            weights[each.scored] for each, said, failed in told if (said, failed) == (says, is_so)
        )

    return Seen(
        caught=amount(True, True),
        missed=amount(False, True),
        cleared=amount(False, False),
        blamed=amount(True, False),
    )
