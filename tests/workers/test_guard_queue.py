"""The guard on a queue of its own: a real beat and a real worker, over a real broker with a backlog."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from service.fleet import Route
from service.settings import Settings, load
from service.store.decided.decisions import Entry, read
from service.store.decided.routes import set_route
from service.store.sql.database import Database
from tests.conftest import ValkeyServer
from tests.workers.celery_parts import CeleryParts, configuration, until
from tests.workers.guarding import Backends, judged
from tests.workers.scripted import Reply
from tests.workers.walk import MODEL

pytestmark = pytest.mark.acceptance

BACKLOG = 100_000


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[CeleryParts]:
    made = CeleryParts(directory=tmp_path, environ={"TIERGATE_CONFIG": str(tmp_path / "tiergate.yaml")})
    yield made
    made.close()


def harm(db: Database, settings: Settings, tier: str, *, at: float) -> None:
    """Pairs in which the tier fails what the baseline passes, as a worker records them."""
    judged(db, tier, harm=True, count=40, at=at, epoch=settings.epoch_of(MODEL, tier))


def test_harm_is_rolled_back_within_a_minute_behind_100_000_replays_and_while_no_api_runs(
    valkey: ValkeyServer,
    db: Database,
    sqlite_url: str,
    tmp_path: Path,
    parts: CeleryParts,
    backend: Backends,
    redis_client: redis.Redis,
) -> None:
    up = backend(lambda asked: Reply(text="ok")).url
    path = configuration(
        tmp_path,
        redis_url=valkey.url,
        database_url=sqlite_url,
        ladder=[{"tier": "bf16", "backends": [up]}, {"tier": "w4a16", "backends": [up]}],
        policy={
            "margin": "20pp",
            "min_pairs": 20,
            "gates": dict.fromkeys(("control", "coverage", "attribution", "slo", "money"), "off"),
        },
    )
    settings = load(path, {})
    set_route(db, Route.only(MODEL, "w4a16"), at=1000.0, actor="somebody")
    message = json.dumps({"body": "W10=", "headers": {"task": "workers.tasks.replay_captures"}})
    for _ in range(100):
        redis_client.lpush(settings.proxy.mirroring.queue, *[message] * (BACKLOG // 100))
    guard = parts.worker("-Q", "guard", "-c", "1")
    parts.start("beat", "--loglevel", "INFO")
    until(lambda: redis_client.hget("tiergate:routes", MODEL) is not None, 60.0, lambda: guard.log)

    harm(db, settings, "w4a16", at=2000.0)
    until(lambda: bool(rollbacks(db)), 60.0, lambda: guard.log)

    [entry] = rollbacks(db)
    assert (entry.actor, entry.tier, entry.detail["from"]) == ("guard", "bf16", "w4a16")
    assert redis_client.llen(settings.proxy.mirroring.queue) >= BACKLOG
    until(lambda: published(redis_client) == {"bf16": 100}, 60.0, lambda: guard.log)
    counted = 'tiergate_guard_actions_total{action="roll_back",model="m"}'
    until(lambda: counts(redis_client).get(counted) == 1, 60.0, lambda: guard.log)


def counts(client: redis.Redis) -> dict[str, int]:
    """What the guard counted for Prometheus."""
    found: dict[str, int] = {}
    for key in client.scan_iter("tiergate:*", _type="HASH"):
        for name, value in client.hgetall(key).items():
            if name.startswith(b"tiergate_guard_"):
                found[name.decode()] = int(value)
    return found


def published(client: redis.Redis) -> dict[str, int]:
    """What the proxies follow."""
    told = client.hget("tiergate:routes", MODEL)
    assert isinstance(told, bytes)
    weights: dict[str, int] = json.loads(told)["weights"]
    return weights


def rollbacks(db: Database) -> list[Entry]:
    return [entry for entry in read(db, MODEL) if entry.action == "roll_back"]
