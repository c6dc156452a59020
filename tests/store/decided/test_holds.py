from __future__ import annotations

import threading

import pytest

from service.fleet import Route
from service.store.decided.approvals import Approval, current_approval, put_approval
from service.store.decided.decisions import read, verify
from service.store.decided.holds import Hold, HoldKind, begin_hold, end_hold, read_holds, roll_back
from service.store.decided.routes import RouteMoved, current_route, set_route
from service.store.sql.database import Database

PLACE = {"model": "m", "tier": "w8a8", "epoch": "e1"}


def begin(db: Database, kind: HoldKind = HoldKind.FROZEN, *, at: float = 10.0, reason: str = "why") -> bool:
    return begin_hold(db, **PLACE, kind=kind, reason=reason, at=at, actor="guard")


def end(db: Database, kind: HoldKind = HoldKind.FROZEN, *, at: float = 20.0) -> bool:
    return end_hold(db, **PLACE, kind=kind, reason="better", at=at, actor="guard")


def approve(db: Database, *, at: float = 30.0, epoch: str = "e1") -> None:
    put_approval(
        db,
        Approval(model="m", tier="w8a8", actor="ci", at=at, epoch=epoch, policy_digest="d", verdict={}),
        route=Route.only("m", "w8a8"),
    )


def back(db: Database, *, expect: int, at: float = 40.0) -> Route:
    return roll_back(
        db,
        Route.only("m", "bf16"),
        tier="w8a8",
        target="bf16",
        epoch="e1",
        kind=HoldKind.ROLLED_BACK,
        reason="harm",
        at=at,
        actor="guard",
        detail={"because": "harm"},
        expect=expect,
    )


def test_a_hold_begins_once_and_ends_once_each_with_a_row_in_the_log(database: Database) -> None:
    assert begin(database)
    assert not begin(database, at=11.0, reason="another")
    assert read_holds(database, **PLACE) == (Hold(kind=HoldKind.FROZEN, reason="why", at=10.0),)
    assert end(database)
    assert not end(database)
    assert read_holds(database, **PLACE) == (
        Hold(kind=HoldKind.FROZEN, reason="why", at=10.0, ended_at=20.0),
    )
    assert begin(database, at=25.0)
    assert [entry.action for entry in read(database, "m")] == ["frozen", "frozen_ended", "frozen"]
    assert read(database, "m")[0].detail == {"epoch": "e1", "reasons": ["why"]}
    assert verify(database) is None


def test_a_hold_is_of_one_tier_epoch_and_kind(database: Database) -> None:
    begin(database)
    assert not end(database, HoldKind.SLO_LOST)
    for other in ({"tier": "w4a16"}, {"epoch": "e2"}, {"model": "n"}):
        assert read_holds(database, **{**PLACE, **other}) == ()


def test_an_approval_ends_what_froze_the_ramp_and_nothing_else(database: Database) -> None:
    begin(database)
    begin(database, HoldKind.SLO_LOST)
    approve(database, at=30.0, epoch="e2")
    assert all(hold.ended_at is None for hold in read_holds(database, **PLACE))
    approve(database, at=31.0)
    ended = {hold.kind: hold.ended_at for hold in read_holds(database, **PLACE)}
    assert ended == {HoldKind.FROZEN: 31.0, HoldKind.SLO_LOST: None}


def test_a_rollback_moves_the_route_withdraws_the_approval_and_holds_the_tier_at_once(
    database: Database,
) -> None:
    approve(database)
    placed = back(database, expect=1)
    assert current_route(database, "m") == placed == Route.only("m", "bf16", 2)
    assert current_approval(database, "m", "w8a8") is None
    [hold] = read_holds(database, **PLACE)
    assert (hold.kind, hold.reason, hold.ended_at) == (HoldKind.ROLLED_BACK, "harm", None)
    entry = read(database, "m")[-1]
    assert (entry.action, entry.tier, entry.detail["from"]) == ("roll_back", "bf16", "w8a8")
    assert entry.detail["approval"] == "withdrawn"


def test_a_rollback_on_another_route_changes_nothing(database: Database) -> None:
    approve(database)
    set_route(database, Route.only("m", "w4a16"), at=35.0, actor="somebody")
    with pytest.raises(RouteMoved):
        back(database, expect=1)
    assert read_holds(database, **PLACE) == ()
    assert current_approval(database, "m", "w8a8") is not None


def test_of_several_who_roll_back_the_same_route_one_does(database: Database) -> None:
    approve(database)
    moved: list[str] = []
    start = threading.Barrier(5)

    def race() -> None:
        start.wait()
        try:
            back(database, expect=1)
            moved.append("done")
        except RouteMoved:
            moved.append("too late")

    threads = [threading.Thread(target=race) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(moved) == ["done"] + ["too late"] * 4
    assert [entry.action for entry in read(database, "m")].count("roll_back") == 1
