from __future__ import annotations

import redis

from service.store.redis.worker_counts import WorkerCounts


def test_children_of_one_worker_add_up_and_workers_stay_apart(redis_client: redis.Redis) -> None:
    WorkerCounts(redis_client, worker="a@host").add({"x": 1, 'y{z="1"}': 2})
    WorkerCounts(redis_client, worker="a@host").add({"x": 4})
    WorkerCounts(redis_client, worker="b@host").add({"x": 8})
    assert WorkerCounts(redis_client, worker="a@host").read() == {"x": 5, 'y{z="1"}': 2}


def test_a_worker_that_counted_nothing_leaves_no_trace(redis_client: redis.Redis) -> None:
    counts = WorkerCounts(redis_client, worker="a@host")
    counts.add({})
    assert counts.read() == {}
    assert redis_client.keys() == []


def test_counts_outlive_a_worker_by_a_week(redis_client: redis.Redis) -> None:
    WorkerCounts(redis_client, worker="a@host").add({"x": 1})
    [key] = redis_client.keys()
    assert 6 * 86_400 < redis_client.ttl(key) <= 7 * 86_400
