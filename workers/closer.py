"""Closing conversations that are idle, so that they count (statistics A2, `units: closed_conversations`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass

from service.decision.policy import Policy, Units
from service.store.sql.database import Database
from service.store.traffic.closing import close_idle
from workers.periods import for_a_while

log = logging.getLogger("tiergate.guard")


@dataclass(slots=True, kw_only=True)
class Closer:
    """What closing needs. Any number of them may run: each conversation is closed once."""

    db: Database
    models: Collection[str]
    policy: Policy
    queued: Callable[[], int]
    """Messages that wait for workers."""
    ttl_seconds: float
    """How long a capture may wait; what waits longer has expired."""
    begin: Callable[[], Callable[[], bool]] = for_a_while
    """Begins a run; what it gives tells whether there is time for more of it."""
    nothing_waited_at: float | None = None
    """The last moment (unix seconds) at which no message waited."""


def close_conversations(closer: Closer, *, now: float) -> int:
    """Close what was idle for the policy's `idle_seconds`; how many conversations.

    Requests that wait for a worker may belong to a conversation that looks idle. What waits now was captured
    after the last moment at which nothing did, and after the oldest capture that could have expired: that is
    as far as time has passed for a conversation. After a backlog there may be thousands: what a run has no
    time for is closed by the next.
    """
    if closer.policy.units is not Units.CLOSED_CONVERSATIONS:
        return 0
    if not closer.queued():
        closer.nothing_waited_at = now
    until, last = now - closer.ttl_seconds, closer.nothing_waited_at
    if last is not None and last <= now:  # the clock may have been set back, and what came since may wait
        until = max(until, last)
    more, closed = closer.begin(), 0
    for model in closer.models:
        idle = closer.policy.idle_seconds
        closed += close_idle(closer.db, model, idle_seconds=idle, now=until, more=more)
    if closed:
        log.info("closed %d conversations", closed)
    return closed
