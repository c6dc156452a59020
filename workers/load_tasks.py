"""Tasks of shadow jobs: begun by the schedule, handed to the queue `load` a block at a time, run there.

SQL is the outbox. Who settles a block tells the broker of the next; the guard looks every few seconds for
blocks of which it was not told, or which were dropped, and for turns that nobody took.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from celery import Celery
from celery.schedules import crontab
from kombu.exceptions import OperationalError as BrokerRefuses
from redis import RedisError

from service.report.gathering.composing import Sources
from service.report.gathering.kept import keep_due
from service.settings import Settings
from service.settings.cron import Cron
from service.settings.questions import job_terms_of, question_of
from service.store.load.job_terms import CannotBegin, JobTerms, begin
from service.store.load.jobs import Cause
from service.store.load.load_blocks import LOAD_TASK, to_enqueue
from service.store.load.turns import settle_dropped, waiting_for_turn
from service.store.sql.database import StoreUnusable
from workers.shadow_job import LoadRoom, give_up, run_load_block, turn

log = logging.getLogger("tiergate.load")

DISPATCH = "workers.tasks.dispatch_load"
BEGIN = "workers.tasks.begin_shadow_jobs"
LOAD_QUEUE = "load"
GUARD_QUEUE = "guard"
DISPATCH_SECONDS = 2.0
STALE_SECONDS = 3600
"""After which a schedule that nobody heard is forgotten: a job in the morning is not the one of the night."""
MOST_WAITING = 8
"""Messages in the queue; beyond, no block is told again: workers that come back need each once."""
SCHEDULED = "schedule"
"""Signs what the schedule begins."""


def routes() -> dict[str, str]:
    """The queue of each task."""
    return {LOAD_TASK: LOAD_QUEUE, DISPATCH: GUARD_QUEUE, BEGIN: GUARD_QUEUE}


def schedule_of(settings: Settings) -> dict[str, dict[str, Any]]:
    """Entries of beat's schedule; the time zone of the cron expression is the app's."""
    entries: dict[str, dict[str, Any]] = {
        DISPATCH: {"task": DISPATCH, "schedule": DISPATCH_SECONDS, "options": {"queue": GUARD_QUEUE}}
    }
    if settings.shadow_job.cron is not None:
        entries[BEGIN] = {
            "task": BEGIN,
            "schedule": crontab_of(settings.shadow_job.cron),
            "options": {"queue": GUARD_QUEUE, "expires": STALE_SECONDS},
        }
    return entries


def crontab_of(cron: Cron) -> crontab:
    """As Celery has it, number by number: its own reader takes other words for the same."""
    return crontab(
        minute=set(cron.minute),
        hour=set(cron.hour),
        day_of_month=set(cron.day_of_month),
        month_of_year=set(cron.month_of_year),
        day_of_week=set(cron.day_of_week),
    )


def register_load(app: Celery, settings: Settings, *, load_room: Callable[[], LoadRoom]) -> None:
    """Put the tasks into the app; `load_room` gives the calling process its own."""

    def queued() -> int:
        with app.connection_or_acquire() as connection:
            return int(connection.default_channel.queue_declare(LOAD_QUEUE).message_count)

    def send(job_id: str, number: int) -> None:
        app.send_task(LOAD_TASK, args=[job_id, number])

    def tell(room: LoadRoom) -> None:
        for job_id, number in to_enqueue(room.db, now=time.time(), again_after=room.lease_seconds):
            send(job_id, number)

    def run_block(job_id: str, number: int) -> None:
        """Run one block of load, and tell the broker of the next."""
        _check(job_id, number)
        try:
            room = load_room()
            run_load_block(room, job_id, number)
            tell(room)
        except (StoreUnusable, BrokerRefuses) as error:
            log.error("block %d of job %s, or the next, waits for the stores: %s", number, job_id, error)

    def dispatch_load() -> None:
        """Take turns that nobody took, end what was dropped, tell the broker what it was not told, report."""
        try:
            room = load_room()
            for job_id in settle_dropped(room.db, now=time.time()):
                log.warning("job %s is cancelled", job_id)
            for job_id in waiting_for_turn(room.db):
                _turn(room, job_id)
            if queued() < MOST_WAITING:
                tell(room)
            question = question_of(settings, room.db)
            sources = Sources(db=room.db, captures=None, ladders=room.ladders, question=question)
            for job_id in keep_due(sources, now=time.time()):
                log.info("the report of job %s is kept", job_id)
        except (StoreUnusable, RedisError, BrokerRefuses) as error:
            log.error("%s: %s", DISPATCH, error)

    def begin_shadow_jobs() -> None:
        """Begin a job of every model that has something to compare."""
        try:
            room = load_room()
            terms = job_terms_of(settings, room.db)
            for model, ladder in settings.ladders.items():
                if ladder.candidates:
                    _begin(room, terms, model)
        except StoreUnusable as error:
            log.error("%s: %s", BEGIN, error)

    tasks: Mapping[str, Callable[..., None]] = {
        LOAD_TASK: run_block,
        DISPATCH: dispatch_load,
        BEGIN: begin_shadow_jobs,
    }
    for name, work in tasks.items():
        app.task(work, name=name, shared=False)


def _turn(room: LoadRoom, job_id: str) -> None:
    """One job whose turn cannot be decided must not keep the others from theirs."""
    try:
        turn(room, job_id)
    except StoreUnusable:
        raise
    except Exception as error:
        log.exception("job %s: what is next cannot be told", job_id)
        give_up(room, job_id, f"{type(error).__name__}: {error}")


def _begin(room: LoadRoom, terms: JobTerms, model: str) -> None:
    try:
        job = begin(room.db, terms, model, cause=Cause.SCHEDULE, actor=SCHEDULED, now=time.time())
    except CannotBegin as error:
        log.error("no shadow job of %s: %s", model, "; ".join((str(error), *error.reasons)))
    else:
        log.info("shadow job %s of %s begins", job.job_id, model)


def _check(job_id: Any, number: Any) -> None:
    """The arguments of a message anybody could have enqueued."""
    if not isinstance(job_id, str) or not isinstance(number, int):
        raise TypeError("run_load_block takes a job's id and a block's number")
