"""Every capture counted once, whatever is delivered twice, dies, expires, or is in the way."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
import redis

from service.store.redis.capture import Ending, Keyring
from service.store.scored.leases import lease
from service.store.sql.database import Database
from service.store.traffic.ledger import account
from tests.conftest import ValkeyServer
from tests.workers.scripted import Reply, Script, ScriptedBackend
from tests.workers.walk import (
    BROKEN,
    GOOD,
    QUEUE,
    BenchMaker,
    always,
    exchange,
    orders,
    pairs_due,
    question,
    ship,
    tally,
    tier,
)
from workers.backends import Limits
from workers.probes import Probing
from workers.replay import replay_batch

Backends = Callable[[Script], ScriptedBackend]


def test_a_capture_is_gone_from_redis_once_it_is_recorded(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends, redis_client: redis.Redis
) -> None:
    server = backend(always(GOOD))
    bench = bench_of(tier("bf16", None, shadow=server.url), tier("w4a16", server.url))
    ids = ship(valkey.url, orders(3))
    replay_batch(bench, ids, delivery="1")
    assert bench.captures.waiting() == 0
    assert not any(redis_client.exists(f"tiergate:capture:{each}") for each in ids)
    assert account(bench.db, bench.captures).processed == 3


def test_everything_delivered_twice_is_counted_once(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    baseline, candidate = backend(always(GOOD)), backend(always(BROKEN))
    bench = bench_of(tier("bf16", None, shadow=baseline.url), tier("w4a16", candidate.url))
    ids = ship(valkey.url, orders(4))
    replay_batch(bench, ids, delivery="1")
    replay_batch(bench, ids, delivery="2")
    replay_batch(bench, ids, delivery="1")
    assert tally(bench, "w4a16", "structured_output").n == 4
    assert len(candidate.asked) == 4


def test_it_is_so_on_every_database(valkey: ValkeyServer, database: Database, backend: Backends) -> None:
    server = backend(always(BROKEN))
    maker = BenchMaker(redis_url=valkey.url, db=database)
    bench = maker(tier("bf16", None, shadow=server.url), tier("w4a16", server.url))
    ids = ship(valkey.url, orders(4))
    for delivery in ("1", "2"):
        replay_batch(bench, ids, delivery=delivery)
    found = tally(bench, "w4a16", "structured_output")
    assert (found.n, found.harm) == (4, 4)
    maker.close()


def test_who_comes_second_leaves_while_the_first_holds_the_lease(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    server = backend(always(GOOD))
    bench = bench_of(tier("bf16", None, shadow=server.url), tier("w4a16", server.url))
    ids = ship(valkey.url, orders(2))
    lease(bench.db, ids, owner="somebody else", now=time.time(), seconds=60)
    replay_batch(bench, ids, delivery="2")
    assert server.asked == []
    assert bench.captures.waiting() == 2


def test_a_lease_that_ran_out_is_taken_over(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    server = backend(always(GOOD))
    bench = bench_of(tier("bf16", None, shadow=server.url), tier("w4a16", server.url))
    ids = ship(valkey.url, orders(2))
    lease(bench.db, ids, owner="dead", now=time.time() - 200, seconds=120)
    replay_batch(bench, ids, delivery="2")
    assert tally(bench, "w4a16", "structured_output").n == 2


def test_a_recorded_capture_that_its_worker_could_not_forget_is_forgotten_by_the_next(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    server = backend(always(GOOD))
    bench = bench_of(tier("bf16", None, shadow=server.url), tier("w4a16", server.url))
    captures = orders(1)
    ids = ship(valkey.url, captures)
    replay_batch(bench, ids, delivery="1")
    ship(valkey.url, captures)  # as if it had never been deleted
    replay_batch(bench, ids, delivery="2")
    assert bench.captures.waiting() == 0
    assert tally(bench, "w4a16", "structured_output").n == 1


def test_a_capture_that_expired_is_counted_and_replayed_no_more(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends, redis_client: redis.Redis
) -> None:
    server = backend(always(GOOD))
    bench = bench_of(tier("bf16", None, shadow=server.url), tier("w4a16", server.url))
    ids = ship(valkey.url, orders(3))
    redis_client.delete(*(f"tiergate:capture:{each}" for each in ids[:2]))
    replay_batch(bench, ids, delivery="1")
    found = account(bench.db, bench.captures)
    assert (found.expired, found.processed) == (2, 1)
    assert bench.captures.waiting() == 0


def test_a_capture_that_redis_forgot_altogether_is_lost(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends, redis_client: redis.Redis
) -> None:
    server = backend(always(GOOD))
    bench = bench_of(tier("bf16", None, shadow=server.url), tier("w4a16", server.url))
    ids = ship(valkey.url, orders(2))
    redis_client.flushall()
    replay_batch(bench, ids, delivery="1")
    assert account(bench.db, bench.captures).lost == 2


def test_a_capture_under_another_key_is_left_for_whoever_has_it(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    server = backend(always(GOOD))
    tiers = tier("bf16", None, shadow=server.url), tier("w4a16", server.url)
    ids = ship(valkey.url, orders(2))
    replay_batch(
        bench_of(*tiers, keyring=Keyring(current="2", keys={"2": bytes(32)}), lease_seconds=0.01),
        ids,
        delivery="1",
    )
    assert server.asked == []
    time.sleep(0.02)
    bench = bench_of(*tiers)
    replay_batch(bench, ids, delivery="2")
    assert tally(bench, "w4a16", "structured_output").n == 2


@pytest.mark.parametrize(
    "body",
    [
        b"not json",
        b'{"model": "m", "messages": [{"role": "user", "content": [{"type": "image_url",'
        b' "image_url": {"url": "https://elsewhere/x.png"}}]}]}',
    ],
)
def test_what_cannot_be_put_to_another_backend_is_settled_without_pairs(
    body: bytes, valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    server = backend(always(GOOD))
    bench = bench_of(tier("bf16", None, shadow=server.url), tier("w4a16", server.url))
    capture = exchange(question("x"))
    ids = ship(valkey.url, [replace(capture, request_body=body)])
    replay_batch(bench, ids, delivery="1")
    assert server.asked == []
    assert account(bench.db, bench.captures).processed == 1
    assert pairs_due(bench) == {}


def test_the_broker_sees_ids_only(valkey: ValkeyServer, redis_client: redis.Redis) -> None:
    [capture] = [exchange(question("a very secret prompt"), "a very secret answer")]
    [capture_id] = ship(valkey.url, [capture])
    [message] = redis_client.lrange(QUEUE, 0, -1)
    assert b"secret" not in message
    assert json.loads(base64.b64decode(json.loads(message)["body"]))[0] == [[capture_id]]
    stored = redis_client.get(f"tiergate:capture:{capture_id}")
    assert stored is not None
    assert b"secret" not in stored


def test_leases_are_extended_while_a_candidate_is_slow(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    slow = backend(lambda asked: Reply(text=GOOD, wait=4.0))
    tiers = tier("bf16", "http://127.0.0.1:9"), tier("w4a16", slow.url)
    bench = bench_of(*tiers, lease_seconds=2.0)
    ids = ship(valkey.url, orders(1))
    stolen: list[str] = []

    is_over = threading.Event()

    def thief() -> None:
        while not is_over.wait(0.05):
            if slow.asked:  # it has been taken up
                stolen.extend(lease(bench.db, ids, owner="thief", now=time.time(), seconds=60))

    thread = threading.Thread(target=thief)
    thread.start()
    replay_batch(bench, ids, delivery="1")
    is_over.set()
    thread.join()
    assert stolen == []
    assert tally(bench, "w4a16", "structured_output").n == 1


def test_a_worker_that_is_stopping_gives_up_what_takes_too_long_and_records_the_rest(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    candidate = backend(lambda asked: Reply(text=GOOD, wait=600 if "number 1" in asked.prompt else 0))
    tiers = tier("bf16", "http://127.0.0.1:9"), tier("w4a16", candidate.url)
    bench = bench_of(*tiers, limits=Limits(timeout_seconds=600), stopping=lambda: True, drain_seconds=0.2)
    ids = ship(valkey.url, orders(2))
    began = time.monotonic()
    replay_batch(bench, ids, delivery="1")
    assert time.monotonic() - began < 120
    assert account(bench.db).processed == 1
    # Released, not held until its lease runs out.
    assert lease(bench.db, ids, owner="next", now=time.time(), seconds=60) == [ids[1]]


def test_one_capture_that_we_trip_over_does_not_take_the_others_along(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    server = backend(always(GOOD))
    bench = bench_of(tier("bf16", None, shadow=server.url), tier("w4a16", server.url))
    captures = [*orders(2), replace(exchange(question("x")), model="unknown to the configuration")]
    replay_batch(bench, ship(valkey.url, captures), delivery="1")
    assert account(bench.db).processed == 2
    assert bench.captures.waiting() == 1


@pytest.mark.parametrize(
    "body",
    [
        question("x", metadata={"conversation_id": "half a pair: \ud83d"}),
        question("x", metadata={"conversation_id": "a \0 in it"}),
        question("x \ud83d \0", structured=True),
        question("x", max_tokens=10**3000),
        question("x", max_tokens=-1),
    ],
)
def test_a_strange_request_is_recorded_like_any_other(
    body: dict[str, object], valkey: ValkeyServer, database: Database, backend: Backends
) -> None:
    server = backend(always(GOOD))
    maker = BenchMaker(redis_url=valkey.url, db=database)
    bench = maker(tier("bf16", None, shadow=server.url), tier("w4a16", server.url), tokens_per_day=24_000_000)
    captures = [exchange(body, ending=Ending.CENSORED, status=None), *orders(2)]
    replay_batch(bench, ship(valkey.url, captures), delivery="1")
    maker.close()
    assert account(bench.db).processed == 3
    assert tally(bench, "w4a16", "refusal").n == 3
    assert bench.budget.take(1, now=time.time())


def test_what_an_engine_claims_to_have_spent_cannot_ruin_the_budget(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    claims = iter([10**300, -(10**9), 10**18])
    server = backend(lambda asked: Reply(text=GOOD, completion_tokens=next(claims)))
    bench = bench_of(tier("bf16", "http://127.0.0.1:9"), tier("w4a16", server.url), tokens_per_day=24_000)
    replay_batch(bench, ship(valkey.url, orders(3)), delivery="1")
    assert tally(bench, "w4a16", "structured_output").n == 3
    level = float(bench.captures.redis.hget("tiergate:shadow:tokens", "level"))
    assert 0 < level <= 1000


def test_a_context_that_takes_too_long_to_mine_counts_all_the_same_without_probes(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    server = backend(always(GOOD))
    bench = bench_of(
        tier("bf16", None, shadow=server.url),
        tier("w4a16", server.url),
        probing=Probing(per_capture=2, min_context_chars=1),
    )
    bench = replace(bench, terms=replace(bench.terms, seconds_per_capture=0.4))
    endless = question("编号为12345，" * 150_000, structured=True)
    replay_batch(bench, ship(valkey.url, [exchange(endless, GOOD)]), delivery="1")
    assert tally(bench, "w4a16", "structured_output").n == 1
    assert tally(bench, "w4a16", "long_context_recall") is None


def test_what_a_batch_did_is_counted_for_prometheus(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    server = backend(always(GOOD))
    bench = bench_of(tier("bf16", None, shadow=server.url), tier("w4a16", server.url))
    replay_batch(bench, ship(valkey.url, orders(2)), delivery="1")
    counts = bench.counts.read()
    assert counts['tiergate_worker_captures_total{ending="processed"}'] == 2
    assert counts['tiergate_worker_replays_total{model="m",outcome="answer",tier="w4a16"}'] == 2
    assert counts['tiergate_worker_batches_total{ending="recorded"}'] == 1
    assert counts['tiergate_worker_shadow_tokens_total{model="m"}'] == 4 * 15
    assert (
        counts[
            'tiergate_worker_pairs_total{arm="candidate",evaluator="structured_output",model="m",'
            'outcome="scored",tier="w4a16"}'
        ]
        == 2
    )
