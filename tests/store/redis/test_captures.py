"""Captures and routes in Redis, seen by workers and the API."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis

from service.fleet import Route
from service.store.redis import redis_keys
from service.store.redis.captures import Captures, Publication, open_captures
from service.store.redis.intake import Shipment
from service.store.redis.shipping import CaptureStore
from tests.patience import PATIENCE


@pytest.fixture
def captures(redis_client):
    return Captures(redis_client)


async def shipped(url, *ids, ttl=60, size=100):
    store = CaptureStore.open(url, url)
    try:
        batch = [Shipment(id=each, blob=b"x" * size) for each in ids]
        await store.ship(batch, ttl_seconds=ttl, max_bytes=1 << 30, queue="replay")
    finally:
        await store.aclose()


def bytes_in_use(client):
    return sum(int(amount) for amount in client.hgetall(redis_keys.CAPTURES_BYTES).values())


async def test_fetching_returns_each_capture_or_none_in_order(valkey, captures):
    await shipped(valkey.url, "a", "b")
    assert captures.fetch(["b", "gone", "a"]) == {"b": b"x" * 100, "gone": None, "a": b"x" * 100}
    assert captures.fetch([]) == {}


async def test_an_expired_capture_is_still_indexed_and_a_lost_one_is_not(valkey, captures, redis_client):
    await shipped(valkey.url, "a")
    redis_client.delete(redis_keys.capture("a"))
    assert captures.fetch(["a", "b"]) == {"a": None, "b": None}
    assert captures.indexed(["a", "b"]) == {"a"}
    assert captures.indexed([]) == set()


async def test_presence_is_told_without_fetching(valkey, captures, redis_client):
    await shipped(valkey.url, "a", "b")
    redis_client.delete(redis_keys.capture("b"))
    assert captures.present(["a", "b", "c"]) == {"a"}
    assert captures.present([]) == set()


async def test_a_forgotten_capture_leaves_nothing_behind(valkey, captures, redis_client):
    await shipped(valkey.url, "a", "b", size=300)
    assert bytes_in_use(redis_client) == 600
    captures.forget(["a"])
    assert captures.fetch(["a"]) == {"a": None}
    assert captures.waiting_ids() == ["b"]
    assert bytes_in_use(redis_client) == 300
    captures.forget([])


async def test_forgetting_again_or_at_once_gives_back_bytes_once(valkey, captures, redis_client):
    ids = [f"c{number}" for number in range(50)]
    await shipped(valkey.url, *ids)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(captures.forget, [ids] * 4))
    captures.forget(["never seen"])
    assert bytes_in_use(redis_client) == 0
    assert captures.waiting() == 0


async def test_what_is_forgotten_while_redis_is_full_gives_back_its_bytes(valkey, captures, redis_client):
    await shipped(valkey.url, "a", "b", size=300)
    redis_client.config_set("maxmemory", 1)
    try:
        captures.forget(["a"])
    finally:
        redis_client.config_set("maxmemory", 0)
    assert captures.waiting_ids() == ["b"]
    assert bytes_in_use(redis_client) == 300


async def test_due_are_those_that_should_have_been_settled_until_they_are_postponed(valkey, captures):
    await shipped(valkey.url, "a", "b")
    now = time.time()
    assert captures.due(now, 10) == []
    assert captures.due(now + 1000, 10) == ["a", "b"]
    assert captures.due(now + 1000, 1) == ["a"]
    captures.postpone(["a", "forgotten"], now + 2000)
    assert captures.due(now + 1000, 10) == ["b"]
    assert captures.waiting() == 2


async def test_all_waiting_ids_are_found_however_many(valkey, captures, redis_client):
    ids = [f"c{number:05}" for number in range(12_000)]
    redis_client.zadd(redis_keys.CAPTURES_DUE, dict.fromkeys(ids, 1.0))
    assert captures.waiting_ids() == ids


def issued(tier, version, *, at):
    return Route(model="m", weights={tier: 100}, version=version, issued_at=at)


def test_a_route_never_goes_back_to_one_issued_earlier(captures):
    assert captures.read_route("m") is None
    assert captures.publish_route(issued("w8a8", 1, at=20.5)) is Publication.TOLD
    assert captures.publish_route(issued("bf16", 9, at=20.25)) is Publication.OLDER
    assert captures.publish_route(issued("bf16", 0, at=20.5)) is Publication.OLDER
    assert captures.read_route("m") == issued("w8a8", 1, at=20.5)
    assert captures.publish_route(issued("w8a8", 1, at=20.5)) is Publication.TOLD
    assert captures.publish_route(Route.only("n", "bf16", 1)) is Publication.TOLD
    assert captures.read_route("n") == Route.only("n", "bf16", 1)


@pytest.mark.parametrize(
    "there",
    [
        '{"model":"m","weights":{"bf16":100},"version":1000000000000000000}',
        '{"model":"m","weights":{"bf16":100},"version":9,"issued_at":1e18}',
        '{"model":"m","weights":{"bf16":100},"version":9,"issued_at":"soon"}',
        "[1]",
        "{",
    ],
)
def test_a_route_that_nobody_can_have_issued_gives_way(captures, redis_client, there):
    redis_client.hset(redis_keys.ROUTES, "m", there)
    assert captures.publish_route(issued("w8a8", 1, at=time.time())) is Publication.TOLD
    assert captures.read_route("m") == Route.only("m", "w8a8", 1)


def test_a_route_is_not_published_before_its_time(captures):
    assert captures.publish_route(issued("w8a8", 1, at=time.time() + 200)) is Publication.TOLD
    assert captures.publish_route(issued("bf16", 2, at=time.time() + 400)) is Publication.FUTURE
    assert captures.read_route("m") == Route.only("m", "w8a8", 1)


def test_an_unreadable_route_is_an_error_and_gives_way_to_a_readable_one(captures, redis_client):
    for rubbish in ("{", "[]", '"x"', "3"):
        redis_client.hset(redis_keys.ROUTES, "m", rubbish)
        with pytest.raises(ValueError):  # noqa: PT011 - JSON's words differ
            captures.read_route("m")
        assert captures.publish_route(Route.only("m", "w8a8", 2)) is Publication.TOLD
        assert captures.read_route("m") == Route.only("m", "w8a8", 2)


def test_a_store_that_is_down_is_an_error_soon(own_valkey):
    own_valkey.freeze()
    captures = open_captures(own_valkey.url, timeout=0.3)
    started = time.monotonic()
    with pytest.raises(redis.RedisError):
        captures.ping()
    assert time.monotonic() - started < PATIENCE / 2
    captures.close()
    own_valkey.thaw()
