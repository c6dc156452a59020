"""What e-values are compared with: each error rate shared by all that may use it up."""

from __future__ import annotations

import math
from typing import Any

import pytest

from service.decision.policy import AlphaSpending, BaselineAfterApproval, Criterion, LadderRule, Policy, Role
from service.decision.thresholds import run_alpha, thresholds

REFUSAL = Criterion(evaluator="refusal")


def policy_of(criterion: Criterion, **changes: Any) -> Policy:
    return Policy(**({"criteria": (criterion,), "alpha_spending": AlphaSpending.FIRST_ATTEMPT} | changes))


@pytest.mark.parametrize(("tiers", "threshold"), [(1, 60), (2, 120)])
def test_harm_is_held_to_all_criteria_of_all_tiers(tiers: int, threshold: int) -> None:
    criteria = tuple(Criterion(evaluator=name) for name in ("a", "b", "c"))
    limits = thresholds(Policy(criteria=criteria), tiers=tiers, attempt=1)
    assert math.exp(limits.harm) == pytest.approx(threshold)


def test_each_attempt_gets_its_share_of_alpha() -> None:
    policy = policy_of(REFUSAL, alpha_spending=AlphaSpending.OVER_ATTEMPTS)
    first, second = (thresholds(policy, tiers=1, attempt=attempt) for attempt in (1, 2))
    assert first.alpha_accept == pytest.approx(0.05 * 6 / math.pi**2)
    assert second.alpha_accept == pytest.approx(first.alpha_accept / 4)
    assert math.exp(first.accept) == pytest.approx(32.9, abs=0.01)


def test_independent_tiers_share_alpha() -> None:
    limits = thresholds(policy_of(REFUSAL, ladder_rule=LadderRule.INDEPENDENT), tiers=3, attempt=1)
    assert math.exp(limits.accept) == pytest.approx(60)


def test_criteria_that_decide_nothing_share_no_error_rate() -> None:
    others = tuple(Criterion(evaluator=role.value, role=role) for role in Role if role is not Role.DECISIVE)
    limits = thresholds(policy_of(REFUSAL, criteria=(REFUSAL, *others)), tiers=2, attempt=1, strata=10)
    assert math.exp(limits.harm) == pytest.approx(2 / 0.05)
    assert math.exp(limits.strata) == pytest.approx(2 * 10 / 0.01)


def test_strata_have_an_error_rate_of_their_own() -> None:
    few, many = (thresholds(policy_of(REFUSAL), tiers=1, attempt=1, strata=strata) for strata in (1, 50))
    assert (few.harm, few.accept) == (many.harm, many.accept)
    assert math.exp(many.strata - few.strata) == pytest.approx(50)


def test_switching_the_baseline_off_halves_the_error_rates_of_acceptance_and_gates_alone() -> None:
    kept = thresholds(policy_of(REFUSAL), tiers=1, attempt=1)
    off = thresholds(
        policy_of(REFUSAL, baseline_after_approval=BaselineAfterApproval.SWITCHED_OFF), tiers=1, attempt=1
    )
    assert (kept.alpha_accept, off.alpha_accept) == (0.05, 0.025)
    assert (kept.alpha_gates, off.alpha_gates) == (0.05, 0.025)
    assert math.exp(off.accept) == pytest.approx(40)
    assert (kept.harm, kept.strata, kept.warn) == (off.harm, off.strata, off.warn)


def test_every_error_rate_is_the_one_of_its_own_threshold() -> None:
    policy = policy_of(
        REFUSAL, alpha_accept=0.1, alpha_harm=0.02, alpha_warn=0.04, alpha_strata=0.005, alpha_gates=0.08
    )
    limits = thresholds(policy, tiers=1, attempt=1)
    found = [math.exp(-limit) for limit in (limits.accept, limits.harm, limits.warn, limits.strata)]
    assert found == pytest.approx([0.1, 0.02, 0.04, 0.005])
    assert (limits.alpha_accept, limits.alpha_gates) == (0.1, 0.08)
    assert run_alpha(limits, 1) == pytest.approx(0.08 * 6 / math.pi**2)
    assert run_alpha(limits, 3) == pytest.approx(0.08 * 6 / math.pi**2 / 9)
