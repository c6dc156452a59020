"""Finding captures that nobody works on any more: their message was lost, or their holder died."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from service.store.redis.captures import Captures
from service.store.scored.leases import expire, held, lease, lose, run_out, settled, times_taken
from service.store.sql.database import Database

log = logging.getLogger("tiergate.guard")

OWNER = "sweeper"

MOST_AT_ONCE = 1000
"""Captures one sweep looks at; the next one takes the rest."""

LONG_QUEUE = 64
"""Messages. While so many wait, a capture that is due is probably in one of them: not enqueued again."""

LONGEST_PAUSE = 3600.0
"""Seconds at most until a capture that outlived its holders is tried once more."""

SUSPICIOUS = 3
"""Times a capture was taken and not settled, after which an operator is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweeper:
    """What sweeping needs."""

    db: Database
    captures: Captures
    enqueue: Callable[[Sequence[str]], None]
    """Ask a worker to replay these."""
    queued: Callable[[], int]
    """Messages that wait for workers."""
    batch: int = 16
    lease_seconds: float = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What one sweep did, in captures."""

    enqueued: int = 0
    forgotten: int = 0
    """Settled earlier, by somebody who died before he could delete them."""
    expired: int = 0
    lost: int = 0


def sweep(sweeper: Sweeper, *, now: float) -> Swept:
    """Enqueue again what is due and nobody holds.

    A capture whose lease ran out is enqueued at once, one that was never leased only while the queue is
    short. What Redis has no longer is settled here, so that the account is right also while no worker runs.
    A capture that was taken before may be what killed its holder: it goes alone, so that it takes no other
    along, and after a pause that doubles each time.
    """
    captures = sweeper.captures
    dropped = run_out(sweeper.db, now, limit=MOST_AT_ONCE)
    lost = set(dropped) - captures.indexed(dropped)
    due = captures.due(now, MOST_AT_ONCE)
    done = settled(sweeper.db, due)
    captures.forget(done)
    busy = held(sweeper.db, due, now)
    idle = [each for each in due if each not in done and each not in busy]
    expired = set(idle) - captures.present(idle)
    only_dropped = sweeper.queued() >= LONG_QUEUE
    ran_out = set(dropped)
    again = [each for each in idle if each not in expired and (each in ran_out or not only_dropped)]
    taken = times_taken(sweeper.db, again)
    fresh = [each for each in again if not taken.get(each)]
    for start in range(0, len(fresh), sweeper.batch):
        sweeper.enqueue(fresh[start : start + sweeper.batch])
    captures.postpone(fresh, now + sweeper.lease_seconds)
    for each in again:
        times = taken.get(each, 0)
        if not times:
            continue
        if times >= SUSPICIOUS:
            log.error("capture %s was taken %d times and never settled: does it end its worker?", each, times)
        sweeper.enqueue([each])
        captures.postpone([each], now + _pause(sweeper, times))
    return Swept(
        enqueued=len(again),
        forgotten=len(done),
        expired=_settle(sweeper, expired, expire, now),
        lost=_settle(sweeper, lost, lose, now),
    )


def _pause(sweeper: Sweeper, times: int) -> float:
    doubled = sweeper.lease_seconds * 2.0 ** min(times - 1, 20)
    return max(sweeper.lease_seconds, min(doubled, LONGEST_PAUSE))


def _settle(sweeper: Sweeper, ids: Collection[str], settle: Callable[..., int], now: float) -> int:
    # Leased first: a worker that fetched one of them a moment ago keeps it and records it.
    mine = lease(sweeper.db, ids, owner=OWNER, now=now, seconds=sweeper.lease_seconds)
    count = settle(sweeper.db, mine, at=now)
    sweeper.captures.forget(mine)
    return count
