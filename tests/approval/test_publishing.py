"""Approving while Redis is down, frozen, or knows better."""

from __future__ import annotations

import time

import pytest

from service.fleet import Route
from service.store.decided.routes import current_route
from service.store.redis.captures import Captures, open_captures
from service.store.sql.database import Database
from tests.approval.live import MODEL, LiveApi, live_api
from tests.conftest import ValkeyServer

APPROVAL = f"/api/v1/models/{MODEL}/tiers/w8a8/approval"


@pytest.mark.parametrize("fault", ["killed", "frozen"])
def test_an_approval_holds_though_redis_is_gone_and_can_be_published_later(
    sqlite_database: Database, own_valkey: ValkeyServer, fault: str
) -> None:
    captures = open_captures(own_valkey.url, timeout=2.0)
    try:
        with live_api(sqlite_database, captures) as api:
            api.accept("w8a8")
            own_valkey.kill() if fault == "killed" else own_valkey.freeze()
            client = api.client("approve")
            began = time.monotonic()
            answer = client.put(APPROVAL, json={})
            assert time.monotonic() - began < 60
            change = answer.json()
            assert answer.status_code == 200
            assert (change["changed"], change["published"]) == (True, False)
            assert "guard" in change["warnings"][0]
            assert current_route(api.db, MODEL) == Route.only(MODEL, "w8a8", version=1)
            ready = client.get("/readyz")
            assert (ready.status_code, ready.json()["redis"]) == (200, "unreachable")
            ledger = client.get("/api/v1/ledger").json()
            assert any("Redis does not answer" in problem for problem in ledger["problems"])
            own_valkey.start() if fault == "killed" else own_valkey.thaw()
            again = client.put(APPROVAL, json={}).json()
            assert (again["changed"], again["published"]) == (False, True)
            assert captures.read_route(MODEL) == Route.only(MODEL, "w8a8", version=1)
    finally:
        captures.close()


def test_a_redis_that_knows_a_later_route_than_the_database_is_told_of(
    sqlite_api: LiveApi, captures: Captures
) -> None:
    """As after restoring an old backup of the database: proxies would not follow, and nobody would know."""
    soon = sqlite_api.clock.at + 60
    captures.publish_route(Route(model=MODEL, weights={"bf16": 100}, version=1, issued_at=soon))
    sqlite_api.accept("w8a8")
    change = sqlite_api.client("approve").put(APPROVAL, json={}).json()
    assert change["published"] is False
    assert "backup" in change["warnings"][0]


def test_a_redis_whose_clock_is_far_behind_is_told_of(sqlite_api: LiveApi) -> None:
    sqlite_api.accept("w8a8")
    sqlite_api.clock.at = time.time() + 3600
    change = sqlite_api.client("approve").put(APPROVAL, json={}).json()
    assert change["published"] is False
    assert "clock" in change["warnings"][0]


def test_a_huge_version_that_somebody_wrote_is_in_nobodys_way(
    sqlite_api: LiveApi, captures: Captures
) -> None:
    captures.redis.hset(
        "tiergate:routes",
        MODEL,
        '{"model": "' + MODEL + '", "weights": {"bf16": 100}, "version": 1000000000000000000}',
    )
    sqlite_api.accept("w8a8")
    change = sqlite_api.client("approve").put(APPROVAL, json={}).json()
    assert (change["published"], change["warnings"]) == (True, [])
    assert captures.read_route(MODEL) == Route.only(MODEL, "w8a8", version=1)
