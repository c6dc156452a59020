from __future__ import annotations

import time
from dataclasses import dataclass, field

import pytest
import redis

from service.store.redis.captures import Captures
from service.store.scored.leases import State, lease, release
from service.store.scored.pairs import record
from service.store.sql.database import Database
from service.store.traffic.ledger import account
from tests.conftest import ValkeyServer
from tests.workers.walk import exchange, question, ship
from workers.sweeper import LONG_QUEUE, Sweeper, Swept, sweep


@dataclass
class Queue:
    """Stands where Celery is: what was enqueued, and how long the queue is said to be."""

    messages: list[list[str]] = field(default_factory=list)
    length: int = 0

    @property
    def ids(self) -> list[str]:
        return [each for message in self.messages for each in message]


@pytest.fixture
def queue() -> Queue:
    return Queue()


@pytest.fixture
def sweeper(redis_client: redis.Redis, database: Database, queue: Queue) -> Sweeper:
    return Sweeper(
        db=database,
        captures=Captures(redis_client),
        enqueue=lambda ids: queue.messages.append(list(ids)),
        queued=lambda: queue.length,
        batch=4,
        lease_seconds=120.0,
    )


def shipped(valkey: ValkeyServer, count: int) -> list[str]:
    return ship(valkey.url, [exchange(question(f"number {n}")) for n in range(count)])


LATER = 200.0
"""Seconds after shipping: every capture is due."""


def test_what_is_not_due_yet_is_left_alone(valkey: ValkeyServer, sweeper: Sweeper, queue: Queue) -> None:
    shipped(valkey, 3)
    assert sweep(sweeper, now=time.time()) == Swept()
    assert queue.messages == []


def test_what_is_due_and_was_never_taken_is_enqueued_again_in_batches(
    valkey: ValkeyServer, sweeper: Sweeper, queue: Queue
) -> None:
    ids = shipped(valkey, 10)
    assert sweep(sweeper, now=time.time() + LATER) == Swept(enqueued=10)
    assert sorted(queue.ids) == sorted(ids)
    assert [len(message) for message in queue.messages] == [4, 4, 2]


def test_what_was_enqueued_again_is_not_enqueued_by_the_next_sweep(
    valkey: ValkeyServer, sweeper: Sweeper, queue: Queue
) -> None:
    shipped(valkey, 2)
    now = time.time() + LATER
    sweep(sweeper, now=now)
    assert sweep(sweeper, now=now + 30) == Swept()
    assert sweep(sweeper, now=now + 121) == Swept(enqueued=2)


def test_while_the_queue_is_long_only_what_a_dead_worker_held_is_enqueued(
    valkey: ValkeyServer, sweeper: Sweeper, queue: Queue
) -> None:
    ids = shipped(valkey, 3)
    now = time.time() + LATER
    lease(sweeper.db, ids[:1], owner="dead", now=now - 130, seconds=120)
    queue.length = LONG_QUEUE
    assert sweep(sweeper, now=now) == Swept(enqueued=1)
    assert queue.ids == ids[:1]


def test_what_somebody_holds_is_left_to_him(valkey: ValkeyServer, sweeper: Sweeper, queue: Queue) -> None:
    ids = shipped(valkey, 2)
    now = time.time() + LATER
    lease(sweeper.db, ids, owner="alive", now=now - 60, seconds=120)
    assert sweep(sweeper, now=now) == Swept()
    # And taken from him within half a minute after his lease ran out, not after another two.
    assert sweep(sweeper, now=now + 61) == Swept(enqueued=2)


def test_a_capture_that_ends_every_worker_goes_alone_and_ever_more_rarely(
    valkey: ValkeyServer, sweeper: Sweeper, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    ids = shipped(valkey, 4)
    now = time.time() + LATER
    lease(sweeper.db, ids[:2], owner="dies", now=now - 130, seconds=120)
    sweep(sweeper, now=now)
    assert sorted(queue.messages) == sorted([[ids[0]], [ids[1]], ids[2:]])
    record(sweeper.db, capture_id=ids[1], owner="lives", units=(), at=now)
    tries, last = 0, 0.0
    # A day, swept each minute while the pauses are short.
    for minute in (*range(120), *range(120, 24 * 60, 5)):
        at = now + 60 * minute
        queue.messages.clear()
        sweep(sweeper, now=at)
        if [ids[0]] in queue.messages:
            assert lease(sweeper.db, [ids[0]], owner="dies", now=at, seconds=120) == [ids[0]]
            tries, last = tries + 1, at
    assert 20 <= tries <= 40
    assert last > now + 22 * 3600
    assert f"capture {ids[0]} was taken" in caplog.text


def test_what_stopping_workers_gave_up_is_enqueued_together_and_at_once(
    valkey: ValkeyServer, sweeper: Sweeper, queue: Queue
) -> None:
    ids = shipped(valkey, 3)
    now = time.time() + LATER
    for _ in range(5):
        lease(sweeper.db, ids, owner="stops", now=now, seconds=120)
        release(sweeper.db, ids, owner="stops")
        queue.messages.clear()
        assert sweep(sweeper, now=now) == Swept(enqueued=3)
        assert len(queue.messages) == 1
        now += 121


def test_what_is_settled_is_forgotten(valkey: ValkeyServer, sweeper: Sweeper, queue: Queue) -> None:
    [settled, _] = shipped(valkey, 2)
    record(sweeper.db, capture_id=settled, owner="dead", units=(), at=time.time())
    assert sweep(sweeper, now=time.time() + LATER) == Swept(enqueued=1, forgotten=1)
    assert settled not in queue.ids
    assert sweeper.captures.waiting() == 1


def test_what_expired_unseen_is_counted_without_any_worker(
    valkey: ValkeyServer, sweeper: Sweeper, queue: Queue, redis_client: redis.Redis
) -> None:
    ids = shipped(valkey, 3)
    redis_client.delete(f"tiergate:capture:{ids[0]}")
    assert sweep(sweeper, now=time.time() + LATER) == Swept(enqueued=2, expired=1)
    assert account(sweeper.db).expired == 1
    assert sweeper.captures.waiting() == 2


def test_what_redis_forgot_while_a_dead_worker_held_it_is_lost(
    valkey: ValkeyServer, sweeper: Sweeper, queue: Queue, redis_client: redis.Redis
) -> None:
    ids = shipped(valkey, 2)
    now = time.time() + LATER
    lease(sweeper.db, ids, owner="dead", now=now - 130, seconds=120)
    redis_client.flushall()
    assert sweep(sweeper, now=now) == Swept(lost=2)
    assert account(sweeper.db).lost == 2
    assert sweep(sweeper, now=now + 30) == Swept()


def test_a_capture_that_is_being_recorded_is_not_settled_from_under_its_worker(
    valkey: ValkeyServer, sweeper: Sweeper, redis_client: redis.Redis
) -> None:
    [capture_id] = shipped(valkey, 1)
    now = time.time() + LATER
    lease(sweeper.db, [capture_id], owner="alive", now=now - 10, seconds=120)
    redis_client.delete(f"tiergate:capture:{capture_id}")  # it expired after the worker had fetched it
    assert sweep(sweeper, now=now) == Swept()
    assert record(sweeper.db, capture_id=capture_id, owner="alive", units=(), at=now, state=State.PROCESSED)
