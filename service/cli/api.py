"""`tiergate api`: the control plane by itself, with the dashboard behind the same door."""

from __future__ import annotations

import gc
import logging
import time
from functools import partial
from typing import TYPE_CHECKING

import typer

from service.cli.configuration import ConfigOption, fail, load_or_exit

if TYPE_CHECKING:
    from fastapi import FastAPI

    from service.approval.config import Schedule
    from service.settings import Settings
    from service.store.redis.captures import Captures
    from service.store.sql.database import Database

REDIS_SECONDS = 1.0
"""How long an approval waits for Redis before it answers `published: false`."""
DRAIN_SECONDS = 10
MOST_REQUESTS = 256
"""At once; more are told 503."""
LARGEST_HEAD = 32 * 1024
"""Bytes of a request's line and headers."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(api)


def api(config: ConfigOption = None) -> None:
    """Run the approval API, its documentation and the dashboard until SIGTERM."""
    settings = load_or_exit(config)
    import uvicorn

    from service.launch import PortUnusable, ToldToStop, stop_signals
    from service.launch.ports import check_free
    from service.settings.units import Listen
    from service.store.decided.policy_changes import note_policy
    from service.store.redis.captures import open_captures
    from service.store.sql.database import StoreUnusable, open_database

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    listen = Listen(host=settings.api.host, port=settings.api.port)
    try:
        with stop_signals():
            check_free(listen, "api.listen", "TIERGATE_API_LISTEN")
            db = open_database(settings.database_url, part="api")
            captures = open_captures(settings.redis_url, timeout=REDIS_SECONDS)
            try:
                note_policy(db, settings.policy, at=time.time(), actor="api")
                rehearse(settings, db)
                uvicorn.run(
                    compose(settings, db, captures),
                    host=listen.host,
                    port=listen.port,
                    # h11 bounds the head of a request and refuses a second Host header.
                    http="h11",
                    h11_max_incomplete_event_size=LARGEST_HEAD,
                    limit_concurrency=MOST_REQUESTS,
                    timeout_graceful_shutdown=DRAIN_SECONDS,
                    # Who a caller is, is never taken from a header that the caller may write.
                    proxy_headers=False,
                    server_header=False,
                    access_log=False,
                    log_config=None,
                    ws="none",
                    lifespan="off",
                )
            finally:
                captures.close()
                db.close()
    except ToldToStop:
        return
    except (PortUnusable, StoreUnusable) as error:
        raise fail(str(error)) from None


def rehearse(settings: Settings, db: Database) -> None:
    """Do once what every answer does: the first decision must not wait for what is loaded at first use."""
    import scipy.optimize  # noqa: F401  what limits are searched with

    from service.settings.questions import question_of
    from service.store.verdicts.standing import read_standing

    question, now = question_of(settings, db), time.time()
    for ladder in settings.ladders.values():
        read_standing(db, ladder, question, now=now)
    settle()


def settle() -> None:
    """Take what is loaded for good out of the collector's sight: a full look at it stops all for 0.1 s."""
    gc.collect()
    gc.freeze()


def compose(settings: Settings, db: Database, captures: Captures) -> FastAPI:
    """The API and the dashboard as one app, over the same stores."""
    from evaluators.rubrics import rubric_of
    from service.approval.app import create_app
    from service.approval.config import Adjudicating, ApiConfig
    from service.dashboard.rooms import front_of
    from service.report.forms import Form, Written, written
    from service.report.gathering.composing import Sources
    from service.report.gathering.kept import report_of
    from service.report.words import Language
    from service.settings.questions import job_terms_of, question_of
    from service.settings.secrets import session_secret

    question = question_of(settings, db)
    sources = Sources(db=db, captures=captures, ladders=settings.ladders, question=question)

    def write_report(job: str, form: str, language: str, now: float) -> Written:
        return written(report_of(sources, job, now=now), Form(form), Language(language))

    config = ApiConfig(
        ladders=settings.ladders,
        policy=settings.policy,
        epoch_of=question.epoch_of,
        attribution_of=question.attribution_of,
        evaluators=question.versions,
        control_on_serving=settings.shadow.on_serving,
        allowed_hosts=(*settings.api.allowed_hosts, settings.api.host),
        allowed_origins=settings.api.allowed_origins,
        public_url=settings.api.public_url,
        issuers=settings.api.issuers,
        promotion=settings.promotion,
        gates=settings.pipelines,
        attest_key=settings.api.attest_key,
        jobs=job_terms_of(settings, db),
        schedule=_schedule(settings),
        reports=write_report,
        adjudication=Adjudicating(
            keyring=settings.keyring,
            rubrics={evaluator.name: rubric_of(evaluator) for evaluator in settings.evaluators},
            queued=settings.adjudication.evaluators,
        ),
    )

    front = front_of(secret=session_secret(settings.keyring), public_url=settings.api.public_url)
    return create_app(config, db, captures, front=front)


def _schedule(settings: Settings) -> Schedule | None:
    """None where shadow jobs begin only when somebody asks for one."""
    from service.approval.config import Schedule
    from service.settings.due import next_due

    planned = settings.shadow_job
    if planned.cron is None:
        return None
    following = partial(next_due, planned.cron, planned.timezone)
    return Schedule(cron=planned.cron.text, timezone=planned.timezone, next_after=following)
