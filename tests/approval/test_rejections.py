"""A person keeps a tier out of service: what it takes away, how long it holds, what is logged."""

from __future__ import annotations

from service.approval.kept import SECONDS
from service.store.decided.decisions import read, verify
from service.store.decided.routes import current_route
from service.store.redis.captures import Captures
from service.store.sql.database import Database
from tests.approval.live import MODEL, LiveApi, Upstream, ladder_over, live_api
from tests.approval.test_approvals import approval, code

REJECT = "/api/v1/models/org%2Fmodel/tiers/w8a8/reject"
SAID = {"reason": "its answers are rude"}


def weights(api: LiveApi) -> dict[str, int]:
    route = current_route(api.db, MODEL)
    return {"bf16": 100} if route is None else dict(route.weights)


def test_a_tier_that_serves_loses_its_clients_and_its_approval(api: LiveApi) -> None:
    api.accept("w8a8")
    client = api.client("approve")
    assert client.put(approval("w8a8")).status_code == 200
    answer = client.post(REJECT, json=SAID)
    assert answer.status_code == 200, answer.text
    assert (answer.json()["changed"], answer.json()["published"]) == (True, True)
    assert weights(api) == {"bf16": 100}
    assert api.captures.read_route(MODEL) == current_route(api.db, MODEL)
    rows = read(api.db, MODEL)
    assert [row.action for row in rows] == ["approve", "promote", "reject", "roll_back"]
    assert rows[2].detail["approval"] == "withdrawn"
    assert (rows[3].detail["because"], rows[3].detail["from"]) == ("rejected", "w8a8")
    assert verify(api.db) is None
    assert client.post(REJECT, json=SAID).json()["changed"] is False
    assert len(read(api.db, MODEL)) == 4


def test_it_holds_whatever_the_verdict_says_until_an_override(api: LiveApi) -> None:
    assert api.client("approve").post(REJECT, json=SAID).json()["changed"] is True
    api.accept("w8a8")
    refused = api.client("approve").put(approval("w8a8"))
    assert code(refused) == (409, "held")
    assert refused.json()["reasons"] == [f"rejected: {SAID['reason']}"]
    override = {"override": True, "reason": "it was another tier that was rude"}
    assert api.client("admin").put(approval("w8a8"), json=override).status_code == 200
    assert weights(api) == {"w8a8": 100}
    assert api.client("approve").post(REJECT, json=SAID).json()["changed"] is True, "again, against that"
    assert weights(api) == {"bf16": 100}
    assert code(api.client("approve").put(approval("w8a8"))) == (409, "held")


def test_another_epoch_ends_it(sqlite_database: Database, captures: Captures) -> None:
    epochs = {"bf16": "e0", "w8a8": "e1", "w4a16": "f1"}
    with live_api(sqlite_database, captures, epoch_of=lambda model, tier: epochs[tier]) as api:
        api.client("approve").post(REJECT, json=SAID)
        rung = api.client().get("/api/v1/models/org%2Fmodel/ladder").json()["rungs"][1]
        assert SAID["reason"] in rung["summary"]
        epochs["w8a8"] = "e2"
        api.clock.at += SECONDS  # in production an epoch changes by a row that is committed
        rung = api.client().get("/api/v1/models/org%2Fmodel/ladder").json()["rungs"][1]
        assert SAID["reason"] not in rung["summary"]


def test_who_may_and_what_may_be_rejected(sqlite_api: LiveApi) -> None:
    assert code(sqlite_api.client("read").post(REJECT, json=SAID)) == (403, "insufficient_scope")
    assert code(sqlite_api.client("approve").post(REJECT, json={})) == (422, "invalid_request")
    baseline = REJECT.replace("w8a8", "bf16")
    assert code(sqlite_api.client("approve").post(baseline, json=SAID)) == (409, "baseline")
    assert read(sqlite_api.db, MODEL) == []


def test_the_route_stays_where_nobody_could_take_over_unless_a_person_insists(
    sqlite_database: Database, captures: Captures
) -> None:
    up, other = Upstream(), Upstream()
    try:
        with live_api(sqlite_database, captures, ladder=ladder_over(other, up)) as api:
            api.accept("w8a8")
            client = api.client("approve")
            assert client.put(approval("w8a8")).status_code == 200
            other.statuses = {"/health": 503}
            assert code(client.post(REJECT, json=SAID)) == (409, "target_unhealthy")
            assert weights(api) == {"w8a8": 100}
            assert client.post(REJECT, json={**SAID, "force": True}).status_code == 200
            assert weights(api) == {"bf16": 100}
    finally:
        up.stop()
        other.stop()
