"""A policy that could accept anything, or means nothing, cannot be built."""

from __future__ import annotations

from typing import Any

import pytest

from service.decision.policy import AlphaSpending, Asked, Criterion, Gate, LadderRule, Policy

CRITERIA = (Criterion(evaluator="refusal"),)


def test_production_asks_for_every_gate_and_spends_alpha_over_attempts() -> None:
    policy = Policy(criteria=CRITERIA)
    assert policy.gates == dict.fromkeys(Gate, Asked.REQUIRED)
    assert (policy.alpha_spending, policy.ladder_rule) == (
        AlphaSpending.OVER_ATTEMPTS,
        LadderRule.FIXED_SEQUENCE,
    )
    assert (policy.criteria[0].margin, policy.criteria[0].min_pairs) == (0.01, 300)


@pytest.mark.parametrize(
    "wrong",
    [
        {"criteria": ()},
        {"criteria": CRITERIA * 2},
        {"criteria": CRITERIA, "alpha_accept": 0.0},
        {"criteria": CRITERIA, "alpha_harm": 1.0},
        {"criteria": CRITERIA, "alpha_warn": float("nan")},
        {"criteria": CRITERIA, "max_unscored": 1.1},
        {"criteria": CRITERIA, "gates": dict.fromkeys(Gate, Asked.OFF)},
        {"criteria": CRITERIA, "gates": {Gate.QUALITY: Asked.REQUIRED}},
    ],
)
def test_a_policy_without_meaning_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Policy(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [{"margin": 0.0}, {"margin": 1.0}, {"min_pairs": 0}, {"baseline_failure_cap": 0.0}],
)
def test_a_criterion_without_meaning_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="refusal"):
        Criterion(evaluator="refusal", **wrong)
