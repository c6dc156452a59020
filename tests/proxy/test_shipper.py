"""The store may be down, full, slow or frozen: clients notice nothing, and every capture is accounted for."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import redis

from service.proxy.budget import Budget
from service.proxy.captures.shipper import SEAL_IN_THREAD_BYTES, SHIP_CAPTURES, Shipper
from service.proxy.config import Mirroring, ProxyConfig
from service.proxy.gauges.meters import Ledger
from service.store.redis.capture import Capture, Ending, unseal
from service.store.redis.shipping import CaptureStore, StoreDown, StoreFull
from tests.conftest import ValkeyServer
from tests.patience import PATIENCE
from tests.proxy.raw_client import post
from tests.proxy.standing import (
    KEYRING,
    MemoryStore,
    Proxy,
    StartBackend,
    StartProxy,
    eventually,
    ladder,
    turns,
)

STORE_SECONDS = 2.0
"""How long a question to the store may take: what clients must not wait for."""


def capture(number: int, body: bytes = b"{}") -> Capture:
    return Capture(
        id=f"test-{number}-00000000",
        model="m",
        tier="t0",
        path="/v1/chat/completions",
        request_body=body,
        status=200,
        response_body=b"{}",
        ending=Ending.COMPLETE,
        started_at=0.0,
        tenant="",
        stratum="s",
    )


def shipper(store: MemoryStore, **changes: int) -> tuple[Shipper, Ledger, Budget]:
    ledger, budget = Ledger(), Budget(10_000_000)
    return Shipper(store, KEYRING, replace(Mirroring(), **changes), budget, ledger), ledger, budget


async def test_captures_go_out_sealed_in_order_and_many_at_once() -> None:
    store = MemoryStore()
    ship, ledger, budget = shipper(store, batch=16)
    for number in range(SHIP_CAPTURES * 2 + 8):
        budget.take(4)
        ship.offer(capture(number), 4)
    await ship.drain(PATIENCE)
    assert [len(batch) for batch in store.batches] == [SHIP_CAPTURES, SHIP_CAPTURES, 8]
    assert store.per_message == 16
    ids = [f"test-{number}-00000000" for number in range(SHIP_CAPTURES * 2 + 8)]
    assert [each.id for each in store.captures] == ids
    assert ledger.counters["shipped|m"] == len(ids)
    assert budget.used == 0


async def test_a_batch_ends_at_its_bytes_too() -> None:
    store = MemoryStore()
    ship, _, budget = shipper(store)
    for number in range(4):
        budget.take(1_500_000)
        ship.offer(capture(number, b"x" * 1_500_000), 1_500_000)
    await ship.drain(PATIENCE)
    assert [len(batch) for batch in store.batches] == [2, 2]


async def test_a_few_captures_wait_for_company_and_many_do_not() -> None:
    store = MemoryStore()
    ship, _, _ = shipper(store)
    running = asyncio.get_running_loop().create_task(ship.run())
    async with asyncio.timeout(PATIENCE):
        while [len(batch) for batch in store.batches] != [3]:  # unless the machine holds us up for that long
            store.batches.clear()
            for number in range(3):
                ship.offer(capture(number), 0)
                await turns(5)
            await eventually(lambda: len(store.captures) == 3)
    for number in range(3 * SHIP_CAPTURES):
        ship.offer(capture(number), 0)
    await eventually(lambda: len(store.captures) == 3 + 3 * SHIP_CAPTURES)
    assert [len(batch) for batch in store.batches] == [3] + [SHIP_CAPTURES] * 3
    ship.offer(capture(0), 0)
    await eventually(lambda: len(store.batches) == 5)
    ship.stop()
    await running


async def test_streams_have_their_turn_while_many_captures_are_sealed() -> None:
    store = MemoryStore()
    ship, _, _ = shipper(store)
    body = os.urandom(10_000)
    for number in range(SHIP_CAPTURES):
        ship.offer(capture(number, body), len(body))
    ship.offer(capture(SHIP_CAPTURES, os.urandom(SEAL_IN_THREAD_BYTES + 1)), SEAL_IN_THREAD_BYTES + 1)
    turns = 0

    async def stream() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    streaming = asyncio.get_running_loop().create_task(stream())
    await ship.drain(PATIENCE)
    streaming.cancel()
    assert len(store.captures) == SHIP_CAPTURES + 1
    assert turns >= SHIP_CAPTURES * len(body) // SEAL_IN_THREAD_BYTES


@pytest.mark.parametrize(
    ("failure", "reason"), [(StoreDown("x"), "store_down"), (StoreFull("x"), "store_full")]
)
async def test_what_the_store_does_not_take_is_dropped_and_counted(failure: Exception, reason: str) -> None:
    store = MemoryStore()
    ship, ledger, budget = shipper(store)
    running = asyncio.get_running_loop().create_task(ship.run())
    store.failure = failure
    budget.take(4)
    ship.offer(capture(1), 4)
    await eventually(lambda: ledger.counters.get(f"dropped|m|{reason}") == 1)
    store.failure = None
    budget.take(4)
    ship.offer(capture(2), 4)
    await eventually(lambda: ledger.counters.get("shipped|m") == 1)
    assert budget.used == 0
    ship.stop()
    await running


async def test_a_defect_in_shipping_costs_the_capture_only() -> None:
    store = MemoryStore()
    ship, ledger, budget = shipper(store)
    running = asyncio.get_running_loop().create_task(ship.run())
    store.failure = RuntimeError("a defect")
    ship.offer(capture(1), 0)
    await eventually(lambda: ledger.counters.get("dropped|m|store_down") == 1)
    store.failure = None
    ship.offer(capture(2), 0)
    await eventually(lambda: ledger.counters.get("shipped|m") == 1)
    ship.stop()
    await running
    assert budget.used == 0


async def test_what_is_left_at_the_end_of_the_time_is_dropped() -> None:
    store = MemoryStore()
    store.hangs = True
    ship, ledger, _ = shipper(store)
    count = SHIP_CAPTURES * 40
    for number in range(count):
        ship.offer(capture(number), 0)
    started = time.monotonic()
    await ship.drain(0.5)
    assert time.monotonic() - started < 20, "not a second for each"
    assert ledger.counters["dropped|m|store_down"] == count


async def ask_repeatedly(proxy: Proxy, count: int) -> float:
    """What the quickest of `count` requests took, in seconds: who waits for something, all of them do."""
    took = []
    for _ in range(count):
        started = time.monotonic()
        answered = await proxy.ask(post())
        assert (answered.status, answered.body) == (200, b"{}")
        took.append(time.monotonic() - started)
    return min(took)


@pytest.mark.parametrize("fault", ["killed", "frozen"])
async def test_clients_do_not_notice_that_redis_is_gone_and_the_ledger_does(
    fault: str, own_valkey: ValkeyServer, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    store = CaptureStore.open(own_valkey.url, own_valkey.url, timeout=STORE_SECONDS)
    proxy = await start_proxy(ladder(backend.url), store=store)
    await ask_repeatedly(proxy, 5)
    await eventually(lambda: proxy.ledger.get("shipped|m") == 5)
    if fault == "killed":
        own_valkey.kill()
    else:
        own_valkey.freeze()
    assert await ask_repeatedly(proxy, 20) < STORE_SECONDS / 2
    await eventually(lambda: proxy.ledger.get("dropped|m|store_down", 0) > 0)
    if fault == "killed":
        own_valkey.start()
    else:
        own_valkey.thaw()
    asked, before = 25, proxy.ledger["shipped|m"]
    async with asyncio.timeout(PATIENCE):
        while proxy.ledger["shipped|m"] < before + 5:
            await ask_repeatedly(proxy, 1)
            asked += 1
            await asyncio.sleep(0.05)
    await proxy.plane.drain()
    await store.aclose()
    ledger = proxy.ledger
    assert ledger["seen|m"] == ledger["sampled|m"] == asked
    assert ledger["shipped|m"] + ledger["dropped|m|store_down"] == asked
    with own_valkey.client() as client:
        written = client.hgetall("tiergate:ledger:test")
    assert int(written[b"shipped|m"]) == ledger["shipped|m"]
    assert written[b"#closed"] == b"1"


def leave_no_memory(client: redis.Redis) -> None:
    client.config_set("maxmemory-policy", "noeviction")
    client.config_set("maxmemory", 1)


def make_room(client: redis.Redis) -> None:
    client.config_set("maxmemory", 0)


def fail_to_persist(client: redis.Redis) -> None:
    """As with a full disk: no snapshot can be written, and every write is refused (MISCONF)."""
    client.config_set("save", "3600 1")
    Path(str(client.config_get("dir")["dir"]), "dump.rdb").mkdir()
    client.bgsave()
    deadline = time.monotonic() + PATIENCE
    while client.info("persistence")["rdb_last_bgsave_status"] != "err":
        assert time.monotonic() < deadline
        time.sleep(0.02)


def persist(client: redis.Redis) -> None:
    Path(str(client.config_get("dir")["dir"]), "dump.rdb").rmdir()
    client.save()


def take_its_name(client: redis.Redis) -> None:
    client.set("tiergate:captures:bytes", "something else")


def give_it_back(client: redis.Redis) -> None:
    client.delete("tiergate:captures:bytes")


@pytest.mark.parametrize(
    ("harm", "heal", "reason"),
    [
        (leave_no_memory, make_room, "store_full"),
        (fail_to_persist, persist, "store_down"),
        (take_its_name, give_it_back, "store_down"),
    ],
)
async def test_clients_do_not_notice_that_redis_refuses_and_the_ledger_does(
    harm: Callable[[redis.Redis], None],
    heal: Callable[[redis.Redis], None],
    reason: str,
    own_valkey: ValkeyServer,
    start_backend: StartBackend,
    start_proxy: StartProxy,
) -> None:
    store = CaptureStore.open(own_valkey.url, own_valkey.url, timeout=STORE_SECONDS)
    proxy = await start_proxy(ladder((await start_backend()).url), store=store)
    await ask_repeatedly(proxy, 5)
    await eventually(lambda: proxy.ledger.get("shipped|m") == 5)
    with own_valkey.client() as client:
        await asyncio.to_thread(harm, client)
        assert await ask_repeatedly(proxy, 20) < STORE_SECONDS / 2
        await eventually(lambda: proxy.ledger.get(f"dropped|m|{reason}") == 20)
        await asyncio.to_thread(heal, client)
        await ask_repeatedly(proxy, 5)
        await eventually(lambda: proxy.ledger["shipped|m"] == 10)
        await proxy.plane.drain()
        await store.aclose()
        written = client.hgetall("tiergate:ledger:test")
        assert client.zcard("tiergate:captures:due") == 10
        assert client.exists("tiergate:ledger:test:in_doubt") == 0
    assert (int(written[b"shipped|m"]), written[b"#closed"]) == (10, b"1")
    assert int(written[f"dropped|m|{reason}".encode()]) == 20


async def test_a_capture_in_redis_is_sealed_and_the_queue_holds_ids_only(
    valkey: ValkeyServer, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    store = CaptureStore.open(valkey.url, valkey.url, timeout=PATIENCE)
    proxy = await start_proxy(ladder((await start_backend()).url), store=store)
    body = b'{"model":"m","messages":[{"role":"user","content":"a very private prompt"}]}'
    assert (await proxy.ask(post(body))).status == 200
    await eventually(lambda: proxy.ledger.get("shipped|m") == 1)
    with valkey.client() as client:
        [key] = client.keys("tiergate:capture:*")
        blob = client.get(key)
        assert 0 < client.ttl(key) <= Mirroring().ttl_seconds
        everything = b"".join(client.dump(each) or b"" for each in client.keys("*"))
        queued = client.lrange("replay", 0, -1)
    assert b"private prompt" not in everything
    assert len(queued) == 1
    id = key.decode().removeprefix("tiergate:capture:")
    assert unseal(id, blob, KEYRING).request_body == body
    await proxy.plane.drain()
    await store.aclose()


async def test_the_ledger_knows_a_process_before_its_first_request(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    """Or the captures of one that is killed in its first second would belong to nobody."""
    proxy = await start_proxy(ladder((await start_backend()).url))
    await turns()
    assert proxy.store.closed is False


def test_a_budget_gives_no_more_than_it_has() -> None:
    budget = Budget(10)
    assert budget.take(10)
    assert not budget.take(1)
    budget.give_back(4)
    assert budget.take(4)


def test_the_default_configuration_is_bounded() -> None:
    mirroring = ProxyConfig(ladders={}).mirroring
    assert mirroring.max_body < mirroring.buffer_bytes < mirroring.max_bytes
