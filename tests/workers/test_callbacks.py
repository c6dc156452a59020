"""The guard of a configured app calls pipelines back, and is not scheduled to where none is configured."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from celery import signals

from service.settings import load
from service.store.sql.database import Database
from tests.approval.dialects.pipeline_servers import GitlabServer, serving
from tests.approval.live import add_pairs
from tests.conftest import ValkeyServer
from tests.workers.celery_parts import configuration
from tests.workers.scripted import Reply, Script, ScriptedBackend
from tests.workers.walk import MODEL
from workers import tasks
from workers.app import GUARD_QUEUE, create_app

Backends = Callable[[Script], ScriptedBackend]


def test_the_guard_answers_deployments_that_wait(
    valkey: ValkeyServer, db: Database, sqlite_url: str, tmp_path: Path, backend: Backends
) -> None:
    engine = backend(lambda asked: Reply(text="yes"))
    (tmp_path / "token").write_text("glpat-1\n")
    server = GitlabServer(blocked={("group/serving", "production"): [41]})
    with serving(server) as url:
        rule = {"project": "Group/serving", "environment": "production", "model": MODEL, "tier": "w4a16"}
        path = configuration(
            tmp_path,
            redis_url=valkey.url,
            database_url=sqlite_url,
            ladder=[
                {"tier": "bf16", "backends": ["http://127.0.0.1:9"], "shadow": [engine.url]},
                {"tier": "w4a16", "backends": [engine.url]},
            ],
            pipelines={"gitlab": {"url": url, "token_file": "token", "deployments": [rule]}},
        )
        settings = load(path, {})
        app = create_app(settings, {})
        try:
            entry = app.conf.beat_schedule[tasks.CALLBACKS]
            assert entry["options"]["queue"] == GUARD_QUEUE
            assert app.amqp.router.route({}, tasks.CALLBACKS)["queue"].name == GUARD_QUEUE
            epoch = settings.epoch_of(MODEL, "w4a16")
            add_pairs(db, "w4a16", epoch=epoch, harm=400, model=MODEL, criteria=("structured_output",))
            app.tasks[tasks.CALLBACKS]()
        finally:
            signals.worker_process_shutdown.send(sender=None, pid=0, exitcode=0)
            app.close()
    assert [told[:3] for told in server.decided] == [("group/serving", 41, "rejected")]


def test_nothing_is_scheduled_where_no_pipeline_is_configured(
    valkey: ValkeyServer, sqlite_url: str, tmp_path: Path
) -> None:
    path = configuration(
        tmp_path,
        redis_url=valkey.url,
        database_url=sqlite_url,
        ladder=[{"tier": "bf16", "backends": ["http://127.0.0.1:9"]}],
    )
    app = create_app(load(path, {}), {})
    try:
        assert tasks.CALLBACKS not in app.conf.beat_schedule
    finally:
        app.close()
