"""Decision log and ledger over HTTP."""

from __future__ import annotations

import time

import pytest
import sqlalchemy

from service.store.decided import decisions
from service.store.sql.database import Database
from tests.approval.live import MODEL, LiveApi

DECISIONS = f"/api/v1/models/{MODEL}/decisions"


def fill(db: Database, count: int) -> None:
    for number in range(count):
        decisions.append(
            db, at=1.8e9 + number, actor="ci", action="note", model=MODEL, tier=None, detail={"n": number}
        )


def test_the_log_is_read_oldest_first_in_parts(api: LiveApi) -> None:
    before = decisions.head_of(api.db).seq  # whose tokens these are, is logged as well
    fill(api.db, 5)
    decisions.append(api.db, at=1.8e9, actor="ci", action="note", model="another", tier=None, detail={})
    client = api.client()
    first = client.get(DECISIONS, params={"limit": 3}).json()
    assert [entry["seq"] - before for entry in first["entries"]] == [1, 2, 3]
    assert first["next_after"] == before + 3
    rest = client.get(DECISIONS, params={"limit": 3, "after": before + 3}).json()
    assert [entry["detail"]["n"] for entry in rest["entries"]] == [3, 4]
    assert rest["next_after"] is None
    assert (rest["chain"], rest["broken_at"]) == ("intact", None)
    assert rest["entries"][1]["prev"] == rest["entries"][0]["digest"]
    assert first["entries"][0]["at"] == "2027-01-15T08:00:00Z"


def test_an_altered_entry_shows(sqlite_api: LiveApi, sqlite_url: str) -> None:
    fill(sqlite_api.db, 3)
    engine = sqlalchemy.create_engine(sqlite_url)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("UPDATE decisions SET actor = 'somebody else' WHERE seq = 2"))
    engine.dispose()
    log = sqlite_api.client().get(DECISIONS).json()
    assert (log["chain"], log["broken_at"]) == ("broken", 2)


def test_the_whole_log_tells_tokens_and_the_head_to_keep(api: LiveApi) -> None:
    fill(api.db, 1)
    log = api.client().get("/api/v1/decisions", params={"limit": 1000}).json()
    assert [entry["action"] for entry in log["entries"]] == ["token_made"] * 4 + ["note"]
    assert (log["entries"][0]["model"], log["entries"][-1]["model"]) == ("", MODEL)
    assert (log["chain"], log["head_seq"], log["head_digest"]) == ("intact", 5, log["entries"][-1]["digest"])
    rest = api.client().get("/api/v1/decisions", params={"after": 3, "limit": 1}).json()
    assert ([entry["seq"] for entry in rest["entries"]], rest["next_after"]) == ([4], 4)


def test_a_decision_over_http_is_told_to_come_from_its_peer_whatever_headers_say(sqlite_api: LiveApi) -> None:
    sqlite_api.accept("w8a8")
    forwarded = {"X-Forwarded-For": "203.0.113.9", "Forwarded": "for=203.0.113.9"}
    approving = sqlite_api.client("approve", **forwarded)
    answer = approving.put(f"/api/v1/models/{MODEL}/tiers/w8a8/approval", json={"reason": "enough"})
    assert answer.status_code == 200, answer.text
    approve, promote = sqlite_api.client().get(DECISIONS).json()["entries"]
    assert (approve["action"], approve["actor"], approve["detail"]["reason"]) == (
        "approve",
        "test-approve",
        "enough",
    )
    assert approve["detail"]["whence"]["peer"] == promote["detail"]["whence"]["peer"] == "127.0.0.1"


def test_every_route_in_force_is_told_with_this_apis_clock(sqlite_api: LiveApi) -> None:
    assert sqlite_api.client().get("/api/v1/routes").json() == {"now": sqlite_api.clock(), "routes": []}
    sqlite_api.accept("w8a8")
    sqlite_api.client("approve").put(f"/api/v1/models/{MODEL}/tiers/w8a8/approval", json={})
    (route,) = sqlite_api.client().get("/api/v1/routes").json()["routes"]
    assert route == {
        "model": MODEL,
        "weights": {"w8a8": 100},
        "version": 1,
        "issued_at": sqlite_api.clock(),
    }


@pytest.mark.parametrize(
    "asked", [{"limit": 0}, {"limit": 1001}, {"after": -1}, {"after": 2**63}, {"limit": "x"}]
)
def test_senseless_bounds_are_refused(sqlite_api: LiveApi, asked: dict[str, object]) -> None:
    answer = sqlite_api.client().get(DECISIONS, params=asked)  # type: ignore[arg-type]
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


def test_an_empty_ledger_adds_up(api: LiveApi) -> None:
    ledger = api.client().get("/api/v1/ledger").json()
    assert (ledger["model"], ledger["balanced"], ledger["problems"]) == (None, True, [])
    assert ledger["counters"]["seen"] == 0


async def test_the_ledger_shows_what_proxies_counted_and_workers_scored(api: LiveApi) -> None:
    from redis.asyncio import Redis

    from service.store.redis.counters import Count, Skipped, ledger_key
    from service.store.redis.shipping import CaptureStore

    url = api.captures.redis.connection_pool.connection_kwargs
    redis = Redis(host=url["host"], port=url["port"])
    store = CaptureStore(redis, redis)
    await store.write_ledger(
        "proxy-1",
        {
            ledger_key(Count.SEEN, MODEL): 10,
            ledger_key(Count.SKIPPED, MODEL, Skipped.NOT_SAMPLED): 8,
            ledger_key(Count.SAMPLED, MODEL): 2,
            ledger_key(Count.SHIPPED, MODEL): 2,
            ledger_key(Count.TRAFFIC, MODEL, "short"): 10,
        },
        closed=True,
    )
    await redis.aclose()
    api.clock.at = time.time()
    api.record("w8a8", harm=1, clean=1)
    ledger = api.client().get("/api/v1/ledger", params={"model": MODEL}).json()
    counters = ledger["counters"]
    assert (counters["seen"], counters["skipped"], counters["sampled"]) == (10, {"not_sampled": 8}, 2)
    assert ledger["traffic"] == {"short": 10}
    pairs = {pair["evaluator"]: (pair["due"], pair["scored"]) for pair in ledger["pairs"]}
    assert pairs == {"structured_output": (2, 2), "refusal": (2, 2)}
    metrics = api.client().get("/metrics").text
    assert 'tiergate_ledger_requests{account="skipped",model="org/model",reason="not_sampled"} 8.0' in metrics
