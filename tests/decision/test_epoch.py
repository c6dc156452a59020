"""An epoch's name depends on every fact and on nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from service.decision.epoch import epoch_id, policy_facts
from service.decision.policy import (
    AlphaSpending,
    Asked,
    BaselineAfterApproval,
    Criterion,
    Gate,
    Hypothesis,
    LadderRule,
    Policy,
    Role,
    Units,
)


def test_the_order_of_the_facts_does_not_matter() -> None:
    assert epoch_id({"model": "m", "recipe": {"kv": "fp8", "w": "int4"}}) == epoch_id(
        {"recipe": {"w": "int4", "kv": "fp8"}, "model": "m"}
    )


def test_coming_back_to_a_recipe_comes_back_to_its_name() -> None:
    # Fixed on purpose: a change of this number would orphan all stored evidence.
    assert epoch_id({"model": "m"}) == "548f58d1c36c715b44f0863472074a97c448d5b8d18164b92adf55592b127f86"


@pytest.mark.parametrize(
    "other",
    [
        {"a": 1, "b": [1, 2]},
        {"a": 2, "b": [1, 2], "c": None},
        {"a": 1, "b": [2, 1], "c": None},
        {"a": "1", "b": [1, 2], "c": None},
        {"a": True, "b": [1, 2], "c": None},
        {"a": 1, "b": [1, 2], "c": "null"},
    ],
)
def test_every_fact_counts(other: dict[str, object]) -> None:
    assert epoch_id({"a": 1, "b": [1, 2], "c": None}) != epoch_id(other)


def test_sequences_and_enums_are_their_values() -> None:
    assert epoch_id({"h": Hypothesis.EQUIVALENT, "t": (1, 0.5)}) == epoch_id(
        {"h": "equivalent", "t": [1, 0.5]}
    )


@pytest.mark.parametrize(
    ("fact", "error"),
    [
        ({"a": float("nan")}, ValueError),
        ({"a": float("inf")}, ValueError),
        ({"a": {1: 2}}, TypeError),
        ({"a": {1, 2}}, TypeError),
        ({"a": b"bytes"}, TypeError),
    ],
)
def test_what_cannot_be_compared_names_no_epoch(fact: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match="fact"):
        epoch_id(fact)


def test_a_policy_changes_the_epoch_where_it_changes_the_evidence() -> None:
    def named(**changes: Any) -> str:
        asked = {
            "criteria": (Criterion(evaluator="refusal"), Criterion(evaluator="structured_output"))
        } | changes
        return epoch_id(policy_facts(Policy(**asked)))

    criteria = (Criterion(evaluator="structured_output"), Criterion(evaluator="refusal"))
    assert named(criteria=criteria) == named()
    assert named(max_unscored=0.5) == named()
    assert named(tenant_share_cap=0.5, longest_seconds=60.0) == named()
    shown, muted = (Criterion(evaluator=role.value, role=role) for role in (Role.SHOWN, Role.MUTED))
    assert named(criteria=(*criteria, shown, muted)) == named()
    assert named(gates=dict.fromkeys(Gate, Asked.OFF) | {Gate.QUALITY: Asked.REQUIRED}) == named()
    for change in (
        {"criteria": (Criterion(evaluator="refusal", margin=0.02), criteria[0])},
        {"criteria": (Criterion(evaluator="refusal", hypothesis=Hypothesis.EQUIVALENT), criteria[0])},
        {"alpha_accept": 0.025},
        {"alpha_harm": 0.025},
        {"alpha_warn": 0.025},
        {"alpha_strata": 0.025},
        {"baseline_after_approval": BaselineAfterApproval.SWITCHED_OFF},
        {"units": Units.CLOSED_CONVERSATIONS},
        # A criterion that fails is not got rid of with its evidence kept.
        {"criteria": (Criterion(evaluator="refusal"), replace(criteria[0], role=Role.SHOWN))},
        {"alpha_spending": AlphaSpending.FIRST_ATTEMPT},
        {"ladder_rule": LadderRule.INDEPENDENT},
    ):
        assert named(**change) != named()
