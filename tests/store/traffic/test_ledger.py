"""The ledger from proxies' counters to an account, with real servers that forget, freeze and die."""

from __future__ import annotations

import asyncio
import time
from collections import Counter

import pytest

from service.store.redis import redis_keys
from service.store.redis.capture import capture_id
from service.store.redis.captures import Captures, open_captures
from service.store.redis.counters import Count, Dropped, Skipped, ledger_key
from service.store.redis.intake import Shipment
from service.store.redis.shipping import CaptureStore, StoreDown
from service.store.scored.leases import expire, lease, lose
from service.store.scored.pairs import record
from service.store.traffic.account import STALE_SECONDS
from service.store.traffic.ledger import account, copy_from_redis
from tests.patience import PATIENCE


class Proxy:
    """Counts and ships as a proxy does."""

    def __init__(self, url, instance="i", model="m", timeout=PATIENCE):
        self.store = CaptureStore.open(url, url, timeout=timeout)
        self.instance, self.model = instance, model
        self.counters = Counter()
        self.sequence = 0

    def count(self, what, detail="", amount=1):
        self.counters[ledger_key(what, self.model, detail)] += amount

    async def serve(self, skipped=0, sampled=0):
        """Requests of which the last are sampled and shipped together; the ids that were shipped."""
        self.sequence += skipped
        self.count(Count.SEEN, amount=skipped + sampled)
        self.count(Count.SKIPPED, Skipped.NOT_SAMPLED, skipped)
        self.count(Count.SAMPLED, amount=sampled)
        ids = []
        for _ in range(sampled):
            self.sequence += 1
            ids.append(capture_id(self.instance, self.sequence, self.model))
        try:
            await self.store.ship(
                [Shipment(id=each, blob=b"x") for each in ids],
                ttl_seconds=60,
                max_bytes=1 << 30,
                queue="replay",
            )
        except StoreDown:
            self.count(Count.DROPPED, Dropped.STORE_DOWN, sampled)
        else:
            self.count(Count.SHIPPED, amount=sampled)
        return ids

    async def write(self, closed=False, ahead=0):
        reserved = self.sequence + ahead
        await self.store.write_ledger(self.instance, self.counters, reserved=reserved, closed=closed)


@pytest.fixture
async def proxy(valkey):
    made = Proxy(valkey.url)
    yield made
    await made.store.aclose()


@pytest.fixture
def captures(redis_client):
    return Captures(redis_client)


def process(database, captures, ids):
    for each in ids:
        record(database, capture_id=each, owner="w", units=[], at=time.time())
    captures.forget(ids)


def numbers(found):
    return (
        found.seen,
        found.sampled,
        found.shipped,
        found.processed,
        found.expired,
        found.lost,
        found.waiting,
    )


async def test_it_reconciles_after_an_orderly_stop(database, proxy, captures):
    ids = await proxy.serve(skipped=5, sampled=6)
    await proxy.write(closed=True)
    process(database, captures, ids[:4])
    expire(database, ids[4:], at=2.0)
    captures.forget(ids[4:])
    copy_from_redis(database, captures.redis)
    for found in (account(database, captures), account(database)):
        assert numbers(found) == (11, 6, 6, 4, 2, 0, 0)
        assert found.balanced
        assert found.problems == ()
        assert found.skipped == {"not_sampled": 5}


async def test_a_closed_ledger_leaves_redis_once_it_is_copied_and_an_open_one_stays(
    database, valkey, proxy, captures, redis_client
):
    other = Proxy(valkey.url, instance="j")
    await other.serve(skipped=1)
    await other.write()
    await proxy.serve(skipped=1)
    await proxy.write(closed=True)
    assert copy_from_redis(database, redis_client) == 2
    assert redis_client.smembers(redis_keys.LEDGER_INSTANCES) == {b"j"}
    assert redis_client.exists(redis_keys.ledger("i")) == 0
    assert copy_from_redis(database, redis_client) == 1
    assert account(database).seen == 2
    await other.store.aclose()


async def test_counters_that_are_not_copied_yet_are_read_from_redis(database, proxy, captures):
    await proxy.serve(skipped=3, sampled=2)
    await proxy.write()
    assert account(database).seen == 0
    found = account(database, captures, now=time.time())
    assert numbers(found) == (5, 2, 2, 0, 0, 0, 2)
    assert found.balanced


async def test_copying_an_older_ledger_never_lowers_a_counter(database, proxy, captures, redis_client):
    await proxy.serve(skipped=3)
    await proxy.write()
    copy_from_redis(database, redis_client)
    redis_client.hset(redis_keys.ledger("i"), ledger_key(Count.SEEN, "m"), 1)
    copy_from_redis(database, redis_client)
    assert account(database).seen == account(database, captures).seen == 3


async def test_waiting_captures_are_counted_by_id_leased_or_not(database, proxy, captures, redis_client):
    ids = await proxy.serve(sampled=5)
    await proxy.write()
    lease(database, ids[:2], owner="w", now=1.0)
    redis_client.zrem(redis_keys.CAPTURES_DUE, ids[0])  # leased, and gone from Redis meanwhile
    record(database, capture_id=ids[4], owner="w", units=[], at=1.0)  # recorded, not forgotten yet
    found = account(database, captures, now=time.time())
    assert numbers(found) == (5, 5, 5, 1, 0, 0, 4)


async def test_what_redis_takes_with_its_memory_is_lost_by_number(database, own_valkey):
    proxy = Proxy(own_valkey.url)
    captures = open_captures(own_valkey.url)
    ids = await proxy.serve(sampled=5)
    process(database, captures, ids[:2])
    captures.close()
    own_valkey.kill()
    own_valkey.start()
    captures = open_captures(own_valkey.url)
    more = await proxy.serve(skipped=1, sampled=1)
    await proxy.write(closed=True)
    process(database, captures, more)
    copy_from_redis(database, captures.redis)
    found = account(database, captures)
    assert numbers(found) == (7, 6, 6, 3, 0, 3, 0)
    assert found.balanced
    captures.close()
    await proxy.store.aclose()


async def test_a_capture_that_a_worker_finds_missing_is_lost_once(database, proxy, captures):
    ids = await proxy.serve(sampled=3)
    await proxy.write(closed=True)
    captures.forget(ids)  # as if Redis had lost them
    lose(database, ids[:2], at=1.0)
    assert numbers(account(database, captures))[5] == 3
    lose(database, ids, at=2.0)
    assert numbers(account(database, captures))[5] == 3


async def test_it_reconciles_after_redis_was_frozen_though_a_dropped_batch_arrived(database, own_valkey):
    proxy = Proxy(own_valkey.url, timeout=1.0)
    captures = open_captures(own_valkey.url)
    first = await proxy.serve(sampled=2)
    own_valkey.freeze()
    doubtful = await proxy.serve(sampled=3)
    await proxy.serve(sampled=4)
    own_valkey.thaw()
    async with asyncio.timeout(PATIENCE):
        while not set(doubtful) <= set(captures.waiting_ids()):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    last = await proxy.serve(sampled=1)
    await proxy.write(closed=True)
    assert set(captures.waiting_ids()) == {*first, *doubtful, *last}
    before = account(database, captures)
    assert (before.shipped, before.dropped, before.waiting) == (6, {"store_down": 4}, 6)
    copy_from_redis(database, captures.redis)
    process(database, captures, [*first, *doubtful, *last])
    for found in (account(database, captures), account(database)):
        assert numbers(found) == (10, 10, 6, 6, 0, 0, 0)
        assert found.dropped == {"store_down": 4}
        assert found.balanced
    captures.close()
    await proxy.store.aclose()


async def test_it_reconciles_after_redis_was_stopped(database, own_valkey):
    proxy = Proxy(own_valkey.url)
    own_valkey.kill()
    await proxy.serve(skipped=2, sampled=3)
    with pytest.raises(StoreDown):
        await proxy.write()
    own_valkey.start()
    captures = open_captures(own_valkey.url)
    ids = await proxy.serve(sampled=2)
    await proxy.write(closed=True)
    process(database, captures, ids)
    copy_from_redis(database, captures.redis)
    found = account(database, captures)
    assert numbers(found) == (7, 5, 2, 2, 0, 0, 0)
    assert (found.dropped, found.balanced) == ({"store_down": 3}, True)
    captures.close()
    await proxy.store.aclose()


async def test_a_killed_proxy_is_told_with_what_it_can_have_taken(database, proxy, captures):
    await proxy.serve(skipped=4, sampled=2)
    await proxy.write(ahead=7)
    late = await proxy.serve(skipped=1, sampled=8)  # after its last write
    process(database, captures, late[:3])
    now = time.time()
    assert account(database, captures, now=now).unaccounted == 0
    found = account(database, captures, now=now + STALE_SECONDS + 5)
    assert found.unaccounted == 9  # captures carry numbers beyond those that were set aside
    assert account(database, captures, "m", now=now + STALE_SECONDS + 5).unaccounted == 8
    assert found.balanced
    assert "proxy i has been silent" in found.problems[0]
    assert found.lost == 0


async def test_a_killed_proxy_can_have_taken_no_more_than_was_set_aside(database, valkey, proxy, captures):
    await proxy.serve(skipped=4, sampled=2)
    await proxy.write(ahead=1000)
    await proxy.serve(skipped=900)  # after its last write, and of which nothing is left
    later = time.time() + STALE_SECONDS + 5
    assert account(database, captures, now=later).unaccounted == 1000
    assert account(database, captures, "m", now=later).unaccounted == 1000
    copy_from_redis(database, captures.redis)
    assert account(database, now=later).unaccounted == 1000
    await proxy.write(closed=True)
    assert account(database, captures, now=later).unaccounted == 0


async def test_models_have_accounts_of_their_own(database, valkey, captures):
    one, two = Proxy(valkey.url, "i", "m"), Proxy(valkey.url, "j", "n|ü")
    ids = await one.serve(skipped=1, sampled=2)
    others = await two.serve(sampled=3)
    for each in (one, two):
        await each.write(closed=True)
    process(database, captures, [ids[0], others[0]])
    expire(database, others[1:2], at=1.0)
    captures.forget(others[1:2])
    assert numbers(account(database, captures, "m")) == (3, 2, 2, 1, 0, 0, 1)
    assert numbers(account(database, captures, "n|ü")) == (3, 3, 3, 1, 1, 0, 1)
    assert numbers(account(database, captures, "unknown")) == (0,) * 7
    assert numbers(account(database, captures)) == (6, 5, 5, 2, 1, 0, 2)
    for each in (one, two):
        await each.store.aclose()


def test_pairs_are_accounted_for_by_tier_arm_and_evaluator(database, unit_of):
    record(
        database,
        capture_id="c1",
        owner="w",
        at=1.0,
        units=[
            unit_of("c1", ["pf", "u", "o"], evaluator="long_context_recall"),
            unit_of("c1", "n"),
            unit_of("c1", "pp", arm="control", tier="bf16"),
        ],
    )
    found = account(database, model="m")
    assert [(each.tier, each.arm, each.evaluator, each.due) for each in found.pairs] == [
        ("bf16", "control", "structured_output", 1),
        ("w8a8", "candidate", "long_context_recall", 3),
        ("w8a8", "candidate", "structured_output", 1),
    ]
    recall = found.pairs[1]
    assert (recall.scored, recall.unscored, recall.over_budget) == (1, {"shadow": 1}, 1)
    assert found.balanced
    assert account(database, model="another").pairs == ()
