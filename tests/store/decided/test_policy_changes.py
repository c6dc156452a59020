"""A policy that differs from the last one logged is a decision: by whom, when, and what differs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.decision.policy import Criterion, Policy
from service.store.decided.decisions import read, verify
from service.store.decided.policy_changes import note_policy
from service.store.sql.database import Database


@pytest.fixture
def policy() -> Policy:
    return Policy(
        criteria=(
            Criterion(evaluator="structured_output", margin=0.02),
            Criterion(evaluator="refusal", margin=0.03),
        )
    )


def test_the_first_policy_is_logged_once_however_many_start_with_it(
    database: Database, policy: Policy
) -> None:
    assert note_policy(database, policy, at=1.0, actor="api")
    assert not note_policy(database, policy, at=2.0, actor="worker")
    (entry,) = read(database)
    assert (entry.action, entry.actor, entry.model, entry.tier, entry.at) == ("policy", "api", "", None, 1.0)
    assert (entry.detail["before"], entry.detail["changed"]) == (None, {})
    assert entry.detail["policy"]["criteria.refusal.margin"] == 0.03


def test_a_change_tells_each_value_before_and_after_and_going_back_is_a_change(
    database: Database, policy: Policy
) -> None:
    stricter = replace(policy, alpha_accept=0.01, criteria=(policy.criteria[0],))
    note_policy(database, policy, at=1.0, actor="api")
    assert note_policy(database, stricter, at=2.0, actor="api")
    assert note_policy(database, policy, at=3.0, actor="worker")
    first, second, third = read(database)
    assert second.detail["before"] == first.detail["digest"]
    assert third.detail["digest"] == first.detail["digest"]
    assert second.detail["changed"]["alpha_accept"] == [0.05, 0.01]
    assert second.detail["changed"]["criteria.refusal.margin"] == [0.03, None]
    assert "criteria.structured_output.margin" not in second.detail["changed"]
    assert third.detail["changed"]["alpha_accept"] == [0.01, 0.05]
    assert verify(database) is None
