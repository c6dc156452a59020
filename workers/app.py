"""The root of the Celery side: settings in, one app out.

    celery -A workers.app worker -Q replay
    celery -A workers.app worker -Q guard -c 1
    celery -A workers.app worker -Q load -c 1
    celery -A workers.app beat

Messages carry ids and nothing else, as JSON. They are acknowledged late and taken one at a time; what a
dead worker held comes back by its lease in SQL, not by the broker's visibility timeout. With
TIERGATE_WORKER_LISTEN=HOST:PORT the main process of a worker, or beat, serves `/metrics`, `/healthz` and
`/readyz`; TIERGATE_LEASE_SECONDS (120) says how long a dead worker's captures, or block of load,
stay with it.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from celery import Celery

from evaluators.rubrics import rubric_of
from service.redaction import Mask
from service.settings import Settings, SettingsError, load, units
from service.settings.redacting import MaskUnusable, mask_of
from service.store.decided.policy_changes import note_policy
from service.store.labels.adjudication import Where
from service.store.redis.captures import open_captures
from service.store.redis.spending import Budget
from service.store.redis.task_message import REPLAY_TASK
from service.store.redis.worker_counts import WorkerCounts
from service.store.sql.database import Database, StoreUnusable, open_database
from service.store.verdicts.current_epochs import read_epochs
from workers import load_tasks, tasks
from workers.acknowledging import insist
from workers.answering import Answering
from workers.backends import Limits, Shadow
from workers.drawing import Drawing
from workers.guard_room import open_guard_room
from workers.judge import SECONDS_PER_ANSWER
from workers.judging import Judging
from workers.keeping import Keeping
from workers.lifecycle import Life, PerProcess, follow
from workers.load_room import open_load_room
from workers.metrics import Listener
from workers.periods import lease_seconds, visibility_seconds
from workers.probes import Probing
from workers.replay import Bench, Terms
from workers.schedule import QuietScheduler
from workers.shadow_job import LoadRoom
from workers.units import Scoring

LISTEN = "TIERGATE_WORKER_LISTEN"
WORKER = "worker"
"""As the decision log names it."""
GUARD_QUEUE = "guard"
SCHEDULE = {
    tasks.SWEEP: 30.0,
    tasks.CLOSE: 10.0,
    tasks.OBSERVE: 30.0,
    tasks.COPY_LEDGER: 2.0,
    tasks.WATCH_ROUTES: 2.0,
    tasks.RETAIN: 300.0,
    tasks.LOOK: 60.0,
}
"""Seconds between runs, by task of the guard."""
CALLBACK_SECONDS = 5.0
"""Between two runs of what answers pipelines; scheduled only where one is configured."""
WEBHOOK_SECONDS = 5.0
"""Between two looks at what webhooks are owed; scheduled only where one is configured."""
RESCORE_SECONDS = 60.0
"""Between two runs of what judges kept answers again; by workers that replay, since it takes their time."""
JUDGE_SECONDS = 60.0
"""Between two runs of the judge, each of a few items (`workers.judging`)."""
AT_ONCE = frozenset({tasks.OBSERVE})
"""Due as soon as beat starts, and not an interval later: the first pairs belong to what the engines are."""
LONG_AGO = datetime.fromtimestamp(0, UTC)


def create_app(settings: Settings, environ: Mapping[str, str]) -> Celery:
    """The Celery app of one configuration, with tasks, schedule and signals in place."""
    replaying = {tasks.RESCORE: RESCORE_SECONDS}
    if settings.adjudication.judge is not None:
        replaying[tasks.JUDGE] = JUDGE_SECONDS
    guarding = SCHEDULE | ({tasks.CALLBACKS: CALLBACK_SECONDS} if settings.pipelines.any else {})
    if settings.webhooks:
        guarding |= {tasks.WEBHOOKS: WEBHOOK_SECONDS}
    app = Celery("tiergate", broker=settings.broker_url, set_as_current=False)
    app.conf.update(
        accept_content=["json"],
        task_serializer="json",
        task_ignore_result=True,
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        task_default_queue=settings.proxy.mirroring.queue,
        task_routes=dict.fromkeys((REPLAY_TASK, *replaying), settings.proxy.mirroring.queue)
        | dict.fromkeys(guarding, GUARD_QUEUE)
        | load_tasks.routes(),
        timezone=settings.shadow_job.timezone,
        beat_schedule={
            name: {
                "task": name,
                "schedule": seconds,
                "options": {"queue": GUARD_QUEUE},
                "last_run_at": LONG_AGO if name in AT_ONCE else None,
            }
            for name, seconds in guarding.items()
        }
        | {
            name: {
                "task": name,
                "schedule": seconds,
                "options": {"queue": settings.proxy.mirroring.queue},
            }
            for name, seconds in replaying.items()
        }
        | load_tasks.schedule_of(settings),
        beat_scheduler=QuietScheduler,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        # Redis that is full, read-only or cannot save does not note that a message was taken; Celery ended.
        broker_channel_error_retry=True,
        broker_transport_options={
            "visibility_timeout": visibility_seconds(environ),
            "socket_timeout": 30,
            "socket_connect_timeout": 5,
            "socket_keepalive": True,
            "health_check_interval": 20,
        },
    )
    insist(app)
    life = Life()
    roots = _Roots(
        settings=settings,
        app=app,
        life=life,
        lease_seconds=lease_seconds(environ),
        mask=_mask(settings.corpus.redact),
    )
    bench, guard_room = PerProcess(roots.open_bench), PerProcess(roots.open_guard_room)
    load_room = PerProcess(roots.open_load_room)
    tasks.register(app, bench=bench, guard_room=guard_room, judging=roots.judging())
    load_tasks.register_load(app, settings, load_room=load_room)
    listen = environ.get(LISTEN)
    follow(
        life,
        rooms=(bench, guard_room, load_room),
        check=roots.check_database,
        bind=lambda: roots.bind(listen, roots.counted),
        bind_beat=lambda counts: roots.bind(listen, counts),
    )
    return app


@dataclass(frozen=True, slots=True, kw_only=True)
class _Roots:
    """Opens what the processes of one worker need, from its settings."""

    settings: Settings
    app: Celery
    life: Life
    lease_seconds: float
    mask: Mask

    def open_bench(self) -> Bench:
        settings, shadow = self.settings, self.settings.shadow
        captures = open_captures(settings.redis_url)
        limits = Limits(
            timeout_seconds=shadow.timeout_seconds, concurrency=shadow.concurrency, retries=shadow.retries
        )
        return Bench(
            worker=self.life.name,
            terms=Terms(
                ladders=settings.ladders,
                probing=self._probing,
                answer_rule=settings.answer_rule_of,
                scoring=self._scoring,
                probes_per_day=lambda model: settings.probe_of(model).tokens_per_day,
                on_serving=shadow.on_serving,
                repeats=shadow.repeats,
                keeping=self._keeping(),
                drawing=self._drawing(),
                lease_seconds=self.lease_seconds,
            ),
            keyring=settings.keyring,
            db=open_database(settings.database_url, part=WORKER),
            captures=captures,
            budget=Budget(captures.redis, tokens_per_day=shadow.tokens_per_day),
            counts=WorkerCounts(captures.redis, worker=self.life.name),
            answering=Answering(lambda: Shadow(limits), stopping=self.life.is_stopping),
        )

    def _scoring(self, db: Database) -> Scoring:
        epochs = read_epochs(db, self.settings.ladders, self.settings.declared)
        return Scoring(
            evaluators=self.settings.evaluators,
            onlookers=self.settings.onlookers,
            epoch_of=epochs.epoch_of,
            unsettled_of=epochs.unsettled_of,
            since_of=epochs.since_of,
            seconds_per_answer=SECONDS_PER_ANSWER,
            count=self.settings.policy.units,
        )

    def _keeping(self) -> Keeping:
        plan = self.settings.adjudication
        return Keeping(
            evaluators=frozenset(plan.evaluators),
            audit=plan.audit,
            overlap=plan.overlap,
            keep_seconds=plan.keep_seconds,
            mask=self.mask,
        )

    def judging(self) -> Judging | None:
        """Whom to ask for labels, None where only people give any."""
        settings = self.settings
        if settings.adjudication.judge is None:
            return None

        def places(db: Database) -> list[Where]:
            epochs = read_epochs(db, settings.ladders, settings.declared)
            return [
                Where(ladder.model, tier.name, epochs.epoch_of(ladder.model, tier.name))
                for ladder in settings.ladders.values()
                for tier in ladder.candidates
            ]

        return Judging(
            plan=settings.adjudication.judge,
            rubrics={each.name: rubric_of(each) for each in settings.evaluators},
            places=places,
        )

    def _drawing(self) -> Drawing:
        mirroring, terms = self.settings.proxy.mirroring, self.settings.corpus
        return Drawing(
            plan=terms.plan,
            answers=terms.answers,
            mask=self.mask,
            salt=mirroring.salt,
            share=mirroring.sample,
            resend_seconds=terms.resend_seconds,
            prefixes=terms.prefixes,
        )

    def _probing(self, model: str) -> Probing:
        plan = self.settings.probe_of(model)
        return Probing(
            per_capture=plan.per_capture,
            planted=plan.planted,
            min_context_chars=plan.min_context_chars,
            max_tokens=plan.max_tokens,
            extra_body=plan.extra_body,
        )

    def open_guard_room(self) -> tasks.GuardRoom:
        return open_guard_room(
            self.settings,
            worker=self.life.name,
            part=WORKER,
            enqueue=lambda ids: self.app.send_task(REPLAY_TASK, args=[list(ids)]),
            queued=self._queued,
            lease_seconds=self.lease_seconds,
        )

    def open_load_room(self) -> LoadRoom:
        return open_load_room(
            self.settings,
            worker=self.life.name,
            stopping=self.life.is_stopping,
            lease_seconds=self.lease_seconds,
        )

    def _queued(self) -> int:
        with self.app.connection_or_acquire() as connection:
            queue = self.settings.proxy.mirroring.queue
            return int(connection.default_channel.queue_declare(queue).message_count)

    def check_database(self) -> None:
        """SystemExit, saying what to do, when the database cannot be used."""
        try:
            db = open_database(self.settings.database_url, part=WORKER)
            try:
                note_policy(db, self.settings.policy, at=time.time(), actor=WORKER)
            finally:
                db.close()
        except StoreUnusable as error:
            raise SystemExit(str(error)) from error

    def bind(self, listen: str | None, counts: Callable[[], Mapping[str, int]]) -> Listener | None:
        """The listener of the main process, if one is asked for; SystemExit when it cannot be."""
        if not listen:
            return None
        try:
            address = units.listen(listen)
            return Listener(address.host, address.port, counts=counts, ready=self._check_ready)
        except (ValueError, OSError) as error:
            raise SystemExit(f"{LISTEN}={listen}: {error}; choose another address, or unset it") from error

    def counted(self) -> Mapping[str, int]:
        """What the children counted; the main process keeps no connection, since it forks."""
        captures = open_captures(self.settings.redis_url)
        try:
            return WorkerCounts(captures.redis, worker=self.life.name).read()
        finally:
            captures.close()

    def _check_ready(self) -> None:
        """Raises when Redis or the database does not answer."""
        captures = open_captures(self.settings.redis_url)
        try:
            captures.ping()
        finally:
            captures.close()
        open_database(self.settings.database_url).close()


def _mask(name: str) -> Mask:
    try:
        return mask_of(name)
    except MaskUnusable as error:
        raise SystemExit(str(error)) from None


@functools.cache
def _configured() -> Celery:
    try:
        return create_app(load(None, os.environ), os.environ)
    except SettingsError as error:
        raise SystemExit(str(error)) from None


def __getattr__(name: str) -> Celery:
    """`app`, made when it is first asked for: importing this module reads no configuration."""
    if name == "app":
        return _configured()
    raise AttributeError(name)
