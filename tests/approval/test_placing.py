"""Approvals under a ramp, against a hold, and to a tier whose declared room is too small."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.decision.ramp import Promotion
from service.fleet import Limits, Route
from service.store.decided.decisions import read
from service.store.decided.holds import HoldKind, begin_hold, read_holds
from service.store.decided.routes import current_route, set_route
from service.store.redis.captures import Captures
from service.store.sql.database import Database
from tests.approval.live import MODEL, LiveApi, Upstream, ladder_over, live_api
from tests.approval.test_approvals import ROLLBACK, approval, code

STEPS = Promotion(ramp=(5, 25, 100))


def weights(api: LiveApi) -> dict[str, int]:
    route = current_route(api.db, MODEL)
    return {"bf16": 100} if route is None else dict(route.weights)


def hold(api: LiveApi, kind: HoldKind, tier: str = "w8a8") -> None:
    assert begin_hold(
        api.db,
        model=MODEL,
        tier=tier,
        epoch=f"epoch-{tier}",
        kind=kind,
        reason="e-value 23 >= 20",
        at=api.clock(),
        actor="guard",
    )


def test_an_approval_places_the_first_step_and_repeating_it_changes_nothing(
    sqlite_database: Database, captures: Captures
) -> None:
    with live_api(sqlite_database, captures, promotion=STEPS) as api:
        api.accept("w8a8")
        client = api.client("approve")
        first = client.put(approval("w8a8")).json()
        assert first["route"] == {"version": 1, "serving": "bf16", "weights": {"bf16": 95, "w8a8": 5}}
        assert client.put(approval("w8a8")).json()["changed"] is False
        assert weights(api) == {"bf16": 95, "w8a8": 5}


def test_an_approval_takes_no_share_back_that_the_guard_gave(
    sqlite_database: Database, captures: Captures
) -> None:
    with live_api(sqlite_database, captures, promotion=STEPS) as api:
        api.accept("w8a8")
        set_route(api.db, Route(model=MODEL, weights={"bf16": 75, "w8a8": 25}), at=api.clock(), actor="guard")
        assert api.client("approve").put(approval("w8a8")).status_code == 200
        assert weights(api) == {"bf16": 75, "w8a8": 25}


def test_the_next_rung_takes_its_first_step_from_the_tier_that_serves_most(
    sqlite_database: Database, captures: Captures
) -> None:
    with live_api(sqlite_database, captures, promotion=STEPS) as api:
        api.accept("w8a8", "w4a16")
        set_route(api.db, Route.only(MODEL, "w8a8"), at=api.clock(), actor="guard")
        assert api.client("approve").put(approval("w4a16")).status_code == 200
        assert weights(api) == {"w8a8": 95, "w4a16": 5}


def test_a_tier_below_the_one_that_serves_gets_everybody_at_once(
    sqlite_database: Database, captures: Captures
) -> None:
    with live_api(sqlite_database, captures, promotion=STEPS) as api:
        api.accept("w8a8", "w4a16")
        set_route(api.db, Route.only(MODEL, "w4a16"), at=api.clock(), actor="guard")
        assert api.client("approve").put(approval("w8a8")).status_code == 200
        assert weights(api) == {"w8a8": 100}


def test_an_approval_sets_a_frozen_ramp_going(sqlite_database: Database, captures: Captures) -> None:
    with live_api(sqlite_database, captures, promotion=STEPS) as api:
        api.accept("w8a8")
        client = api.client("approve")
        client.put(approval("w8a8"))
        hold(api, HoldKind.FROZEN)
        [rung] = [each for each in ladder_of(api) if each["tier"] == "w8a8"]
        assert "frozen: e-value 23 >= 20" in rung["summary"]
        api.clock.at += 60
        assert client.put(approval("w8a8")).json()["changed"] is True
        [ended] = read_holds(api.db, MODEL, "w8a8", "epoch-w8a8")
        assert ended.ended_at == api.clock()
        assert read(api.db, MODEL)[-1].action == "approve"


def ladder_of(api: LiveApi) -> list[dict[str, str]]:
    answer = api.client("read").get("/api/v1/models/org%2Fmodel/ladder")
    assert answer.status_code == 200, answer.text
    rungs: list[dict[str, str]] = answer.json()["rungs"]
    return rungs


@pytest.mark.parametrize("kind", [HoldKind.ROLLED_BACK, HoldKind.SLO_LOST])
def test_an_accepted_tier_that_is_held_is_approved_by_an_admin_with_a_reason_only(
    kind: HoldKind, api: LiveApi
) -> None:
    api.accept("w8a8")
    hold(api, kind)
    refused = api.client("approve").put(approval("w8a8"))
    assert code(refused) == (409, "held")
    assert refused.json()["reasons"] == [f"{kind}: e-value 23 >= 20"]
    assert weights(api) == {"bf16": 100}
    api.clock.at += 60
    asked = {"override": True, "reason": "the prompt was at fault"}
    assert api.client("approve").put(approval("w8a8"), json=asked).status_code == 403
    answer = api.client("admin").put(approval("w8a8"), json=asked)
    assert answer.status_code == 200, answer.text
    assert answer.json()["approval"]["override"] is True
    assert weights(api) == {"w8a8": 100}


def test_nobody_is_rolled_back_to_a_tier_that_is_held(api: LiveApi) -> None:
    api.accept("w8a8", "w4a16")
    client = api.client("approve")
    client.put(approval("w8a8"))
    client.put(approval("w4a16"))
    hold(api, HoldKind.SLO_LOST, "w8a8")
    assert code(client.post(ROLLBACK, json={"to": "w8a8"})) == (409, "not_approved")
    assert client.post(ROLLBACK).json()["route"]["weights"] == {"bf16": 100}


def test_a_tier_whose_declared_room_is_too_small_is_refused_and_a_person_may_insist_on_the_way_down(
    sqlite_database: Database, captures: Captures
) -> None:
    upstream = Upstream()
    try:
        ladder = ladder_over(upstream)
        tight = replace(ladder.tiers[1].backends[0], max_concurrency=9)
        tiers = (ladder.tiers[0], replace(ladder.tiers[1], backends=(tight,)), ladder.tiers[2])
        ladder = replace(ladder, tiers=tiers, limits=Limits(concurrency=10))
        with live_api(sqlite_database, captures, ladder=ladder) as api:
            api.accept("w8a8", "w4a16")
            client = api.client("approve")
            refused = client.put(approval("w8a8"))
            assert code(refused) == (409, "target_no_room")
            assert "take 9 requests at once (max_concurrency) < 10" in refused.json()["detail"]
            assert weights(api) == {"bf16": 100}
            client.put(approval("w4a16"))
            assert weights(api) == {"w4a16": 100}
            assert client.post(ROLLBACK, json={"force": True}).status_code == 200
    finally:
        upstream.stop()
