"""Opens what the guard's child holds, from settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from service.settings import Settings
from service.settings.questions import question_of
from service.store.redis.captures import open_captures
from service.store.redis.worker_counts import WorkerCounts
from service.store.sql.database import open_database
from workers.callbacks import open_answerer
from workers.closer import Closer
from workers.observe import observe
from workers.sweeper import Sweeper
from workers.tasks import GuardRoom
from workers.watching import Guard, nothing_done
from workers.webhooks import open_postman

RETENTION_SECONDS = 30 * 86_400.0


def open_guard_room(
    settings: Settings,
    *,
    worker: str,
    part: str,
    enqueue: Callable[[Sequence[str]], None],
    queued: Callable[[], int],
    lease_seconds: float,
) -> GuardRoom:
    """The guard of one process; `part` is how the decision log names it."""
    db, captures = open_database(settings.database_url, part=part), open_captures(settings.redis_url)
    question, mirroring = question_of(settings, db), settings.proxy.mirroring
    return GuardRoom(
        sweeper=Sweeper(
            db=db,
            captures=captures,
            enqueue=enqueue,
            queued=queued,
            batch=mirroring.batch,
            lease_seconds=lease_seconds,
        ),
        closer=Closer(
            db=db,
            models=tuple(settings.ladders),
            policy=settings.policy,
            queued=queued,
            ttl_seconds=mirroring.ttl_seconds,
        ),
        guard=Guard(
            ladders=settings.ladders,
            question=question,
            db=db,
            captures=captures,
            promotion=settings.promotion,
            acted=nothing_done(settings.ladders),
        ),
        observe=lambda now: observe(db, settings.ladders, settings.declared, now=now),
        counts=WorkerCounts(captures.redis, worker=worker),
        answerer=open_answerer(db, settings.ladders, question, settings.pipelines),
        postman=open_postman(db, settings.ladders, question, settings.webhooks),
        # Beyond the life of any capture, or a late message would be counted again.
        retention_seconds=max(RETENTION_SECONDS, 2.0 * mirroring.ttl_seconds),
        prefixes=settings.corpus.prefixes,
    )
