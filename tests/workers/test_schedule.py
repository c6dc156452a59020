from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from celery import Celery

from tests.conftest import ValkeyServer
from workers.app import LONG_AGO
from workers.metrics import BEAT_MESSAGES, series
from workers.schedule import MOST_WAITING, QuietScheduler


@pytest.fixture
def scheduler(valkey: ValkeyServer) -> Iterator[QuietScheduler]:
    with Celery("test", broker=valkey.url, set_as_current=False) as app:
        app.conf.beat_schedule = {
            "each-second": {"task": "some.task", "schedule": 1.0, "options": {"queue": "guard"}}
        }
        made = QuietScheduler(app=app)
        yield made
        made.close()


def test_an_entry_that_is_due_is_enqueued(scheduler: QuietScheduler, redis_client: redis.Redis) -> None:
    scheduler.apply_entry(scheduler.schedule["each-second"])
    assert redis_client.llen("guard") == 1
    assert dict(scheduler.counts) == {series(BEAT_MESSAGES, task="some.task", ending="sent"): 1}


def test_engines_are_looked_at_as_soon_as_beat_starts(
    valkey: ValkeyServer, redis_client: redis.Redis
) -> None:
    with Celery("test", broker=valkey.url, set_as_current=False) as app:
        app.conf.beat_schedule = {
            name: {"task": name, "schedule": 3600.0, "options": {"queue": "guard"}, "last_run_at": before}
            for name, before in (("observe", LONG_AGO), ("sweep", None))
        }
        scheduler = QuietScheduler(app=app)
        scheduler.tick()
        scheduler.close()
        assert [message["headers"]["task"] for message in enqueued(redis_client)] == ["observe"]
        scheduler.tick()
        assert redis_client.llen("guard") == 1, "and then an hour later"


def enqueued(redis_client: redis.Redis) -> list[Any]:
    return [json.loads(message) for message in redis_client.lrange("guard", 0, -1)]


def test_no_more_is_enqueued_than_a_guard_that_comes_back_needs(
    scheduler: QuietScheduler, redis_client: redis.Redis
) -> None:
    for _ in range(3 * MOST_WAITING):
        scheduler.apply_entry(scheduler.schedule["each-second"])
    assert redis_client.llen("guard") == MOST_WAITING
    redis_client.delete("guard")
    scheduler.apply_entry(scheduler.schedule["each-second"])
    assert redis_client.llen("guard") == 1


def test_it_outlives_a_broker_that_refuses(
    scheduler: QuietScheduler, redis_client: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    redis_client.set("guard", "not a queue")
    scheduler.apply_entry(scheduler.schedule["each-second"])
    assert "some.task could not be enqueued" in caplog.text
    redis_client.delete("guard")
    scheduler.apply_entry(scheduler.schedule["each-second"])
    assert redis_client.llen("guard") == 1


def test_it_recovers_from_a_broker_that_was_down_and_then_full(
    own_valkey: ValkeyServer, caplog: pytest.LogCaptureFixture
) -> None:
    with Celery("test", broker=own_valkey.url, set_as_current=False) as app:
        app.conf.beat_schedule = {
            "each-second": {"task": "some.task", "schedule": 1.0, "options": {"queue": "guard"}}
        }
        scheduler = QuietScheduler(app=app)

        def come_due() -> None:
            """As in Celery's own loop."""
            scheduler.apply_entry(scheduler.schedule["each-second"], producer=scheduler.producer)

        come_due()
        own_valkey.kill()
        come_due()
        own_valkey.start()
        with own_valkey.client() as client:
            client.config_set("maxmemory", "1")
            come_due()
            come_due()
            assert "maxmemory" in caplog.text
            client.config_set("maxmemory", "0")
            come_due()
            assert client.llen("guard") == 1
        scheduler.close()
