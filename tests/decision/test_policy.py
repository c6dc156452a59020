"""A policy that could accept anything, or means nothing, cannot be built."""

from __future__ import annotations

from typing import Any

import pytest

from service.decision.policy import (
    AlphaSpending,
    Asked,
    BaselineAfterApproval,
    Criterion,
    Gate,
    LadderRule,
    Policy,
    Role,
)

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
        {"criteria": CRITERIA, "alpha_strata": 0.0},
        {"criteria": CRITERIA, "tenant_share_cap": 0.0},
        {"criteria": CRITERIA, "max_unscored": 1.1},
        {"criteria": (Criterion(evaluator="refusal", role=Role.SHOWN),)},
        {"criteria": CRITERIA, "gates": dict.fromkeys(Gate, Asked.OFF)},
        {"criteria": CRITERIA, "gates": {Gate.QUALITY: Asked.REQUIRED}},
    ],
)
def test_a_policy_without_meaning_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Policy(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"margin": 0.0},
        {"margin": 1.0},
        {"min_pairs": 0},
        {"baseline_failure_cap": 0.0},
        {"min_pairs": 300, "max_pairs": 299},
    ],
)
def test_a_criterion_without_meaning_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="refusal"):
        Criterion(evaluator="refusal", **wrong)


def test_acceptance_is_held_to_half_of_alpha_when_approval_switches_the_baseline_off() -> None:
    kept = Policy(criteria=CRITERIA)
    off = Policy(criteria=CRITERIA, baseline_after_approval=BaselineAfterApproval.SWITCHED_OFF)
    assert (kept.alpha_approval, off.alpha_approval) == (0.05, 0.025)


def test_roles_say_which_criteria_decide_and_which_are_seen() -> None:
    by_role = {role: Criterion(evaluator=role.value, role=role) for role in Role}
    policy = Policy(criteria=tuple(by_role.values()))
    assert policy.decisive == (by_role[Role.DECISIVE],)
    assert policy.visible == (by_role[Role.DECISIVE], by_role[Role.SHOWN])
