"""What follows from a decision: four proxies follow it in order and whole, without Redis by asking the API.

How fast is measured by `tests.benchmarks.consequence`; here nothing depends on a clock.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from service.fleet import Backend, Ladder, Route, Tier
from service.proxy.config import RoutesFrom
from service.proxy.traffic.asked_routes import follow_asked
from service.proxy.traffic.routing import RouteBook
from service.store.decided.approvals import Approval, put_approval
from service.store.decided.decisions import read, verify
from service.store.decided.routes import current_route, set_route
from service.store.redis.captures import open_captures
from service.store.redis.shipping import CaptureStore
from service.store.sql.database import Database, open_database
from service.store.sql.schema import approvals, routes
from tests.approval.live import live_api
from tests.conftest import ValkeyServer
from tests.proxy.standing import eventually

TIERS = ("bf16", "w8a8", "w4a16")
LADDER = Ladder(
    model="m",
    tiers=tuple(Tier(name=name, backends=(Backend(url="http://127.0.0.1:9"),), model="m") for name in TIERS),
)
PROXIES = 4


class Following:
    """The part of a proxy that follows routes, and every state that its requests could have seen."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self.book = RouteBook({"m": LADDER}, directory)
        self.seen = [self.book["m"]]

    def follow(self, route: Route) -> None:
        if self.book.follow(route):
            self.seen.append(self.book["m"])


@pytest.fixture
def four(tmp_path: Path) -> list[Following]:
    return [Following(tmp_path / f"proxy-{number}") for number in range(PROXIES)]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    database = open_database(f"sqlite:///{tmp_path / 'tiergate.db'}", part="api")
    yield database
    database.close()


def steps() -> Iterator[Route]:
    """A ramp, a rollback, another ramp ..."""
    while True:
        for weights in ({"bf16": 95, "w8a8": 5}, {"bf16": 50, "w8a8": 50}, {"w8a8": 100}, {"bf16": 100}):
            yield Route(model="m", weights=weights)


async def test_four_proxies_follow_every_change_in_order_and_never_a_part_of_one(
    db: Database, valkey: ValkeyServer, four: list[Following]
) -> None:
    changes, issued = 60, [Route.only("m", "bf16")]
    with closing(open_captures(valkey.url)) as captures:
        stores = [CaptureStore.open(valkey.url, valkey.url) for _ in four]

        def decide() -> None:
            for number, route in zip(range(changes), steps(), strict=False):
                placed = set_route(db, route, at=1000.0 + number, actor="ci", action="promote")
                issued.append(placed)
                captures.publish_route(placed)

        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(store.follow_routes(each.follow))
                for store, each in zip(stores, four, strict=True)
            ]
            await asyncio.to_thread(decide)
            await eventually(lambda: all(each.seen[-1].version == changes for each in four))
            for task in tasks:
                task.cancel()
        for store in stores:
            await store.aclose()
    by_version = {route.version: route for route in issued}
    for each in four:
        versions = [route.version for route in each.seen]
        assert versions == sorted(set(versions)), "nobody goes back to an older decision"
        assert all(route == by_version[route.version] for route in each.seen), "each as it was decided"
        assert all(sum(route.weights.values()) == 100 for route in each.seen)


async def test_without_redis_an_approval_and_a_rollback_reach_four_proxies_through_the_api(
    db: Database, own_valkey: ValkeyServer, four: list[Following]
) -> None:
    with (
        closing(open_captures(own_valkey.url, timeout=1)) as captures,
        live_api(db, captures, ladder=LADDER) as api,
    ):
        own_valkey.kill()
        asked = RoutesFrom(url=api.url, token=api.secrets["read"])
        stores = [CaptureStore.open(own_valkey.url, own_valkey.url) for _ in four]
        async with asyncio.TaskGroup() as group:
            tasks = [
                task
                for store, each in zip(stores, four, strict=True)
                for task in (
                    group.create_task(store.follow_routes(each.follow)),
                    group.create_task(follow_asked(lambda: asked, each.follow, every=0.05)),
                )
            ]
            for version, weights in enumerate(({"bf16": 95, "w8a8": 5}, {"bf16": 100}), start=1):
                placed = set_route(
                    db, Route(model="m", weights=weights), at=1000.0 + version, actor="ci", action="promote"
                )
                assert placed.version == version
                await eventually(lambda: all(each.book["m"] == placed for each in four))  # noqa: B023
            own_valkey.start()
            assert captures.read_route("m") is None, "Redis came back empty"
            assert all(each.book["m"].version == 2 for each in four)
            for task in tasks:
                task.cancel()
        for store in stores:
            await store.aclose()
    for each in four:
        assert [dict(route.weights) for route in each.seen] == [
            {"bf16": 100},
            {"bf16": 95, "w8a8": 5},
            {"bf16": 100},
        ]


def approval_at(at: float) -> Approval:
    return Approval(
        model="m",
        tier="w8a8",
        actor="ci",
        at=at,
        epoch="e",
        policy_digest="p",
        verdict={"decision": "accept"},
    )


def test_nobody_ever_reads_an_approval_without_its_route_and_its_rows_in_the_log(
    database: Database, database_url: str
) -> None:
    done, torn = threading.Event(), []

    def look() -> None:
        with closing(open_database(database_url)) as other:
            while not done.is_set():
                with other.read() as connection:
                    approved: Any = connection.execute(select(approvals.c.document)).scalar_one_or_none()
                    route = connection.execute(select(routes.c.version)).scalar_one_or_none()
                if (approved is None) != (route is None):
                    torn.append((approved, route))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        for number in range(20):
            with database.write() as connection:
                connection.execute(approvals.delete())
                connection.execute(routes.delete())
            weights = {"bf16": 95, "w8a8": 5}
            put_approval(database, approval_at(1000.0 + number), route=Route(model="m", weights=weights))
            with pytest.raises(ValueError, match="JSON"):
                # The log refuses the second row: then neither the approval nor the first one is there.
                set_route(
                    database,
                    Route.only("m", "bf16"),
                    at=2000.0,
                    actor="ci",
                    action="roll_back",
                    detail={"x": object()},
                )
    finally:
        done.set()
        looking.join()
    assert torn == []
    assert [entry.action for entry in read(database, limit=1000)] == ["approve", "promote"] * 20
    in_force = current_route(database, "m")
    assert in_force is not None
    assert in_force.weights == {"bf16": 95, "w8a8": 5}
    assert verify(database) is None
