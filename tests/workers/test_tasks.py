"""The tasks of a configured app, called as a worker's child calls them."""

from __future__ import annotations

import base64
import inspect
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from celery import Celery, Task, signals
from sqlalchemy import select

from service.fleet import Route
from service.settings import load
from service.store.decided.routes import set_route
from service.store.redis.captures import open_captures
from service.store.redis.task_message import REPLAY_TASK
from service.store.redis.worker_counts import WorkerCounts
from service.store.scored.leases import lease
from service.store.scored.pairs import record
from service.store.sql.corpus_tables import corpus
from service.store.sql.database import Database
from service.store.sql.schema import captures as captures_table
from service.store.traffic.ledger import account
from tests.conftest import FullDisk, ValkeyServer
from tests.workers.celery_parts import configuration
from tests.workers.scripted import Reply, Script, ScriptedBackend
from tests.workers.walk import MODEL, exchange, question, ship
from workers import tasks
from workers.app import GUARD_QUEUE, SCHEDULE, create_app
from workers.guard_room import RETENTION_SECONDS
from workers.metrics import GUARD_RUNS, series
from workers.replay import Terms

Backends = Callable[[Script], ScriptedBackend]


@pytest.fixture
def app(
    valkey: ValkeyServer, db: Database, sqlite_url: str, tmp_path: Path, backend: Backends
) -> Iterator[Celery]:
    """An app with a baseline and a candidate; what its tasks opened is closed afterwards."""
    server = backend(lambda asked: Reply(text='{"order": 1}'))
    path = configuration(
        tmp_path,
        redis_url=valkey.url,
        database_url=sqlite_url,
        ladder=[
            {"tier": "bf16", "backends": ["http://127.0.0.1:9"], "shadow": [server.url]},
            {"tier": "w4a16", "backends": [server.url]},
        ],
    )
    made = create_app(load(path, {}), {})
    yield made
    signals.worker_process_shutdown.send(sender=None, pid=0, exitcode=0)
    made.close()


def call(app: Celery, name: str, *args: object) -> object:
    task: Task = app.tasks[name]
    return task(*args)


def test_messages_are_json_acknowledged_late_and_taken_one_at_a_time(app: Celery) -> None:
    conf = app.conf
    assert (list(conf.accept_content), conf.task_serializer) == (["json"], "json")
    assert conf.task_acks_late
    assert conf.task_reject_on_worker_lost
    assert conf.worker_prefetch_multiplier == 1
    assert conf.task_ignore_result
    assert not conf.task_always_eager


def test_every_task_of_the_guard_is_scheduled_on_its_own_queue(app: Celery) -> None:
    entries = app.conf.beat_schedule
    assert {*SCHEDULE, tasks.RESCORE} <= {entry["task"] for entry in entries.values()}
    assert {entries[name]["options"]["queue"] for name in SCHEDULE} == {GUARD_QUEUE}
    assert entries[tasks.RESCORE]["options"]["queue"] == "replay"
    assert all(app.amqp.router.route({}, name)["queue"].name == GUARD_QUEUE for name in SCHEDULE)
    assert app.amqp.router.route({}, REPLAY_TASK)["queue"].name == "replay"
    assert set(SCHEDULE) | {REPLAY_TASK} <= set(app.tasks)


def test_a_message_of_ids_becomes_evidence(app: Celery, valkey: ValkeyServer, db: Database) -> None:
    ids = ship(
        valkey.url, [exchange(question(f"order {n}", structured=True), '{"order": 1}') for n in range(3)]
    )
    call(app, REPLAY_TASK, ids)
    assert account(db).processed == 3


def test_scored_captures_leave_a_corpus_that_retention_takes_away(
    app: Celery, valkey: ValkeyServer, db: Database
) -> None:
    old = time.time() - 29 * 86_400
    captures = [exchange(question(f"order {n}"), started_at=at) for n, at in enumerate((time.time(), old))]
    call(app, REPLAY_TASK, ship(valkey.url, captures))
    call(app, tasks.RESCORE)
    call(app, tasks.RETAIN)
    with db.read() as connection:
        assert len(connection.execute(select(corpus.c.digest)).all()) == 1


def test_a_dead_worker_is_replaced_within_three_minutes() -> None:
    """Its leases run out, and the next sweep finds them."""
    assert float(inspect.signature(lease).parameters["seconds"].default) + SCHEDULE[tasks.SWEEP] < 180
    assert Terms.__dataclass_fields__["lease_seconds"].default + SCHEDULE[tasks.SWEEP] < 180


def test_runs_of_the_guard_are_counted(app: Celery, redis_client: redis.Redis) -> None:
    call(app, tasks.SWEEP)
    redis_client.set("tiergate:ledger:instances", "not a set")
    with pytest.raises(redis.ResponseError):
        call(app, tasks.COPY_LEDGER)
    counts = WorkerCounts(redis_client, worker="worker").read()
    assert counts[series(GUARD_RUNS, task=tasks.SWEEP, ending="done")] == 1
    assert counts[series(GUARD_RUNS, task=tasks.COPY_LEDGER, ending="failed")] == 1


def test_a_database_that_cannot_be_used_stops_a_worker_and_is_a_line_in_the_guards_log(
    valkey: ValkeyServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "broken.db").write_bytes(b"no database at all" * 100)
    path = configuration(
        tmp_path,
        redis_url=valkey.url,
        database_url=f"sqlite:///{tmp_path / 'broken.db'}",
        ladder=[{"tier": "bf16", "backends": ["http://127.0.0.1:9"]}],
    )
    with create_app(load(path, {}), {}) as app:
        with pytest.raises(SystemExit, match=r"broken\.db"):
            signals.worker_init.send(sender=None)
        call(app, tasks.SWEEP)
    assert "workers.tasks.sweep: " in caplog.text
    assert "Traceback" not in caplog.text


def test_a_database_without_room_is_a_line_in_the_log_and_captures_wait_for_some(
    app: Celery,
    valkey: ValkeyServer,
    db: Database,
    redis_client: redis.Redis,
    full_disk: FullDisk,
    caplog: pytest.LogCaptureFixture,
) -> None:
    exchanges = [exchange(question(f"order {n}", structured=True), '{"order": 1}') for n in range(60)]
    ids = ship(valkey.url, exchanges)
    full_disk.is_full = True
    for start in range(0, len(ids), 20):
        call(app, REPLAY_TASK, ids[start : start + 20])
    for name in (tasks.SWEEP, tasks.COPY_LEDGER, tasks.WATCH_ROUTES, tasks.RETAIN):
        call(app, name)
    assert "captures wait until the stores can be used again" in caplog.text
    assert "make room on its disk" in caplog.text
    assert "Traceback" not in caplog.text
    done = account(db).processed
    assert done < len(ids)
    full_disk.is_full = False
    with db.write() as connection:  # whose leases have run out meanwhile
        connection.execute(captures_table.update().values(lease_until=0.0))
    redis_client.delete("replay")
    redis_client.zadd("tiergate:captures:due", dict.fromkeys(ids, 0.0), xx=True)
    call(app, tasks.SWEEP)
    while message := redis_client.rpop("replay"):
        body = json.loads(base64.b64decode(json.loads(message)["body"]))
        call(app, REPLAY_TASK, *body[0])
    assert account(db).processed == len(ids)


@pytest.mark.parametrize(
    ("refuse", "take", "cause"),
    [
        ("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", "used memory > 'maxmemory'"),
        ("REPLICAOF 127.0.0.1 9", "REPLICAOF NO ONE", "read only replica"),
    ],
)
def test_a_redis_that_takes_no_writes_is_a_line_in_the_log_and_captures_wait(
    refuse: str,
    take: str,
    cause: str,
    app: Celery,
    valkey: ValkeyServer,
    db: Database,
    redis_client: redis.Redis,
    caplog: pytest.LogCaptureFixture,
) -> None:
    # What a tenant asks is remembered in Redis before it is replayed.
    *ids, due = ship(
        valkey.url, [exchange(question(f"order {n}", structured=True), '{"order": 1}') for n in range(4)]
    )
    redis_client.zadd("tiergate:captures:due", {due: 1.0}, xx=True)  # the sweep has a message to send
    redis_client.execute_command(*refuse.split())
    try:
        call(app, REPLAY_TASK, ids)
        for work in (tasks.RESCORE, tasks.SWEEP, tasks.COPY_LEDGER, tasks.WATCH_ROUTES):
            call(app, work)
    finally:
        redis_client.execute_command(*take.split())
    assert "3 captures wait until the stores can be used again" in caplog.text
    assert any(line.startswith(f"{tasks.SWEEP}: ") for line in caplog.messages)
    assert cause in caplog.text
    assert "Traceback" not in caplog.text
    assert account(db).processed == 0
    call(app, REPLAY_TASK, ids)
    assert account(db).processed == 3


@pytest.mark.parametrize("argument", ["an id", [1], None, {"ids": []}])
def test_anything_but_a_list_of_ids_is_refused(argument: object, app: Celery) -> None:
    with pytest.raises(TypeError, match="one list of capture ids"):
        call(app, REPLAY_TASK, argument)


def test_a_sweep_asks_for_what_a_dead_worker_held(
    app: Celery, valkey: ValkeyServer, db: Database, redis_client: redis.Redis
) -> None:
    ids = ship(valkey.url, [exchange(question("x"))])
    redis_client.delete("replay")
    lease(db, ids, owner="dead", now=time.time() - 200, seconds=120)
    redis_client.zadd("tiergate:captures:due", dict.fromkeys(ids, 0.0))
    call(app, tasks.SWEEP)
    assert redis_client.llen("replay") == 1


def test_the_ledger_is_copied(app: Celery, db: Database, redis_client: redis.Redis) -> None:
    redis_client.sadd("tiergate:ledger:instances", "p1")
    redis_client.hset(
        "tiergate:ledger:p1", mapping={f"seen|{MODEL}": 7, "#closed": 0, "#written_at": time.time()}
    )
    call(app, tasks.COPY_LEDGER)
    assert account(db).seen == 7


def test_routes_are_told(app: Celery, valkey: ValkeyServer, db: Database) -> None:
    route = set_route(db, Route.only(MODEL, "w4a16"), at=time.time(), actor="somebody")
    call(app, tasks.WATCH_ROUTES)
    captures = open_captures(valkey.url)
    assert captures.read_route(MODEL) == route
    captures.close()


def test_old_settlements_are_forgotten_and_still_counted(app: Celery, db: Database) -> None:
    for name, at in (("old", time.time() - 2 * RETENTION_SECONDS), ("new", time.time())):
        record(db, capture_id=name, owner="w", units=(), at=at)
    call(app, tasks.RETAIN)
    assert account(db).processed == 2
    assert lease(db, ["new"], owner="w", now=time.time()) == []


def test_redis_away_while_runs_are_counted_stops_and_masks_nothing(
    app: Celery, valkey: ValkeyServer, caplog: pytest.LogCaptureFixture
) -> None:
    call(app, tasks.RETAIN)
    valkey.kill()
    try:
        call(app, tasks.RETAIN)
        assert any("not counted yet" in line for line in caplog.messages)
        call(app, tasks.COPY_LEDGER)
        assert any(line.startswith(f"{tasks.COPY_LEDGER}: ") for line in caplog.messages)
    finally:
        valkey.start()
