"""The proxy's side of the store, on a real Valkey that is stopped, frozen, full and restarted."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import time
from contextlib import asynccontextmanager

import pytest

from service.fleet import Route
from service.store.redis import redis_keys
from service.store.redis.capture import seal_all
from service.store.redis.captures import Captures
from service.store.redis.counters import Count, ledger_key
from service.store.redis.intake import BYTES_WIDTH, Shipment
from service.store.redis.shipping import (
    DUE_SECONDS,
    CaptureStore,
    StoreDown,
    StoreFull,
    StoreRefused,
)
from tests.patience import PATIENCE

PLENTY = 1 << 30


@asynccontextmanager
async def opened(url, *, broker=None, **limits):
    store = CaptureStore.open(url, broker or url, **{"timeout": PATIENCE} | limits)
    try:
        yield store
    finally:
        await store.aclose()


def batch_of(*ids, size=100):
    return [Shipment(id=each, blob=each.encode().ljust(size, b".")) for each in ids]


async def until(holds):
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.02)


async def until_due(server, capture):
    with server.client() as client:
        await until(lambda: client.zscore(redis_keys.CAPTURES_DUE, capture) is not None)


async def ship(store, batch, *, ttl=60, max_bytes=PLENTY):
    await store.ship(batch, ttl_seconds=ttl, max_bytes=max_bytes, queue="replay")


async def test_a_batch_is_stored_with_a_time_to_live_indexed_and_enqueued_once(valkey, redis_client):
    before = time.time()
    async with opened(valkey.url) as store:
        await ship(store, batch_of("a", "b"), ttl=60)
    assert redis_client.get(redis_keys.capture("a")).startswith(b"a.")
    assert 0 < redis_client.ttl(redis_keys.capture("b")) <= 60
    due = dict(redis_client.zrange(redis_keys.CAPTURES_DUE, 0, -1, withscores=True))
    assert due.keys() == {b"a", b"b"}
    assert before + DUE_SECONDS <= due[b"a"] <= time.time() + DUE_SECONDS
    assert redis_client.llen("replay") == 1


async def test_only_the_sealed_capture_holds_anything_of_the_prompt(
    valkey, redis_client, capture_of, keyring
):
    capture = capture_of("i-1-00000000", tenant="acme-tenant")
    async with opened(valkey.url) as store:
        [blob] = seal_all([capture], keyring)
        await ship(store, [Shipment(id=capture.id, blob=blob)])
        await store.write_ledger("i", {ledger_key(Count.SEEN, "m"): 1}, closed=False)
    readers = {
        b"string": redis_client.get,
        b"list": lambda key: b"".join(redis_client.lrange(key, 0, -1)),
        b"zset": lambda key: repr(redis_client.zrange(key, 0, -1, withscores=True)).encode(),
        b"hash": lambda key: repr(redis_client.hgetall(key)).encode(),
        b"set": lambda key: repr(redis_client.smembers(key)).encode(),
    }
    everything = {key: readers[redis_client.type(key)](key) for key in redis_client.keys("*")}
    assert b"replay" in everything
    for text in everything.values():
        for secret in (b"secret", b"messages", b"choices", b"acme"):
            assert secret not in text
    assert capture.id.encode() not in everything[redis_keys.capture(capture.id).encode()]


async def test_an_empty_batch_is_nothing(valkey, redis_client):
    async with opened(valkey.url) as store:
        await ship(store, [])
    assert redis_client.keys("*") == []


async def test_a_stopped_store_is_down_at_once_and_used_again_when_it_is_back(own_valkey):
    async with opened(own_valkey.url, timeout=PATIENCE) as store:
        await ship(store, batch_of("a"))
        own_valkey.kill()
        for each in ("b", "c"):
            started = time.monotonic()
            with pytest.raises(StoreDown):
                await ship(store, batch_of(each))
            assert time.monotonic() - started < PATIENCE / 2
        own_valkey.start()
        await ship(store, batch_of("d"))
    with own_valkey.client() as client:
        assert client.zrange(redis_keys.CAPTURES_DUE, 0, -1) == [b"d"]


async def test_a_frozen_store_is_down_within_its_time_limit_and_leaves_one_batch_in_doubt(own_valkey):
    async with opened(own_valkey.url, timeout=1.0) as store:
        await ship(store, batch_of("a"))
        own_valkey.freeze()
        for number in range(3):
            started = time.monotonic()
            with pytest.raises(StoreDown):
                await ship(store, batch_of(f"frozen{number}"))
            assert time.monotonic() - started < PATIENCE / 2
        own_valkey.thaw()
        await until_due(own_valkey, b"frozen0")
        await ship(store, batch_of("z"))
        await store.write_ledger("i", {ledger_key(Count.SEEN, "m"): 5}, closed=False)
    with own_valkey.client() as client:
        # The first batch sat in the socket and arrived; the ledger says that it might have.
        assert set(client.zrange(redis_keys.CAPTURES_DUE, 0, -1)) == {b"a", b"frozen0", b"z"}
        assert client.smembers(redis_keys.in_doubt("i")) == {b"frozen0"}


async def test_a_cancelled_batch_is_in_doubt_as_well(own_valkey):
    async with opened(own_valkey.url, timeout=5) as store:
        await ship(store, batch_of("a"))
        own_valkey.freeze()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await ship(store, batch_of("b"))
        own_valkey.thaw()
        await until_due(own_valkey, b"b")
        await store.write_ledger("i", {}, closed=True)
    with own_valkey.client() as client:
        assert client.smembers(redis_keys.in_doubt("i")) == {b"b"}


async def test_ledger_and_ping_of_a_frozen_store_end_within_their_time_limit(own_valkey):
    async with opened(own_valkey.url, timeout=1.0) as store:
        await store.ping()
        own_valkey.freeze()
        started = time.monotonic()
        with pytest.raises(StoreDown):
            await store.write_ledger("i", {ledger_key(Count.SEEN, "m"): 5}, closed=False)
        with pytest.raises(StoreDown):
            await store.ping()
        assert time.monotonic() - started < PATIENCE / 2
        own_valkey.thaw()


async def test_the_store_is_full_at_max_bytes_and_has_room_again_after_forgetting(valkey, redis_client):
    async with opened(valkey.url) as store:
        await ship(store, batch_of("a", size=600), max_bytes=1000)
        with pytest.raises(StoreFull, match="600 bytes in 1 captures wait; 1000 bytes are allowed"):
            await ship(store, batch_of("b", size=600), max_bytes=1000)
        Captures(redis_client).forget(["a"])
        await ship(store, batch_of("b", size=600), max_bytes=1000)
    assert redis_client.zrange(redis_keys.CAPTURES_DUE, 0, -1) == [b"b"]


async def test_many_proxies_together_never_overshoot(valkey, redis_client):
    async def fill(store):
        for number in range(100):
            try:
                await ship(store, batch_of(f"{id(store)}-{number}", size=1000), max_bytes=20_000)
            except StoreFull:
                return

    async with opened(valkey.url) as one, opened(valkey.url) as two, opened(valkey.url) as three:
        await asyncio.gather(fill(one), fill(two), fill(three))
    used = sum(redis_client.strlen(key) for key in redis_client.keys("tiergate:capture:*"))
    assert 20_000 - 1000 <= used <= 20_000


async def test_bytes_of_an_interval_whose_captures_have_expired_are_no_longer_counted(valkey, redis_client):
    past = int(time.time()) // BYTES_WIDTH * BYTES_WIDTH
    redis_client.hset(redis_keys.CAPTURES_BYTES, str(past), 999_999)
    async with opened(valkey.url) as store:
        await ship(store, batch_of("a", size=600), max_bytes=1000)
        with pytest.raises(StoreFull):
            await ship(store, batch_of("b", size=600), max_bytes=1000)
    assert str(past).encode() not in redis_client.hgetall(redis_keys.CAPTURES_BYTES)


async def test_a_server_without_memory_is_full_and_takes_nothing_of_the_batch(own_valkey):
    with own_valkey.client() as client:
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("maxmemory", client.info("memory")["used_memory"] - 1000)
        async with opened(own_valkey.url) as store:
            with pytest.raises(StoreFull, match="out of memory"):
                await ship(store, batch_of("a", "b"))
            client.config_set("maxmemory", 0)
            assert client.keys("*") == []
            await store.write_ledger("i", {}, closed=False)
            assert client.exists(redis_keys.in_doubt("i")) == 0


async def test_a_store_that_refuses_is_down_and_leaves_nothing_in_doubt(own_valkey, free_port):
    with own_valkey.client() as client:
        client.replicaof("127.0.0.1", free_port)
        async with opened(own_valkey.url) as store:
            with pytest.raises(StoreRefused, match="read only") as refused:
                await ship(store, batch_of("a"))
            assert "a..." not in str(refused.value)  # a log is no place for what a command holds
            client.replicaof("NO", "ONE")
            await ship(store, batch_of("b"))
            await store.write_ledger("i", {}, closed=False)
        assert client.exists(redis_keys.in_doubt("i")) == 0
        client.config_set("requirepass", "x")
        async with opened(own_valkey.url) as store:
            with pytest.raises(StoreDown, match="refused"):
                await ship(store, batch_of("c"))


@pytest.mark.parametrize(
    "answer", [b"*1\r\n+X\r\n", b":5\r\n", b"_\r\n", b"+\xff\r\n", b"HTTP/1.1 400 No\r\n\r\n"]
)
async def test_a_peer_that_is_no_redis_is_a_store_that_is_down(answer):
    async def talk(reader, writer):
        while await reader.read(65536):
            writer.write(answer)
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    url = f"redis://name:secret@127.0.0.1:{server.sockets[0].getsockname()[1]}/0"
    async with opened(url, timeout=0.2) as store:
        following = asyncio.get_running_loop().create_task(store.follow_routes(lambda route: None))
        for ask in (
            lambda: ship(store, batch_of("a")),
            lambda: store.write_ledger("i", {}, closed=False),
            store.ping,
        ):
            with pytest.raises(StoreDown):
                await ask()
        await asyncio.sleep(0.3)
        assert not following.done()
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    server.close()
    await server.wait_closed()


@pytest.mark.parametrize("key", [redis_keys.CAPTURES_BYTES, redis_keys.CAPTURES_DUE, "replay"])
async def test_a_key_that_holds_something_else_refuses_the_batch_whole(valkey, redis_client, key):
    redis_client.set(key, "not what it should be")
    async with opened(valkey.url) as store:
        with pytest.raises(StoreRefused, match="WRONGTYPE"):
            await ship(store, batch_of("a", "b"))
        await store.write_ledger("i", {}, closed=False)
    assert redis_client.keys("tiergate:capture:*") == []
    assert redis_client.keys("tiergate:captures:*") == ([key.encode()] if key != "replay" else [])
    assert redis_client.exists(redis_keys.in_doubt("i")) == 0


async def test_a_hash_of_bytes_that_is_no_account_refuses_the_batch_whole(valkey, redis_client):
    async with opened(valkey.url) as store:
        for field, amount in (("x", "1"), (str(int(time.time()) + 600), "many")):
            redis_client.delete(redis_keys.CAPTURES_BYTES)
            redis_client.hset(redis_keys.CAPTURES_BYTES, field, amount)
            with pytest.raises(StoreRefused):
                await ship(store, batch_of("a"))
    assert redis_client.keys("tiergate:capture:*") == []
    assert redis_client.exists(redis_keys.CAPTURES_DUE) == 0


async def test_an_id_that_would_be_taken_for_two_is_refused_whole(valkey, redis_client):
    async with opened(valkey.url) as store:
        with pytest.raises(StoreRefused, match="white space"):
            await ship(store, batch_of("a", "b c"))
    assert redis_client.keys("*") == []


async def test_a_ship_is_enqueued_in_messages_of_the_size_asked_for(valkey, redis_client):
    async with opened(valkey.url) as store:
        await store.ship(batch_of(*"abcde"), ttl_seconds=60, max_bytes=PLENTY, queue="replay", per_message=2)
    taken = []
    while message := redis_client.rpop("replay"):
        taken.append(json.loads(base64.b64decode(json.loads(message)["body"]))[0][0])
    assert taken == [["a", "b"], ["c", "d"], ["e"]]


async def test_sealed_bytes_of_any_kind_arrive_as_they_were(valkey, redis_client):
    blobs = {"a": bytes(range(256)), "b": b"\r\n$5\r\n 1 2", "c": os.urandom(70_000), "d": b"\0"}
    async with opened(valkey.url) as store:
        await ship(store, [Shipment(id=id, blob=blob) for id, blob in blobs.items()])
    assert {id: redis_client.get(redis_keys.capture(id)) for id in blobs} == blobs
    assert sum(int(each) for each in redis_client.hvals(redis_keys.CAPTURES_BYTES)) == sum(
        map(len, blobs.values())
    )


async def test_a_server_that_forgot_its_scripts_takes_the_next_batch(valkey, redis_client):
    async with opened(valkey.url) as store:
        await ship(store, batch_of("a"))
        redis_client.script_flush()
        await ship(store, batch_of("b"))
    assert redis_client.zcard(redis_keys.CAPTURES_DUE) == 2


async def test_a_server_whose_persistence_fails_refuses_whole_and_is_used_again_later(own_valkey):
    """Its disk is full: MISCONF, until a snapshot can be written."""
    with own_valkey.client() as client:
        client.config_set("save", "3600 1")
        blocked = own_valkey.directory / "dump.rdb"
        blocked.mkdir()  # cannot be replaced by a snapshot
        client.bgsave()
        async with asyncio.timeout(PATIENCE):
            while client.info("persistence")["rdb_last_bgsave_status"] != "err":  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        async with opened(own_valkey.url) as store:
            with pytest.raises(StoreRefused, match="MISCONF"):
                await ship(store, batch_of("a", "b"))
            with pytest.raises(StoreDown, match="MISCONF"):
                await store.write_ledger("i", {}, closed=False)
            assert client.keys("*") == []
            blocked.rmdir()
            client.save()
            await ship(store, batch_of("c"))
            await store.write_ledger("i", {}, closed=False)
        assert client.zrange(redis_keys.CAPTURES_DUE, 0, -1) == [b"c"]
        assert client.exists(redis_keys.in_doubt("i")) == 0


async def test_a_broker_of_its_own_that_is_down_loses_no_capture(own_valkey, valkey, redis_client):
    own_valkey.kill()
    async with opened(valkey.url, broker=own_valkey.url, timeout=PATIENCE) as store:
        await ship(store, batch_of("a"))
    assert Captures(redis_client).due(time.time() + DUE_SECONDS, 10) == ["a"]
    assert redis_client.llen("replay") == 0


async def test_a_broker_of_its_own_gets_the_messages(own_valkey, valkey, redis_client):
    async with opened(valkey.url, broker=own_valkey.url) as store:
        await ship(store, batch_of("a"))
    with own_valkey.client() as broker:
        assert broker.llen("replay") == 1
        assert broker.zcard(redis_keys.CAPTURES_DUE) == 0
    assert redis_client.llen("replay") == 0


async def test_the_ledger_holds_counters_and_what_is_set_aside(valkey, redis_client):
    seen, other = ledger_key(Count.SEEN, "m"), ledger_key(Count.SEEN, "n|ü")
    async with opened(valkey.url) as store:
        await store.write_ledger("i", {seen: 5}, reserved=100, closed=False)
        await store.write_ledger("i", {seen: 26, other: 2}, reserved=28, closed=True)
    ledger = redis_client.hgetall(redis_keys.ledger("i"))
    assert ledger[seen.encode()] == b"26"
    assert ledger[redis_keys.RESERVED.encode()] == b"28"
    assert ledger[redis_keys.CLOSED.encode()] == b"1"
    assert redis_client.smembers(redis_keys.LEDGER_INSTANCES) == {b"i"}


class Follower:
    """Keeps the routes it is told, in order."""

    def __init__(self):
        self.routes = []
        self._told = asyncio.Queue()

    async def until(self, version):
        async with asyncio.timeout(PATIENCE):
            while not self.routes or self.routes[-1].version != version:
                self.routes.append(await self._told.get())

    def tell(self, route):
        self._told.put_nowait(route)


@asynccontextmanager
async def following(url, **options):
    follower = Follower()
    async with opened(url, **options) as store, asyncio.TaskGroup() as group:
        task = group.create_task(store.follow_routes(follower.tell))
        try:
            yield follower
        finally:
            task.cancel()


def route(version, tier="w8a8", model="m"):
    return Route.only(model, tier, version)


async def test_a_published_route_is_followed(valkey, redis_client):
    captures = Captures(redis_client)
    captures.publish_route(route(1))
    async with following(valkey.url) as follower:
        await follower.until(1)
        captures.publish_route(route(2, "bf16"))
        await follower.until(2)
    assert follower.routes == [route(1), route(2, "bf16")]


async def test_a_follower_stops_at_once_whenever_it_is_cancelled(valkey, redis_client):
    captures = Captures(redis_client)
    for version in range(1, 30):
        async with following(valkey.url) as follower:
            captures.publish_route(route(version))
            await follower.until(version)
            await asyncio.sleep(version * 0.0005)


async def test_a_route_whose_announcement_was_lost_is_followed(valkey, redis_client):
    Captures(redis_client).publish_route(route(1))
    async with following(valkey.url) as follower:
        await follower.until(1)
        redis_client.hset(redis_keys.ROUTES, "m", redis_keys.route_to_json(route(3)))
        await follower.until(3)


async def test_a_follower_never_goes_back_and_skips_what_it_cannot_read(valkey, redis_client, caplog):
    def write(model, text):
        redis_client.hset(redis_keys.ROUTES, model, text)

    def issued(at, version):
        return redis_keys.route_to_json(Route(model="m", weights={"a": 100}, version=version, issued_at=at))

    async with following(valkey.url) as follower:
        write("m", issued(50.0, 5))
        await follower.until(5)
        write("m", issued(49.0, 6))  # of a Redis that was restored, say
        await asyncio.sleep(0.7)
        write("m", issued(51.0, 1))  # of a database that was made anew
        await follower.until(1)
        write("m", issued(time.time() + 1000, 7))
        write("broken", "{")
        write("endless", '{"model":"m","weights":{"a":100},"version":Infinity}')
        write("huge", '{"model":"m","weights":{"a":100},"version":1000000000000000000}')
        write("listed", '{"model":["m"],"weights":{"a":100},"version":9}')
        await until(lambda: "'broken'" in caplog.text and "yet to come" in caplog.text)
        await asyncio.sleep(1.2)
        write("m", issued(time.time(), 2))
        await follower.until(2)
    assert [each.version for each in follower.routes] == [5, 1, 2]
    assert caplog.text.count("'broken'") == 1  # looked at twice a second, and told once
    assert caplog.text.count("yet to come") == 1


async def test_the_route_stands_while_the_store_is_away_and_is_followed_after_its_return(own_valkey):
    with own_valkey.client() as client:
        Captures(client).publish_route(route(1))
    async with following(own_valkey.url, timeout=0.3) as follower:
        await follower.until(1)
        own_valkey.kill()
        await asyncio.sleep(0.7)
        own_valkey.start()
        with own_valkey.client() as client:
            Captures(client).publish_route(route(2))  # as the guard does
            await follower.until(2)
            own_valkey.freeze()
            await asyncio.sleep(1.2)
            own_valkey.thaw()
            await asyncio.sleep(0.1)
            Captures(client).publish_route(route(3))
            await follower.until(3)
    assert [each.version for each in follower.routes] == [1, 2, 3]


async def test_the_queue_survives_as_json_that_names_the_task(valkey, redis_client):
    async with opened(valkey.url) as store:
        await ship(store, batch_of("a", "b"))
    message = json.loads(redis_client.lpop("replay"))
    assert message["headers"]["task"] == "workers.tasks.replay_captures"
