"""Real Celery workers and beat over a real Valkey, database and HTTP backends."""

from __future__ import annotations

import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from celery import Celery
from sqlalchemy import func, select

from service.fleet import Route
from service.store.decided.routes import set_route
from service.store.redis.captures import open_captures
from service.store.scored.leases import State
from service.store.sql.database import Database
from service.store.sql.schema import captures, units
from service.store.traffic.ledger import account
from tests.conftest import ValkeyServer
from tests.patience import PATIENCE
from tests.workers.celery_parts import CeleryParts, configuration, until
from tests.workers.scripted import Asked, Reply, Script, ScriptedBackend
from tests.workers.walk import BROKEN, GOOD, MODEL, orders, ship

pytestmark = pytest.mark.acceptance

Backends = Callable[[Script], ScriptedBackend]


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[CeleryParts]:
    made = CeleryParts(directory=tmp_path, environ={"TIERGATE_CONFIG": str(tmp_path / "tiergate.yaml")})
    yield made
    made.close()


@pytest.fixture
def configured(
    tmp_path: Path, sqlite_url: str, parts: CeleryParts
) -> Callable[[ValkeyServer, str, str], CeleryParts]:
    """Parts configured for a baseline with a shadow backend and one candidate."""

    def configure(valkey: ValkeyServer, baseline: str, candidate: str) -> CeleryParts:
        configuration(
            tmp_path,
            redis_url=valkey.url,
            database_url=sqlite_url,
            ladder=[
                {"tier": "bf16", "backends": ["http://127.0.0.1:9"], "shadow": [baseline]},
                {"tier": "w4a16", "backends": [candidate]},
            ],
        )
        return parts

    return configure


Configure = Callable[[ValkeyServer, str, str], CeleryParts]


def enqueue(url: str, task: str, queue: str = "guard") -> None:
    with Celery(broker=url, set_as_current=False) as app:
        app.send_task(task, queue=queue)


def counted(db: Database, arm: str = "candidate", evaluator: str = "structured_output") -> int:
    """Conversations in all epochs of a tier."""
    with db.read() as connection:
        return int(
            connection.execute(
                select(func.count())
                .select_from(units)
                .where(units.c.arm == arm, units.c.evaluator == evaluator, units.c.counted)
            ).scalar_one()
        )


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_captures_become_evidence_and_messages_delivered_twice_count_once(
    valkey: ValkeyServer, db: Database, configured: Configure, backend: Backends, redis_client: redis.Redis
) -> None:
    baseline, candidate = backend(lambda asked: Reply(text=GOOD)), backend(lambda asked: Reply(text=BROKEN))
    ship(valkey.url, orders(40))
    messages = redis_client.lrange("replay", 0, -1)
    redis_client.lpush("replay", *messages)  # every message twice
    configured(valkey, baseline.url, candidate.url).worker("-Q", "replay", "-c", "2")
    until(lambda: redis_client.llen("replay") == 0 and account(db).processed == 40)
    assert counted(db) == 40
    assert counted(db, "control") == 40
    assert len(candidate.asked) == 40
    until(lambda: redis_client.zcard("tiergate:captures:due") == 0)


def test_a_worker_killed_in_the_middle_loses_nothing_and_counts_nothing_twice(
    valkey: ValkeyServer, db: Database, configured: Configure, backend: Backends, redis_client: redis.Redis
) -> None:
    quick: list[bool] = []

    def slow_at_first(asked: Asked) -> Reply:
        return Reply(text=BROKEN, wait=0 if quick or "number 3" not in asked.prompt else 60)

    baseline, candidate = backend(lambda asked: Reply(text=GOOD)), backend(slow_at_first)
    parts = configured(valkey, baseline.url, candidate.url)
    ids = ship(valkey.url, orders(12), batch=6)
    first = parts.worker(TIERGATE_LEASE_SECONDS="3")
    until(lambda: any("number 3" in asked.prompt for asked in candidate.asked))
    first.kill()
    assert account(db).processed < 12
    quick.append(True)
    second = parts.worker("-Q", "replay,guard", "-c", "1", TIERGATE_LEASE_SECONDS="3")
    with open_captures(valkey.url).redis as client:
        # As if two minutes had passed.
        client.zadd("tiergate:captures:due", dict.fromkeys(ids, time.time()), xx=True)

    def swept() -> bool:
        enqueue(valkey.url, "workers.tasks.sweep")
        time.sleep(0.5)
        return account(db).processed == 12

    until(swept, 60, lambda: second.log)
    assert counted(db) == counted(db, "control") == 12
    until(lambda: redis_client.zcard("tiergate:captures:due") == 0)


def test_a_child_killed_in_the_middle_is_replaced_and_its_captures_come_back(
    valkey: ValkeyServer, db: Database, configured: Configure, backend: Backends
) -> None:
    quick: list[bool] = []
    baseline = backend(lambda asked: Reply(text=GOOD))
    candidate = backend(lambda asked: Reply(text=GOOD, wait=0 if quick else 60))
    parts = configured(valkey, baseline.url, candidate.url)
    ids = ship(valkey.url, orders(4))
    worker = parts.worker("-Q", "replay,guard", "-c", "1", TIERGATE_LEASE_SECONDS="3")
    until(lambda: len(candidate.asked) == 4)
    quick.append(True)
    [child] = worker.children()
    os.kill(child, signal.SIGKILL)
    with open_captures(valkey.url).redis as client:
        client.zadd("tiergate:captures:due", dict.fromkeys(ids, time.time()), xx=True)

    def swept() -> bool:
        enqueue(valkey.url, "workers.tasks.sweep")
        time.sleep(0.5)
        return account(db).processed == 4

    until(swept, 60, lambda: worker.log)
    assert counted(db) == 4


def test_a_worker_told_to_stop_stops_though_a_candidate_hangs(
    valkey: ValkeyServer, db: Database, configured: Configure, backend: Backends
) -> None:
    candidate = backend(lambda asked: Reply(text=GOOD, wait=60))
    parts = configured(valkey, backend(lambda asked: Reply(text=GOOD)).url, candidate.url)
    ship(valkey.url, orders(2))
    worker = parts.worker()
    until(lambda: len(candidate.asked) == 2)
    assert worker.stop() == 0
    # Released: the next worker need not wait for a lease to run out.
    found = db_states(db)
    assert set(found.values()) == {(State.LEASED, 0.0)}


def db_states(db: Database) -> dict[str, tuple[str, float]]:
    with db.read() as connection:
        return {row.capture_id: (row.state, row.lease_until) for row in connection.execute(select(captures))}


def test_a_worker_goes_on_when_redis_was_away(
    own_valkey: ValkeyServer, db: Database, configured: Configure, backend: Backends
) -> None:
    server = backend(lambda asked: Reply(text=GOOD))
    parts = configured(own_valkey, server.url, server.url)
    worker = parts.worker()
    ship(own_valkey.url, orders(2))
    until(lambda: account(db).processed == 2)
    own_valkey.kill()
    time.sleep(1)
    own_valkey.start()
    ship(own_valkey.url, orders(3))
    until(lambda: account(db).processed == 5, 60, lambda: worker.log)


def test_a_worker_goes_on_when_redis_took_no_writes(
    own_valkey: ValkeyServer, db: Database, configured: Configure, backend: Backends
) -> None:
    server = backend(lambda asked: Reply(text=GOOD))
    worker = configured(own_valkey, server.url, server.url).worker("-Q", "replay,guard", "-c", "1")
    with own_valkey.client() as client:
        for number, (refuse, take, told) in enumerate(
            (
                ("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", "used memory > 'maxmemory'"),
                ("REPLICAOF 127.0.0.1 9", "REPLICAOF NO ONE", "read only replica"),
            ),
            start=1,
        ):
            worker.process.send_signal(signal.SIGSTOP)
            ids = ship(own_valkey.url, orders(2))
            client.execute_command(*refuse.split())
            worker.process.send_signal(signal.SIGCONT)
            worker.wait_for(told)
            client.execute_command(*take.split())
            ids += ship(own_valkey.url, orders(3))
            until(lambda done=5 * number - 2: account(db).processed >= done, PATIENCE, lambda: worker.log)
            # As if two minutes had passed: a message that was taken then is gone.
            client.zadd("tiergate:captures:due", dict.fromkeys(ids, time.time()), xx=True)
            enqueue(own_valkey.url, "workers.tasks.sweep")
            until(lambda done=5 * number: account(db).processed == done, PATIENCE, lambda: worker.log)
    assert worker.process.poll() is None


def test_a_worker_goes_on_when_redis_hung_while_it_acknowledged(
    own_valkey: ValkeyServer, db: Database, configured: Configure, backend: Backends
) -> None:
    server = backend(lambda asked: Reply(text=GOOD))
    parts = configured(own_valkey, server.url, server.url)
    parts.app = "tests.workers.impatient"
    worker = parts.worker()
    [child] = worker.children()
    os.kill(child, signal.SIGSTOP)
    enqueue(own_valkey.url, "workers.tasks.rescore_kept", "replay")
    with own_valkey.client() as client:
        until(lambda: client.hlen("unacked") == 1, PATIENCE, lambda: worker.log)
    own_valkey.freeze()
    os.kill(child, signal.SIGCONT)
    worker.wait_for("Timeout reading from")
    own_valkey.thaw()
    ship(own_valkey.url, orders(3))
    until(lambda: account(db).processed == 3, PATIENCE, lambda: worker.log)


def test_beat_and_guard_copy_ledgers_and_republish_routes_that_redis_lost(
    valkey: ValkeyServer, db: Database, configured: Configure, redis_client: redis.Redis
) -> None:
    parts = configured(valkey, "http://127.0.0.1:9", "http://127.0.0.1:9")
    set_route(db, Route.only(MODEL, "w4a16"), at=time.time(), actor="somebody")
    redis_client.sadd("tiergate:ledger:instances", "p1")
    redis_client.hset(
        "tiergate:ledger:p1", mapping={f"seen|{MODEL}": 7, "#closed": 0, "#written_at": time.time()}
    )
    guard = parts.worker("-Q", "guard", "-c", "1")
    beat = parts.start("beat", "--pidfile=")
    until(lambda: account(db).seen == 7, 60, lambda: beat.log + guard.log)

    def published() -> Route | None:
        captures = open_captures(valkey.url)
        try:
            return captures.read_route(MODEL)
        finally:
            captures.close()

    until(lambda: (found := published()) is not None and found.serving == "w4a16", 60, lambda: guard.log)
    redis_client.delete("tiergate:routes")
    until(lambda: published() is not None, 60, lambda: guard.log)
    assert beat.stop() == 0
    assert guard.stop() == 0
    assert not list((parts.directory / "state").glob("*beat*"))


def test_beat_does_not_pile_up_messages_for_a_guard_that_is_away(
    valkey: ValkeyServer, configured: Configure, redis_client: redis.Redis
) -> None:
    parts = configured(valkey, "http://127.0.0.1:9", "http://127.0.0.1:9")
    redis_client.lpush("guard", *["{}"] * 8)
    beat = parts.start("beat", "--loglevel", "INFO", "--pidfile=")
    beat.wait_for("beat: Starting")
    time.sleep(6)
    assert redis_client.llen("guard") == 8
    assert beat.process.poll() is None


def test_a_worker_shows_metrics_and_readiness(
    own_valkey: ValkeyServer, db: Database, configured: Configure, backend: Backends, free_port: int
) -> None:
    server = backend(lambda asked: Reply(text=GOOD))
    port = free_port
    parts = configured(own_valkey, server.url, server.url)
    worker = parts.worker(TIERGATE_WORKER_LISTEN=f"127.0.0.1:{port}")
    ship(own_valkey.url, orders(3))
    until(lambda: account(db).processed == 3)
    base = f"http://127.0.0.1:{port}"
    until(lambda: 'tiergate_worker_captures_total{ending="processed"} 3\n' in get(f"{base}/metrics")[1])
    assert get(f"{base}/healthz") == (200, "ok\n")
    assert get(f"{base}/readyz") == (200, "ok\n")
    assert get(f"{base}/elsewhere")[0] == 404
    own_valkey.kill()
    assert get(f"{base}/healthz")[0] == 200
    assert get(f"{base}/readyz")[0] == 503
    assert get(f"{base}/metrics")[0] == 503
    worker.kill()


def test_an_address_in_use_stops_the_worker_and_says_what_to_do(
    valkey: ValkeyServer, configured: Configure
) -> None:
    parts = configured(valkey, "http://127.0.0.1:9", "http://127.0.0.1:9")
    worker = parts.start(
        "worker", "-Q", "replay", "-c", "1", TIERGATE_WORKER_LISTEN=f"127.0.0.1:{valkey.port}"
    )
    assert worker.process.wait(60) != 0
    assert "Address already in use; choose another address, or unset it" in worker.log


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({"TIERGATE_CONFIG": "nowhere.yaml"}, "there is no such file"),
        ({"TIERGATE_LEASE_SECONDS": "soon"}, "expected a number of seconds"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_told_without_a_traceback(
    environ: dict[str, str], told: str, valkey: ValkeyServer, configured: Configure
) -> None:
    parts = configured(valkey, "http://127.0.0.1:9", "http://127.0.0.1:9")
    worker = parts.start("worker", "-Q", "replay", **environ)
    assert worker.process.wait(60) != 0
    assert told in worker.log
    assert "Traceback" not in worker.log


def test_anything_but_a_list_of_ids_is_refused(
    valkey: ValkeyServer, db: Database, configured: Configure, redis_client: redis.Redis
) -> None:
    parts = configured(valkey, "http://127.0.0.1:9", "http://127.0.0.1:9")
    worker = parts.worker()
    with Celery(broker=valkey.url, set_as_current=False) as app:
        app.send_task("workers.tasks.replay_captures", args=["an id"], queue="replay")
    worker.wait_for("replay_captures takes one list of capture ids")
    until(lambda: redis_client.llen("replay") == 0)
    assert account(db).processed == 0
