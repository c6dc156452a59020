"""Messages that a real Celery worker takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import kombu
import pytest

from service.store.redis.task_message import REPLAY_TASK, task_message
from tests.leash import Leashed
from tests.patience import PATIENCE

WORKER = """
import os
from celery import Celery
import redis

app = Celery("consumer", broker=os.environ["BROKER"])
app.conf.update(accept_content=["json"], task_acks_late=True, task_ignore_result=True)

@app.task(name="workers.tasks.replay_captures")
def replay_captures(ids):
    redis.Redis.from_url(os.environ["BROKER"]).rpush("taken", *ids)
"""


@pytest.fixture
def celery_worker(tmp_path, valkey):
    (tmp_path / "consumer.py").write_text(WORKER)
    command = [sys.executable, "-m", "celery", "-A", "consumer", "worker", "-Q", "replay", "-P", "solo"]
    with (tmp_path / "worker.log").open("wb") as log:
        process = Leashed(
            [*command, "--without-gossip", "--without-mingle", "--without-heartbeat"],
            cwd=tmp_path,
            env={**os.environ, "BROKER": valkey.url},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    yield tmp_path / "worker.log"
    process.terminate()
    process.wait(timeout=PATIENCE)


def test_a_celery_worker_runs_the_task_with_the_ids_and_acknowledges(celery_worker, redis_client):
    redis_client.lpush("replay", task_message(REPLAY_TASK, ["i-1-00000000", "i-2-00000000"], queue="replay"))
    deadline = time.monotonic() + PATIENCE
    while redis_client.llen("taken") < 2:
        assert time.monotonic() < deadline, celery_worker.read_text()
        time.sleep(0.1)
    assert redis_client.lrange("taken", 0, -1) == [b"i-1-00000000", b"i-2-00000000"]
    while redis_client.hlen("unacked"):
        assert time.monotonic() < deadline, celery_worker.read_text()
        time.sleep(0.1)


def test_a_message_that_is_not_acknowledged_goes_back_to_its_queue(valkey, redis_client):
    redis_client.lpush("replay", task_message(REPLAY_TASK, ["a"], queue="replay"))
    with kombu.Connection(valkey.url) as connection, connection.channel() as channel:
        message = channel.basic_get("replay")
        assert message is not None
        message.requeue()
    assert redis_client.llen("replay") == 1


def test_the_message_is_protocol_two_and_says_nothing_but_ids(valkey, redis_client):
    redis_client.lpush("replay", task_message(REPLAY_TASK, ["a", "b"], queue="replay"))
    with kombu.Connection(valkey.url) as connection, connection.channel() as channel:
        message = channel.basic_get("replay")
        assert message is not None
        arguments, keywords, embedded = message.decode()
        assert (arguments, keywords) == ([["a", "b"]], {})
        assert set(embedded.values()) == {None}
        assert message.headers["task"] == REPLAY_TASK
        assert message.headers["id"] == message.properties["correlation_id"]
        message.ack()


def test_every_message_has_ids_of_its_own():
    one, two = (json.loads(task_message(REPLAY_TASK, ["a"], queue="q")) for _ in range(2))
    assert one["headers"]["id"] != two["headers"]["id"]
    assert one["properties"]["delivery_tag"] != two["properties"]["delivery_tag"]
