"""What Celery calls: thin tasks over `replay`, `sweeper` and `guard`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from celery import Celery, Task
from kombu.exceptions import OperationalError as BrokerRefuses
from redis import RedisError
from redis.exceptions import ConnectionError as RedisGone
from redis.exceptions import OutOfMemoryError, ReadOnlyError, ResponseError
from redis.exceptions import TimeoutError as RedisSilent

from service.store.kept.forgetting import expire_kept
from service.store.kept.prompt_prefixes import trim_prefixes
from service.store.labels.adjudication import expire_texts
from service.store.load.engine_readings import KEPT_SECONDS, forget_readings
from service.store.load.load_blocks import forget_columns
from service.store.outgoing.callbacks import forget_callbacks
from service.store.redis import redis_keys
from service.store.redis.spending import Budget
from service.store.redis.task_message import REPLAY_TASK
from service.store.redis.worker_counts import WorkerCounts
from service.store.sql.database import StoreUnusable
from service.store.traffic.ledger import copy_from_redis
from service.store.traffic.retention import Bare, Retained, retain
from workers import metrics
from workers.callbacks import Answerer, answer_callbacks
from workers.closer import Closer, close_conversations
from workers.guard import publish_routes, watch_serving
from workers.judging import Judged, Judging, judge_some
from workers.looks import take_looks
from workers.periods import for_a_while
from workers.replay import Bench, replay_batch
from workers.rescoring import rescore
from workers.sweeper import Sweeper, Swept, sweep
from workers.watching import Guard
from workers.webhooks import Postman, send_webhooks

log = logging.getLogger("tiergate.worker")

SWEEP = "workers.tasks.sweep"
COPY_LEDGER = "workers.tasks.copy_ledger"
WATCH_ROUTES = "workers.tasks.watch_routes"
RETAIN = "workers.tasks.retain"
LOOK = "workers.tasks.take_looks"
CLOSE = "workers.tasks.close_conversations"
OBSERVE = "workers.tasks.observe_engines"
CALLBACKS = "workers.tasks.answer_callbacks"
WEBHOOKS = "workers.tasks.send_webhooks"
RESCORE = "workers.tasks.rescore_kept"
JUDGE = "workers.tasks.judge_items"
NOT_NOW = (StoreUnusable, RedisGone, RedisSilent, OutOfMemoryError, ReadOnlyError, BrokerRefuses)
"""What a store raises that is away, slow, full or read-only: nobody's mistake, and it passes. The last one is
Celery's word for all of that where a message was to be sent."""
CANNOT_SAVE = "MISCONF"
"""How Redis begins to say so; its client has no name for it."""
COLUMNS_KEPT_SECONDS = 180 * 86_400.0
"""The requests of a block of load, of which its figures are made; these stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardRoom:
    """What the guard's child holds open."""

    sweeper: Sweeper
    closer: Closer
    guard: Guard
    observe: Callable[[float], object]
    """Looks at the engines of every tier; takes the time, in Unix seconds."""
    counts: WorkerCounts
    answerer: Answerer
    """Gives pipelines the answers that are owed to them."""
    postman: Postman
    """Tells receivers of webhooks what they are owed."""
    retention_seconds: float
    """How long settlements and the reasons beside pairs are kept."""
    prefixes: int = 0
    """Latest prompts of each model whose beginnings are kept."""
    bare: Bare = field(default_factory=dict)
    """Units whose reasons are forgotten already, as `retain` has it."""

    def close(self) -> None:
        self.answerer.close()
        self.postman.close()
        self.guard.captures.close()
        self.guard.db.close()


def register(
    app: Celery,
    *,
    bench: Callable[[], Bench],
    guard_room: Callable[[], GuardRoom],
    judging: Judging | None = None,
) -> None:
    """Put the tasks into the app; `bench` and `guard_room` give the calling process its own."""

    def replay_captures(task: Task, ids: list[str]) -> None:
        """Replay captures, by id; those that the stores cannot settle are found by a later sweep."""
        asked = _ids(ids)
        with _another_time(f"{len(asked)} captures wait until the stores can be used again"):
            replay_batch(bench(), asked, delivery=task.request.id)

    def rescore_kept() -> None:
        """Judge kept answers again that were judged by other evaluators."""
        with _another_time("kept answers wait until the stores can be used again"):
            rescore(bench())

    def judge_items() -> None:
        """Let the judge label some of the pairs that are queued for people."""
        assert judging is not None, "the task is there only where a judge is configured"
        with _another_time("the judge waits until the stores can be used again"):
            own = bench()
            per_day = judging.plan.tokens_per_day
            budget = Budget(own.captures.redis, tokens_per_day=per_day, key=redis_keys.JUDGE_TOKENS)
            judged = judge_some(judging, own.db, own.keyring, budget, clock=time.time)
            if judged != Judged():
                log.info("judged: %s", judged)

    def sweep_captures(room: GuardRoom) -> None:
        """Enqueue again what is due and nobody holds."""
        swept = sweep(room.sweeper, now=time.time())
        if swept != Swept():
            log.info("swept: %s", swept)

    def copy_ledger(room: GuardRoom) -> None:
        """Bring the proxies' counters from Redis into SQL."""
        copy_from_redis(room.guard.db, room.guard.captures.redis)

    def watch_routes(room: GuardRoom) -> None:
        """Roll back what does harm; tell the proxies what Redis forgot."""
        try:
            watch_serving(room.guard, now=time.time())
        finally:
            publish_routes(room.guard)

    def retain_settled(room: GuardRoom) -> None:
        """Forget what is older than the retention."""
        now = time.time()
        before = now - room.retention_seconds
        gone = retain(room.guard.db, before=before, bare=room.bare, more=for_a_while())
        if gone != Retained():
            log.info("retained: %s", gone)
        log.info("expired: %s", expire_kept(room.guard.db, now=now))
        forget_columns(room.guard.db, before=now - COLUMNS_KEPT_SECONDS)
        forget_callbacks(room.guard.db, before=now - room.retention_seconds)
        forget_readings(room.guard.db, before=now - KEPT_SECONDS)
        trim_prefixes(room.guard.db, most=room.prefixes)
        if texts := expire_texts(room.guard.db, now=now):
            log.info("%d texts kept for adjudication are gone", texts)

    def look_at_tiers(room: GuardRoom) -> None:
        """Keep how far the limits of every criterion have narrowed."""
        take_looks(room.guard, now=time.time())

    def close_idle(room: GuardRoom) -> None:
        """Let conversations count that nothing more is expected of."""
        close_conversations(room.closer, now=time.time())

    def observe_engines(room: GuardRoom) -> None:
        """Ask the engines who they are, and settle which artifact each tier is."""
        room.observe(time.time())

    def answer_pipelines(room: GuardRoom) -> None:
        """Call back the pipelines that wait for a judgement."""
        answer_callbacks(room.answerer, now=time.time())

    def tell_webhooks(room: GuardRoom) -> None:
        """Note what webhooks are owed and begin to tell it."""
        send_webhooks(room.postman, now=time.time())

    # Not shared: Celery would put them into every other app of the process as well.
    app.task(replay_captures, name=REPLAY_TASK, bind=True, shared=False)
    app.task(rescore_kept, name=RESCORE, shared=False)
    if judging is not None:
        app.task(judge_items, name=JUDGE, shared=False)
    guarded = {
        SWEEP: sweep_captures,
        CLOSE: close_idle,
        OBSERVE: observe_engines,
        COPY_LEDGER: copy_ledger,
        WATCH_ROUTES: watch_routes,
        RETAIN: retain_settled,
        LOOK: look_at_tiers,
        CALLBACKS: answer_pipelines,
        WEBHOOKS: tell_webhooks,
    }
    for name, work in guarded.items():
        app.task(_in_room(name, work, guard_room), name=name, shared=False)


@contextmanager
def _another_time(waits: str) -> Iterator[None]:
    """What a store hinders that cannot be used now is a line in the log: `waits`, and why."""
    try:
        yield
    except NOT_NOW as error:
        log.error("%s: %s", waits, error)
    except ResponseError as error:
        if CANNOT_SAVE not in str(error):
            raise
        log.error("%s: %s", waits, error)


def _in_room(
    name: str, work: Callable[[GuardRoom], None], guard_room: Callable[[], GuardRoom]
) -> Callable[[], None]:
    """The work as a task: runs are counted; a store that is away is a line in the log, no traceback.

    Nothing is asked for again here: every entry of the schedule comes back by itself.
    """

    def run() -> None:
        try:
            room = guard_room()
        except StoreUnusable as error:
            log.error("%s: %s", name, error)
            return
        ending = "failed"
        try:
            with _another_time(name):
                work(room)
                ending = "done"
        finally:
            _count(room, {metrics.series(metrics.GUARD_RUNS, task=name, ending=ending): 1})

    run.__name__, run.__doc__ = work.__name__, work.__doc__
    return run


def _count(room: GuardRoom, runs: dict[str, int]) -> None:
    """Count the run, and what the guard did; without Redis what it did is counted another time."""
    try:
        room.counts.add(runs | _actions(room.guard.acted))
    except RedisError as error:
        log.error("what the guard did is not counted yet: %s", error)
    else:
        room.guard.acted.clear()


def _actions(acted: Mapping[tuple[str, str], int]) -> dict[str, int]:
    """What the guard did, as series."""
    return {
        metrics.series(metrics.GUARD_ACTIONS, action=action, model=model): count
        for (action, model), count in acted.items()
    }


def _ids(given: Any) -> list[str]:
    """The argument of a message anybody could have enqueued."""
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise TypeError("replay_captures takes one list of capture ids")
    return given
