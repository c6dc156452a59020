"""Missing scores withhold a verdict when they are many, or befall one arm."""

from __future__ import annotations

import math

import pytest
from scipy.stats import beta, binom

from evaluators.score import UnscoredReason
from service.decision.policy import Criterion, Policy
from service.decision.tally import Tally, Triple
from service.decision.unscored import (
    PUT_ASIDE,
    had_they_been,
    log_e_uneven,
    lost,
    unscored_share,
    withheld_reason,
)

POLICY = Policy(criteria=(Criterion(evaluator="refusal"),))


def tally(n: int, lost: int) -> Tally:
    return Tally(units={Triple(1, 0, 0): n}, unscored={"shadow": lost})


def test_a_share_above_the_policys_withholds() -> None:
    assert withheld_reason(POLICY, tally(970, 30), None) == "unscored share 0.03 > 0.01"
    assert withheld_reason(POLICY, tally(990, 10), None) is None


def test_pairs_put_aside_before_any_answer_are_not_missing() -> None:
    aside = Tally(units={Triple(2, 0, 0): 1000}, unscored={"late": 900, "mixed_artifact": 70, "shadow": 3})
    assert lost(aside) == 3
    assert unscored_share(aside) == pytest.approx(3 / 2003)
    assert withheld_reason(POLICY, aside, tally(10_000, 15)) is None
    assert had_they_been(aside, Triple(1, 0, 1)).n == 2003
    assert {str(reason) for reason in UnscoredReason} >= PUT_ASIDE


def test_nothing_due_is_nothing_missing() -> None:
    assert unscored_share(Tally()) == 0
    assert withheld_reason(POLICY, Tally(), Tally()) is None


def test_losses_in_one_arm_withhold_though_they_are_few() -> None:
    reason = withheld_reason(POLICY, tally(9950, 50), tally(9995, 5))
    assert reason == "unscored share differs between arms: candidate 0.005, control 0.0005"
    assert withheld_reason(POLICY, tally(9950, 50), tally(9950, 50)) is None


def test_the_e_value_of_uneven_losses_is_a_mixture_of_binomials() -> None:
    # 7 losses of 8 in the candidate, which had half of the due pairs.
    found = math.exp(log_e_uneven(tally(93, 7), tally(99, 1)))
    mixture = beta(1, 1).expect(lambda p: binom.pmf(7, 8, p))
    assert found == pytest.approx(mixture / binom.pmf(7, 8, 0.5), rel=1e-8)


def test_losses_in_proportion_to_the_pairs_are_even() -> None:
    assert log_e_uneven(tally(900, 9), tally(100, 1)) < 0


def test_an_arm_without_pairs_cannot_be_compared() -> None:
    assert log_e_uneven(tally(100, 50), Tally()) == 0
    assert log_e_uneven(Tally(), tally(100, 50)) == 0


def test_missing_pairs_can_be_imagined_either_way() -> None:
    imagined = had_they_been(tally(10, 3), Triple(1, 0, 1))
    assert imagined == Tally(units={Triple(1, 0, 0): 10, Triple(1, 0, 1): 3}, unscored={"shadow": 3})
    assert had_they_been(Tally.of_pairs(n=5, harm=1, benefit=0), Triple(1, 1, 0)).n == 5
