"""Approve, revoke, roll back: who may, what changes, what is logged, what proxies are told."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from service.fleet import Route
from service.store.decided.decisions import read, verify
from service.store.decided.routes import current_route, set_route
from service.store.redis.captures import Captures
from service.store.sql.database import Database
from tests.approval.live import MODEL, LiveApi, Upstream, ladder_over, live_api

DIGEST = "sha256:" + "b" * 64


def approval(tier: str) -> str:
    return f"/api/v1/models/org%2Fmodel/tiers/{tier}/approval"


ROLLBACK = "/api/v1/models/org%2Fmodel/rollback"


def serving(api: LiveApi) -> str:
    """The tier that SQL says and that proxies are told, which must agree."""
    route = current_route(api.db, MODEL)
    told = api.captures.read_route(MODEL)
    assert route == told
    return "bf16" if route is None else route.serving


def actions(api: LiveApi) -> list[tuple[str, str | None]]:
    return [(entry.action, entry.tier) for entry in read(api.db, MODEL)]


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def test_an_accepted_tier_is_approved_serves_and_is_published(api: LiveApi) -> None:
    api.accept("w8a8")
    answer = api.client("approve").put(approval("w8a8"), json={"artifact": DIGEST, "reason": "weekly review"})
    assert answer.status_code == 200, answer.text
    change = answer.json()
    assert change["changed"] is True
    assert change["published"] is True
    assert change["route"] == {"version": 1, "serving": "w8a8", "weights": {"w8a8": 100}}
    assert change["approval"]["by"] == "test-approve"
    assert change["approval"]["artifact"] == DIGEST
    assert change["approval"]["override"] is False
    judging = {"structured_output": "1", "refusal": "1", "field_agreement": "1"}
    assert change["approval"]["evaluators"] == judging
    assert serving(api) == "w8a8"
    assert verify(api.db) is None


def test_the_log_keeps_the_verdict_that_justified_an_approval(api: LiveApi) -> None:
    api.accept("w8a8")
    client = api.client("approve")
    verdict = client.get("/api/v1/models/org/model/tiers/w8a8/verdict").json()
    client.put(approval("w8a8"), json={})
    api.record("w8a8", harm=60)
    logged = client.get("/api/v1/models/org/model/decisions").json()["entries"][0]
    assert logged["actor"] == "test-approve"
    kept = logged["detail"]["verdict"]
    assert kept["decision"] == "accept"
    assert kept["findings"] == verdict["findings"]
    assert logged["detail"]["policy_digest"] == verdict["policy"]["digest"]
    assert client.get("/api/v1/models/org/model/tiers/w8a8/verdict").json()["decision"] == "reject"


def test_a_verdict_that_is_not_accept_answers_409_with_its_reasons(api: LiveApi) -> None:
    answer = api.client("approve").put(approval("w8a8"), json={})
    assert code(answer) == (409, "verdict_not_accept")
    error = answer.json()
    verdict = api.client().get("/api/v1/models/org/model/tiers/w8a8/verdict").json()
    assert error["decision"] == "undecided"
    assert error["reasons"] == verdict["reasons"] != []
    assert serving(api) == "bf16"
    assert actions(api) == []


def test_even_an_admin_is_refused_without_an_override(api: LiveApi) -> None:
    assert code(api.client("admin").put(approval("w8a8"), json={"reason": "I like it"})) == (
        409,
        "verdict_not_accept",
    )


def test_an_override_needs_scope_admin_and_a_reason(api: LiveApi) -> None:
    override = {"override": True, "reason": "a known flaw of the dataset"}
    assert code(api.client("approve").put(approval("w8a8"), json=override)) == (403, "insufficient_scope")
    assert code(api.client("admin").put(approval("w8a8"), json={"override": True})) == (
        422,
        "reason_required",
    )
    assert serving(api) == "bf16"
    answer = api.client("admin").put(approval("w8a8"), json=override)
    assert answer.status_code == 200
    assert answer.json()["approval"]["override"] is True
    assert answer.json()["approval"]["decision"] == "undecided"
    assert serving(api) == "w8a8"


def test_an_override_of_an_accepted_verdict_is_no_override(sqlite_api: LiveApi) -> None:
    sqlite_api.accept("w8a8")
    answer = sqlite_api.client("admin").put(approval("w8a8"), json={"override": True, "reason": "sure"})
    assert answer.json()["approval"]["override"] is False


def test_repeating_an_approval_changes_nothing(api: LiveApi) -> None:
    api.accept("w8a8")
    client = api.client("approve")
    first = client.put(approval("w8a8"), json={"artifact": DIGEST}).json()
    again = client.put(approval("w8a8"), json={"artifact": DIGEST}).json()
    assert (again["changed"], again["route"]) == (False, first["route"])
    assert again["approval"] == first["approval"]
    assert actions(api) == [("approve", "w8a8"), ("promote", "w8a8")]


def test_an_approval_that_says_something_else_is_logged_anew_and_the_route_stays(api: LiveApi) -> None:
    api.accept("w8a8")
    client = api.client("approve")
    client.put(approval("w8a8"), json={})
    again = client.put(approval("w8a8"), json={"artifact": DIGEST}).json()
    assert (again["changed"], again["route"]["version"]) == (True, 1)
    assert actions(api) == [("approve", "w8a8"), ("promote", "w8a8"), ("approve", "w8a8")]


def test_an_approval_with_an_end_expires_and_can_be_renewed(api: LiveApi) -> None:
    api.accept("w8a8")
    client = api.client("approve")
    change = client.put(approval("w8a8"), json={"expires_in": "2h"}).json()
    assert change["approval"]["expires_at"] == "2023-11-15T00:13:20Z"

    def state() -> str:
        rungs = client.get("/api/v1/models/org/model/ladder").json()["rungs"]
        return str(rungs[1]["state"])

    assert state() == "approved"
    api.clock.at += 7200
    assert state() == "expired"
    renewed = client.put(approval("w8a8"), json={"expires_in": 60}).json()
    assert renewed["changed"] is True
    assert state() == "approved"


def test_a_declared_artifact_binds_the_approval(sqlite_api: LiveApi) -> None:
    sqlite_api.accept("w8a8", "w4a16")
    client = sqlite_api.client("approve")
    assert code(client.put(approval("w4a16"), json={"artifact": DIGEST})) == (409, "artifact_mismatch")
    approved = client.put(approval("w4a16"), json={}).json()
    assert approved["approval"]["artifact"] == "sha256:" + "a" * 64
    same = client.put(approval("w4a16"), json={"artifact": "a" * 64})
    assert same.status_code == 200


def test_a_target_whose_backends_are_down_is_refused_by_name(api: LiveApi) -> None:
    api.accept("w8a8")
    api.upstream.statuses["/health"] = 503
    answer = api.client("approve").put(approval("w8a8"), json={})
    assert code(answer) == (409, "target_unhealthy")
    assert "w8a8" in answer.json()["detail"]
    assert api.upstream.url in answer.json()["detail"]
    assert actions(api) == []


def test_revoking_sends_clients_to_the_next_lower_approved_tier(api: LiveApi) -> None:
    api.accept("w8a8", "w4a16")
    client = api.client("approve")
    for tier in ("w8a8", "w4a16"):
        assert client.put(approval(tier), json={}).status_code == 200
    change = client.delete(approval("w4a16"), params={"reason": "complaints"}).json()
    assert (change["changed"], change["route"]["serving"]) == (True, "w8a8")
    assert serving(api) == "w8a8"
    assert client.delete(approval("w8a8")).json()["route"]["serving"] == "bf16"
    assert serving(api) == "bf16"
    assert verify(api.db) is None


def test_revoking_a_tier_that_does_not_serve_leaves_the_route(api: LiveApi) -> None:
    api.accept("w8a8", "w4a16")
    client = api.client("approve")
    for tier in ("w8a8", "w4a16"):
        client.put(approval(tier), json={})
    change = client.delete(approval("w8a8")).json()
    assert (change["changed"], change["route"]["serving"]) == (True, "w4a16")
    assert client.delete(approval("w4a16")).json()["route"]["serving"] == "bf16", "w8a8 is approved no more"


def test_revoking_twice_or_what_was_never_approved_changes_nothing(api: LiveApi) -> None:
    client = api.client("approve")
    answer = client.delete(approval("w8a8"))
    assert (answer.status_code, answer.json()["changed"]) == (200, False)
    assert actions(api) == []


def test_a_tier_that_serves_without_an_approval_is_taken_off_all_the_same(api: LiveApi) -> None:
    set_route(api.db, Route(model=MODEL, weights={"bf16": 90, "w8a8": 10}), at=api.clock(), actor="somebody")
    change = api.client("approve").delete(approval("w8a8")).json()
    assert change["route"]["weights"] == {"bf16": 100}
    assert change["changed"] is True


def test_a_rollback_needs_no_evidence_and_goes_down_one_approved_rung(api: LiveApi) -> None:
    api.accept("w8a8", "w4a16")
    client = api.client("approve")
    for tier in ("w8a8", "w4a16"):
        client.put(approval(tier), json={})
    change = client.post(ROLLBACK, json={"reason": "pager"}).json()
    assert (change["tier"], change["changed"], change["route"]["version"]) == ("w8a8", True, 3)
    assert serving(api) == "w8a8"
    assert client.post(ROLLBACK).json()["tier"] == "bf16"
    assert serving(api) == "bf16"
    assert code(client.post(ROLLBACK)) == (409, "nothing_below")
    entry = read(api.db, MODEL)[-2]
    assert entry.action == "roll_back"
    assert entry.detail["reason"] == "pager"


def test_a_rollback_can_name_its_target(api: LiveApi) -> None:
    api.accept("w8a8", "w4a16")
    client = api.client("approve")
    client.put(approval("w4a16"), json={})
    assert code(client.post(ROLLBACK, json={"to": "w8a8"})) == (409, "not_approved")
    assert code(client.post(ROLLBACK, json={"to": "w8a9"})) == (404, "unknown_tier")
    assert client.post(ROLLBACK, json={"to": "bf16"}).json()["route"]["serving"] == "bf16"
    again = client.post(ROLLBACK, json={"to": "bf16"}).json()
    assert (again["changed"], again["route"]["version"]) == (False, 2)
    assert code(client.post(ROLLBACK, json={"to": "w4a16"})) == (409, "not_lower")


def test_a_rollback_that_names_who_serves_goes_down_once_however_often_it_is_sent(api: LiveApi) -> None:
    api.accept("w8a8", "w4a16")
    client = api.client("approve")
    for tier in ("w8a8", "w4a16"):
        client.put(approval(tier), json={})
    changes = [client.post(ROLLBACK, json={"if_serving": "w4a16"}).json() for _ in range(3)]
    assert [(change["changed"], change["tier"]) for change in changes] == [
        (True, "w8a8"),
        (False, "w8a8"),
        (False, "w8a8"),
    ]
    assert serving(api) == "w8a8"
    assert code(client.post(ROLLBACK, json={"if_serving": "w4a17"})) == (404, "unknown_tier")


def test_a_rollback_from_a_split_route_leaves_nobody_above(api: LiveApi) -> None:
    set_route(api.db, Route(model=MODEL, weights={"bf16": 95, "w8a8": 5}), at=api.clock(), actor="somebody")
    assert api.client("approve").post(ROLLBACK).json()["route"]["weights"] == {"bf16": 100}


def test_a_rollback_never_raises_the_share_of_a_tier_on_trial(api: LiveApi) -> None:
    api.accept("w8a8")
    client = api.client("approve")
    client.put(approval("w8a8"), json={})
    set_route(api.db, Route(model=MODEL, weights={"bf16": 95, "w8a8": 5}), at=api.clock(), actor="somebody")
    change = client.post(ROLLBACK, json={"to": "w8a8"}).json()
    assert (change["changed"], change["route"]["weights"]) == (False, {"bf16": 95, "w8a8": 5})


def test_a_dead_target_of_a_rollback_is_refused_unless_a_person_insists(
    sqlite_database: Database, captures: Captures
) -> None:
    baseline, candidate = Upstream(), Upstream()
    try:
        with live_api(sqlite_database, captures, ladder=ladder_over(baseline, candidate)) as api:
            api.accept("w8a8")
            client = api.client("approve")
            client.put(approval("w8a8"), json={})
            baseline.statuses["/health"] = 503
            assert code(client.post(ROLLBACK)) == (409, "target_unhealthy")
            assert code(client.delete(approval("w8a8"))) == (409, "target_unhealthy")
            assert serving(api) == "w8a8"
            change = client.post(ROLLBACK, json={"force": True}).json()
            assert change["route"]["serving"] == "bf16"
            assert baseline.url in change["warnings"][0]
    finally:
        for upstream in (baseline, candidate):
            upstream.stop()


@pytest.mark.parametrize("path", [approval("w8a9"), approval("W8A8"), approval("w8a8%20"), approval("%00")])
def test_an_unknown_tier_is_404(sqlite_api: LiveApi, path: str) -> None:
    client = sqlite_api.client("admin")
    for answer in (client.put(path, json={}), client.delete(path)):
        assert code(answer) == (404, "unknown_tier")


def test_the_baseline_is_neither_approved_nor_revoked(sqlite_api: LiveApi) -> None:
    client = sqlite_api.client("admin")
    assert code(client.put(approval("bf16"), json={})) == (409, "baseline")
    assert code(client.delete(approval("bf16"))) == (409, "baseline")


def test_changes_at_once_leave_one_consistent_log_and_route(api: LiveApi) -> None:
    api.accept("w8a8", "w4a16")

    def change(turn: int) -> int:
        client = api.client("approve")
        match turn % 4:
            case 0:
                return client.put(approval("w8a8"), json={}).status_code
            case 1:
                return client.put(approval("w4a16"), json={"expires_in": 1000 + turn}).status_code
            case 2:
                return client.post(ROLLBACK).status_code
            case _:
                return client.delete(approval("w8a8")).status_code

    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(change, range(24)))
    assert set(statuses) <= {200, 409}
    assert 200 in statuses
    assert verify(api.db) is None
    entries = read(api.db, MODEL, limit=1000)
    first = entries[0].seq
    assert [entry.seq for entry in entries] == list(range(first, first + len(entries)))
    versions = [entry.detail["route_version"] for entry in entries if "route_version" in entry.detail]
    assert versions == list(range(1, len(versions) + 1))
    route = current_route(api.db, MODEL)
    assert route is not None
    assert route.version == len(versions)
    told = api.captures.read_route(MODEL)
    assert told is not None
    assert told.version == route.version


def test_a_route_to_a_tier_that_is_gone_is_cleared_by_a_rollback(sqlite_api: LiveApi) -> None:
    gone = Route(model=MODEL, weights={"w2": 60, "bf16": 40})
    set_route(sqlite_api.db, gone, at=sqlite_api.clock(), actor="somebody")
    client = sqlite_api.client("approve")
    assert code(client.post(ROLLBACK, json={"to": "w8a8"})) == (409, "not_lower")
    answer = client.post(ROLLBACK, json={"reason": "removed", "if_serving": "w2"})
    assert answer.status_code == 200, answer.text
    assert (answer.json()["changed"], answer.json()["tier"]) == (True, "bf16")
    route = current_route(sqlite_api.db, MODEL)
    assert route is not None
    assert (route.weights, route.version) == ({"bf16": 100}, 2)
    assert read(sqlite_api.db, MODEL)[-1].detail["because"] == "no longer configured: w2"
    assert code(client.post(ROLLBACK)) == (409, "nothing_below")


def test_a_whole_number_may_be_spelled_with_a_point(sqlite_api: LiveApi) -> None:
    sqlite_api.accept("w8a8")
    headers = {"Content-Type": "application/json"}
    client = sqlite_api.client("approve")
    answer = client.put(approval("w8a8"), content=b'{"expires_in": 60.0}', headers=headers)
    assert answer.json()["approval"]["expires_at"] == "2023-11-14T22:14:20Z"
    assert client.put(approval("w8a8"), content=b'{"expires_in": 60.5}', headers=headers).status_code == 422
