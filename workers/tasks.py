"""What Celery calls: thin tasks over `replay`, `sweeper` and `guard`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from celery import Celery, Task

from service.store.ledger import copy_from_redis
from service.store.retention import retain
from service.store.task_message import REPLAY_TASK
from workers.guard import Guard, publish_routes, watch_serving
from workers.replay import Bench, replay_batch
from workers.sweeper import Sweeper, Swept, sweep

log = logging.getLogger("tiergate.worker")

SWEEP = "workers.tasks.sweep"
COPY_LEDGER = "workers.tasks.copy_ledger"
WATCH_ROUTES = "workers.tasks.watch_routes"
RETAIN = "workers.tasks.retain"


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardRoom:
    """What the guard's child holds open."""

    sweeper: Sweeper
    guard: Guard
    retention_seconds: float
    """How long settlements and the reasons beside pairs are kept."""

    def close(self) -> None:
        self.guard.captures.close()
        self.guard.db.close()


def register(app: Celery, *, bench: Callable[[], Bench], guard_room: Callable[[], GuardRoom]) -> None:
    """Put the tasks into the app; `bench` and `guard_room` give the calling process its own."""

    def replay_captures(task: Task, ids: list[str]) -> None:
        """Replay captures, by id."""
        replay_batch(bench(), _ids(ids), delivery=task.request.id)

    def sweep_captures() -> None:
        """Enqueue again what is due and nobody holds."""
        swept = sweep(guard_room().sweeper, now=time.time())
        if swept != Swept():
            log.info("swept: %s", swept)

    def copy_ledger() -> None:
        """Bring the proxies' counters from Redis into SQL."""
        guard = guard_room().guard
        copy_from_redis(guard.db, guard.captures.redis)

    def watch_routes() -> None:
        """Tell the proxies what Redis forgot; roll back what does harm."""
        guard = guard_room().guard
        publish_routes(guard)
        watch_serving(guard, now=time.time())

    def retain_settled() -> None:
        """Forget what is older than the retention."""
        room = guard_room()
        log.info("retained: %s", retain(room.guard.db, before=time.time() - room.retention_seconds))

    # Not shared: Celery would put them into every other app of the process as well.
    app.task(replay_captures, name=REPLAY_TASK, bind=True, shared=False)
    app.task(sweep_captures, name=SWEEP, shared=False)
    app.task(copy_ledger, name=COPY_LEDGER, shared=False)
    app.task(watch_routes, name=WATCH_ROUTES, shared=False)
    app.task(retain_settled, name=RETAIN, shared=False)


def _ids(given: Any) -> list[str]:
    """The argument of a message anybody could have enqueued."""
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise TypeError("replay_captures takes one list of capture ids")
    return given
