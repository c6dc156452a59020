"""One way or both: what passes must pass in every direction asked for, and harm in any of them is harm."""

from __future__ import annotations

import math

import pytest

from service.decision.directions import log_e_harms, log_e_least_harm, log_e_values
from service.decision.eprocess import Differences, log_e_harm, log_e_noninferiority
from service.decision.policy import Criterion, Hypothesis
from service.decision.tally import Tally

ONE_WAY = Criterion(evaluator="refusal")
BOTH_WAYS = Criterion(evaluator="refusal", hypothesis=Hypothesis.EQUIVALENT)


def test_equivalence_shares_one_harm_e_value_between_its_directions() -> None:
    tally = Tally.of_pairs(n=500, harm=30, benefit=3)
    up = Differences.of_tally(tally)
    log_e = log_e_values(BOTH_WAYS, tally)
    mean = (math.exp(log_e_harm(up, 0.01)) + math.exp(log_e_harm(up.mirrored(), 0.01))) / 2
    assert math.exp(log_e.harm) == pytest.approx(mean)
    assert log_e.noninferiority == min(
        log_e_noninferiority(up, 0.01), log_e_noninferiority(up.mirrored(), 0.01)
    )


def test_noninferiority_looks_one_way() -> None:
    tally = Tally.of_pairs(n=500, harm=3, benefit=30)
    up = Differences.of_tally(tally)
    log_e = log_e_values(ONE_WAY, tally)
    assert log_e.harm == log_e_harm(up, 0.01)
    assert log_e.warn == log_e_harm(up, 0.0)
    assert log_e.noninferiority == log_e_noninferiority(up, 0.01)


@pytest.mark.parametrize("criterion", [ONE_WAY, BOTH_WAYS])
def test_missing_scores_can_only_weaken_harm(criterion: Criterion) -> None:
    for harm, benefit in ((60, 0), (0, 60)):
        tally = Tally.of_pairs(n=100, harm=harm, benefit=benefit)
        lost = tally + Tally(unscored={"timeout": 9})
        assert log_e_least_harm(criterion, tally) == log_e_values(criterion, tally).harm
        assert log_e_least_harm(criterion, lost) < log_e_values(criterion, lost).harm


def test_no_tallies_have_no_harm() -> None:
    assert log_e_harms(ONE_WAY, [], []) == log_e_harms(BOTH_WAYS, [], []) == []
