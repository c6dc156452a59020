"""Approvals: put, replaced, revoked, each with its entry and its route in one transaction."""

from __future__ import annotations

import dataclasses

import pytest

from service.fleet import Route
from service.store.decided.approvals import Approval, current_approval, put_approval, revoke
from service.store.decided.decisions import read, verify
from service.store.decided.routes import RouteMoved, current_route

APPROVAL = Approval(
    model="m",
    tier="w8a8",
    actor="ci",
    at=100.0,
    expires_at=200.0,
    artifact="ab" * 32,
    epoch="e1",
    policy_digest="cd" * 32,
    evaluators={"refusal": "1"},
    verdict={"decision": "accept", "findings": [{"n": 481}]},
)


def test_an_approval_is_in_force_until_it_is_revoked(database):
    assert current_approval(database, "m", "w8a8") is None
    assert put_approval(database, APPROVAL) is None
    assert current_approval(database, "m", "w8a8") == APPROVAL
    assert current_approval(database, "m", "bf16") is None
    assert revoke(database, "m", "w8a8", at=150.0, actor="anna", reason="recall")
    assert current_approval(database, "m", "w8a8") is None
    assert not revoke(database, "m", "w8a8", at=151.0, actor="anna")
    approved, revoked = read(database, "m")
    assert approved.detail["verdict"] == APPROVAL.verdict
    assert (revoked.action, revoked.actor, revoked.detail) == ("revoke", "anna", {"reason": "recall"})
    assert verify(database) is None


def test_an_approval_expires_and_is_still_there_to_be_shown(database):
    put_approval(database, APPROVAL)
    found = current_approval(database, "m", "w8a8")
    assert (found.expired(199.9), found.expired(200.0)) == (False, True)
    assert not dataclasses.replace(found, expires_at=None).expired(1e12)


def test_a_new_approval_replaces_the_old_one(database):
    put_approval(database, APPROVAL)
    later = dataclasses.replace(APPROVAL, at=150.0, override=True, reason="the traffic is ours")
    put_approval(database, later)
    assert current_approval(database, "m", "w8a8") == later
    assert len(read(database)) == 2


def test_approval_and_route_change_together(database):
    route = put_approval(database, APPROVAL, route=Route.only("m", "w8a8"), expect=0)
    assert route == current_route(database, "m") == Route.only("m", "w8a8", 1)
    assert [entry.action for entry in read(database)] == ["approve", "promote"]
    assert revoke(database, "m", "w8a8", at=150.0, actor="anna", route=Route.only("m", "bf16"), expect=1)
    assert current_route(database, "m") == Route.only("m", "bf16", 2)
    assert [entry.action for entry in read(database)][2:] == ["revoke", "roll_back"]


def test_neither_changes_when_the_route_has_moved(database):
    put_approval(database, APPROVAL, route=Route.only("m", "w8a8"))
    with pytest.raises(RouteMoved):
        put_approval(
            database, dataclasses.replace(APPROVAL, at=150.0), route=Route.only("m", "w8a8"), expect=0
        )
    with pytest.raises(RouteMoved):
        revoke(database, "m", "w8a8", at=150.0, actor="anna", route=Route.only("m", "bf16"), expect=0)
    assert current_approval(database, "m", "w8a8") == APPROVAL
    assert len(read(database)) == 2


def test_an_override_needs_a_reason_and_an_expiry_lies_ahead():
    with pytest.raises(ValueError, match="needs a reason"):
        dataclasses.replace(APPROVAL, override=True)
    with pytest.raises(ValueError, match="after it is given"):
        dataclasses.replace(APPROVAL, expires_at=100.0)


def test_what_was_decided_under_another_route_changes_no_approval_either(database):
    """A renewal must not undo the revocation that came first, nor a revocation leave a tier serving."""
    put_approval(database, APPROVAL, route=Route.only("m", "w8a8"))
    assert revoke(database, "m", "w8a8", at=150.0, actor="guard", route=Route.only("m", "bf16"), expect=1)
    with pytest.raises(RouteMoved):
        put_approval(database, dataclasses.replace(APPROVAL, at=151.0), expect=1)
    assert current_approval(database, "m", "w8a8") is None
    put_approval(database, APPROVAL, route=Route.only("m", "w8a8"), expect=2)
    with pytest.raises(RouteMoved):
        revoke(database, "m", "w8a8", at=152.0, actor="anna", expect=2)
    assert current_approval(database, "m", "w8a8") == APPROVAL
    assert verify(database) is None
