"""What the guard's parts share: what they watch with, and how they say something once."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import TypeVar

from redis import RedisError

from service.approval.backends import ask_health
from service.approval.capacity import in_the_way
from service.decision.ramp import AT_ONCE, Promotion
from service.fleet import Ladder, Route
from service.store.decided.decisions import Entry, append_within, read
from service.store.redis.captures import Captures
from service.store.sql.database import Database, StoreUnusable
from service.store.verdicts.rung import Rung
from service.store.verdicts.standing import Question, Standing
from workers.periods import for_a_while

log = logging.getLogger("tiergate.guard")

ACTOR = "guard"
"""Signs what is decided here."""
ACTIONS = (
    *("harm", "alarm", "roll_back", "roll_back_refused"),
    *("slo_lost", "slo_lost_ended", "frozen", "promote"),
)
"""What it does, as the decision log and the metrics name it."""
Told = TypeVar("Told")

FIRST_WAIT_SECONDS = 2.0
LONGEST_WAIT_SECONDS = 30.0
"""Between two questions to the backends of a tier that has no room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A tier without room: not asked again before a while has passed, or the route has changed."""

    problem: str
    version: int
    """Of the route that it was about."""
    until: float
    """Unix seconds."""
    pause: float
    """Seconds, doubled each time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """What watching needs."""

    ladders: Mapping[str, Ladder]
    question: Question
    db: Database
    captures: Captures
    promotion: Promotion = AT_ONCE
    health_seconds: float = 2.0
    """How long a backend may take to say that it is up before a route moves to it."""
    begin: Callable[[], Callable[[], bool]] = for_a_while
    """Begins to look at a model; what it gives tells whether there is time for more."""
    told: set[tuple[str, str, str, str, float | None]] = field(default_factory=set)
    """(action, model, tier, epoch, time of its approval) known to be in the decision log."""
    waits: dict[tuple[str, str], Wait] = field(default_factory=dict)
    """By model and tier without room for what it should take."""
    acted: Counter[tuple[str, str]] = field(default_factory=Counter)
    """What was done since it was last read for metrics, by (action, model)."""


def nothing_done(models: Iterable[str]) -> Counter[tuple[str, str]]:
    """Every count at 0: a series that begins with 1 would look to Prometheus as if nothing had happened."""
    return Counter(dict.fromkeys(product(ACTIONS, models), 0))


def of_each_model(guard: Guard, act: Callable[[Ladder], Told], *, done: str) -> list[Told]:
    """What acting on each ladder tells; what fails of one keeps no other waiting.

    ExceptionGroup at the end, with what could not be `done` to which model; StoreUnusable at once.
    """
    told, failed = [], []
    for ladder in guard.ladders.values():
        try:
            told.append(act(ladder))
        except StoreUnusable:
            raise
        except Exception as error:
            error.add_note(f"while {ladder.model} was {done}")
            failed.append(error)
    if failed:
        raise ExceptionGroup(f"not every model could be {done}", failed)
    return told


def lacks_room(guard: Guard, standing: Standing, route: Route, tier: str, *, now: float) -> str | None:
    """Why the tier cannot take its share of the route, None when it can; asks its backends.

    While it has none they are asked less and less often, and a line in the log says when the cause changes.
    """
    key, version = (standing.ladder.model, tier), standing.route.version
    before = guard.waits.get(key)
    if before is not None and before.version == version and before.until - before.pause <= now < before.until:
        return before.problem  # a clock that was set back is no reason to wait until it is there again
    asked = standing.ladder.tier(tier)
    health = asyncio.run(ask_health(asked, timeout_seconds=guard.health_seconds))
    problem = in_the_way(standing.ladder, health, standing.route, route)
    if problem is None:
        guard.waits.pop(key, None)
        return None
    pause = FIRST_WAIT_SECONDS
    if before is not None and before.version == version:
        pause = min(2 * before.pause, LONGEST_WAIT_SECONDS)
    if before is None or before.problem != problem:
        log.warning("%s: %s cannot take more clients: %s", *key, problem)
    guard.waits[key] = Wait(problem=problem, version=version, until=now + pause, pause=pause)
    return problem


def publish(guard: Guard, route: Route) -> None:
    """Tell the proxies now; without Redis they are told when it is back."""
    try:
        guard.captures.publish_route(route)
    except RedisError as error:
        log.error("route of %s not published yet: %s", route.model, error)


def tell_once(
    guard: Guard, action: str, model: str, rung: Rung, now: float, detail: Mapping[str, object]
) -> None:
    """One row in the decision log for each approval of a tier in an epoch, across restarts and guards.

    Who approved it anew must be told anew: silence would read as if it were well.
    """
    assert rung.verdict is not None, "only a rung with a verdict has something to tell"
    epoch, approved_at = rung.verdict.epoch, None if rung.approval is None else rung.approval.at
    mark = (action, model, rung.tier.name, epoch, approved_at)
    if mark in guard.told:
        return
    with guard.db.write() as connection:
        guard.db.lock(connection, "decisions")  # before the log is read: of two guards, one tells
        known = {
            (entry.action, model, entry.tier, entry.detail.get("epoch"), entry.detail.get("approved_at"))
            for entry in _entries(guard.db, model)
        }
        if mark not in known:
            append_within(
                guard.db,
                connection,
                at=now,
                actor=ACTOR,
                action=action,
                model=model,
                tier=rung.tier.name,
                detail={"epoch": epoch, "approved_at": approved_at, **detail},
            )
    if mark not in known:
        log.error("%s: %s: %s: %s", model, rung.tier.name, action, detail)
        guard.acted[action, model] += 1
    guard.told.add(mark)


def _entries(db: Database, model: str) -> Iterator[Entry]:
    after = 0
    while rows := read(db, model, after=after, limit=1000):
        yield from rows
        after = rows[-1].seq
