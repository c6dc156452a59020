"""What load runs are held to."""

from __future__ import annotations

from typing import Any

import pytest

from service.decision.policy import AlphaSpending, BaselineAfterApproval, Criterion, LadderRule, Policy
from service.decision.terms import DEFAULT_TERMS, Terms
from service.decision.thresholds import run_alpha, thresholds

CRITERIA = (Criterion(evaluator="refusal"),)


def alphas(runs: int = 4, *, attempt: int = 1, tiers: int = 1, **policy: Any) -> list[float]:
    limits = thresholds(Policy(criteria=CRITERIA, **policy), tiers=tiers, attempt=attempt)
    return [run_alpha(limits, run) for run in range(1, runs + 1)]


def test_the_defaults_are_the_contracts() -> None:
    assert (DEFAULT_TERMS.slo_margin, DEFAULT_TERMS.failure.weight, DEFAULT_TERMS.least_blocks) == (
        0.01,
        4,
        8,
    )


def test_all_runs_of_all_attempts_share_the_error_rate_of_a_gate() -> None:
    every = sum(sum(alphas(200, attempt=attempt)) for attempt in range(1, 200))
    assert 0.049 < every < 0.05


def test_the_jth_run_gets_its_share() -> None:
    first, second, third, _ = alphas(alpha_spending=AlphaSpending.FIRST_ATTEMPT)
    assert first == pytest.approx(0.05 * 0.6079271, rel=1e-6)
    assert (second, third) == pytest.approx((first / 4, first / 9))


def test_an_error_rate_of_the_gates_is_shared_as_that_of_acceptance() -> None:
    whole = alphas()[0]
    assert alphas(alpha_gates=0.01)[0] == pytest.approx(whole / 5)
    assert alphas(attempt=2)[0] == pytest.approx(whole / 4)
    assert alphas(tiers=4)[0] == whole
    assert alphas(tiers=4, ladder_rule=LadderRule.INDEPENDENT)[0] == pytest.approx(whole / 4)
    switched_off = BaselineAfterApproval.SWITCHED_OFF
    assert alphas(baseline_after_approval=switched_off)[0] == pytest.approx(whole / 2)
    assert alphas(attempt=2, alpha_spending=AlphaSpending.FIRST_ATTEMPT)[0] == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"slo_margin": 0.0},
        {"least_blocks": 1},
        {"most_baseline_misses": 0.0},
        {"power": 1.0},
        {"power": 0.7},
        {"least_power": 0.0},
        {"block_correlation": 1.5},
    ],
)
def test_impossible_terms_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must|at least 2"):
        Terms(**wrong)


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_impossible_error_rates_are_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha_gates"):
        Policy(criteria=CRITERIA, alpha_gates=alpha)
