"""The e-detector of every criterion of a tier that serves, kept in SQL: fed with each conversation once.

They enter in the order in which they count, which is that of their captures being taken up. Those that
overtook a capture which is still being replayed wait, as they do for a verdict; one that nobody could wait
for enters when it comes. The units seen are listed from the floor on, so that nothing is counted twice or
skipped whatever two guards, a crash or a slow worker do: list, floor and state change in one transaction. The
floor stays ten minutes behind whatever is under way: that far the clocks of workers may be apart.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, delete, exists, func, select, update

from service.decision.detector import Stretch
from service.decision.policy import Criterion
from service.decision.watch import Watch
from service.store.redis.capture import model_mark
from service.store.scored.leases import State, oldest_awaited
from service.store.scored.units import Arm, PairOutcome
from service.store.sql.database import Database
from service.store.sql.schema import captures, conversations, detector_units, detectors, key_of, pairs, units

SLACK_SECONDS = 600.0
AT_ONCE = 5000
"""Units in one transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Which detector: a tier in an epoch; one for each criterion."""

    model: str
    tier: str
    epoch: str


def feed(
    db: Database,
    place: Place,
    criterion: Criterion,
    *,
    promoted_at: float,
    now: float,
    at_once: int | None = None,
    more: Callable[[], bool] = lambda: True,
) -> Watch:
    """Bring the detector up to date and return it; it starts with the promotion and ends at its alarm.

    `more` is asked after every transaction, of `at_once` units (`AT_ONCE`): a detector that is far behind is
    brought on by the next calls.

    A tier that was out of service and was promoted anew starts anew; one that only came back to an epoch
    (an engine that flapped) goes on. All in Unix seconds.
    """
    while True:
        with db.read() as connection:
            known = _read(connection, place, criterion)
            if (
                known is not None
                and not known.ended_before(promoted_at)
                and (known.watch.alarm or known.is_current(connection, place, criterion))
            ):
                return known.watch
        with db.write() as connection:
            db.lock(connection, f"detector of {place.model} {place.tier}")
            watch, behind = _feed(
                db, connection, place, criterion, promoted_at=promoted_at, now=now, at_once=at_once or AT_ONCE
            )
        if not behind or not more():
            return watch


def stop_others(db: Database, model: str, serving: set[tuple[str, str]], *, at: float) -> None:
    """Note of the model's detectors whose (tier, epoch) no longer serves since when that is so.

    `at` is the moment of issue of the route under which it does not (Unix seconds). Routes are issued one
    after the other whatever clocks say, so a later promotion is later than this, too.
    """
    running = select(detectors.c.tier, detectors.c.epoch).where(
        detectors.c.model == model, detectors.c.stopped_at.is_(None)
    )
    with db.read() as connection:
        gone = {(row.tier, row.epoch) for row in connection.execute(running)} - serving
    if not gone:
        return
    with db.write() as connection:
        for tier, epoch in sorted(gone):
            connection.execute(
                update(detectors)
                .where(
                    detectors.c.model == model,
                    detectors.c.tier == tier,
                    detectors.c.epoch == epoch,
                    detectors.c.stopped_at.is_(None),
                )
                .values(stopped_at=at)
            )


def read_watch(db: Database, place: Place, criterion: Criterion) -> Watch | None:
    """The detector as last fed; None before it was."""
    with db.read() as connection:
        known = _read(connection, place, criterion)
    return None if known is None else known.watch


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """A row of `detectors`."""

    watch: Watch
    started_at: float
    stopped_at: float | None
    floor: float

    def ended_before(self, promoted_at: float) -> bool:
        """Whether it belongs to an earlier time of service: its alarm says nothing about this one."""
        return self.stopped_at is not None and self.stopped_at < promoted_at

    def is_current(self, connection: Connection, place: Place, criterion: Criterion) -> bool:
        """Whether it runs, and has seen every unit that need not wait."""
        if self.stopped_at is not None:
            return False
        news = _unseen(connection, place, criterion.evaluator, self.floor).limit(1)
        return connection.execute(news).one_or_none() is None


def _read(connection: Connection, place: Place, criterion: Criterion) -> _Kept | None:
    row = connection.execute(select(detectors).where(_mine(place, criterion.evaluator))).one_or_none()
    if row is None:
        return None
    told, fresh = json.loads(row.state), Watch.of(criterion)
    watch = replace(
        fresh,
        worse=_stretch(told["worse"], fresh.worse),
        better=None if fresh.better is None else _stretch(told["better"], fresh.better),
    )
    return _Kept(watch=watch, started_at=row.started_at, stopped_at=row.stopped_at, floor=row.floor)


def _feed(
    db: Database,
    connection: Connection,
    place: Place,
    criterion: Criterion,
    *,
    promoted_at: float,
    now: float,
    at_once: int,
) -> tuple[Watch, bool]:
    """One transaction's work; whether there is more."""
    known = _read(connection, place, criterion)
    detector = key_of(place.model, place.tier, place.epoch, criterion.evaluator)
    if known is None or known.ended_before(promoted_at):
        connection.execute(delete(detector_units).where(detector_units.c.detector == detector))
        known = _Kept(watch=Watch.of(criterion), started_at=promoted_at, stopped_at=None, floor=promoted_at)
    # Before the units are read: one recorded in between is above the floor, and found next time.
    under_way = _oldest(connection, place.model)
    found = connection.execute(
        _unseen(connection, place, criterion.evaluator, known.floor).limit(at_once)
    ).all()
    more = len(found) == at_once
    if more:
        # The last conversation may be cut in two: it comes first next time.
        whole = [row for row in found if row.conversation != found[-1].conversation]
        found = whole or found
    taken = {str(row.unit_id): float(row.taken_at) for row in found}
    talks: dict[str, list[str]] = {}
    for row in found:
        talks.setdefault(row.conversation, []).append(row.unit_id)
    watch = known.watch.after(_differences(connection, list(talks.values())))
    floor = known.floor
    if taken:
        connection.execute(
            detector_units.insert(),
            [{"unit_id": unit, "detector": detector, "taken_at": at} for unit, at in taken.items()],
        )
    if not more:
        # Nor ahead of the units: a clock of the guard that runs ahead would hide those to come.
        latest = max(taken.values(), default=floor)
        floor = max(floor, min(now, latest, under_way) - SLACK_SECONDS)
        connection.execute(
            delete(detector_units).where(
                detector_units.c.detector == detector, detector_units.c.taken_at < floor
            )
        )
    kept: dict[str, object] = {
        "state": _written(watch),
        "started_at": known.started_at,
        "stopped_at": None,
        "floor": floor,
    }
    insert = db.insert(detectors).values(**_names(place, criterion.evaluator), **kept)
    connection.execute(
        insert.on_conflict_do_update(index_elements=list(detectors.primary_key.columns), set_=kept)
    )
    return watch, more and not watch.alarm


def _unseen(
    connection: Connection, place: Place, evaluator: str, floor: float
) -> Select[tuple[str, str, float]]:
    """Counted units that no capture under way may still come before, in the order in which they count."""
    awaited = oldest_awaited(connection, place.model)
    wanted = [
        units.c.model == place.model,
        units.c.tier == place.tier,
        units.c.arm == Arm.CANDIDATE.value,
        units.c.taken_at >= floor,
        units.c.epoch == place.epoch,
        units.c.evaluator == evaluator,
        units.c.counted,
        ~exists().where(detector_units.c.unit_id == units.c.unit_id),
    ]
    if awaited is not None:
        wanted.append(units.c.taken_at < awaited)
    return (
        select(units.c.unit_id, units.c.conversation, units.c.taken_at)
        .where(*wanted)
        .order_by(units.c.taken_at, units.c.conversation, units.c.unit_id)
    )


def _oldest(connection: Connection, model: str) -> float:
    """Before which no unit can come any more, but for clocks that differ; infinity with nothing under way.

    A conversation that is still open counts later, at a moment after its last request was taken up.
    """
    leased = captures.c.state == State.LEASED, captures.c.mark == model_mark(model)
    is_open = conversations.c.model == model, conversations.c.closed_at.is_(None)
    found = [
        connection.execute(select(func.min(captures.c.taken_at)).where(*leased)).scalar(),
        connection.execute(select(func.min(conversations.c.last_at)).where(*is_open)).scalar(),
    ]
    return min((float(each) for each in found if each is not None), default=math.inf)


def _differences(connection: Connection, talks: Sequence[Sequence[str]]) -> Iterator[float]:
    """The mean difference of the scored pairs of each conversation, given by its units, in order."""
    for start in range(0, len(talks), 200):
        chunk = talks[start : start + 200]
        rows = connection.execute(
            select(pairs.c.unit_id, pairs.c.baseline_passed, pairs.c.candidate_passed).where(
                pairs.c.unit_id.in_([unit for talk in chunk for unit in talk]),
                pairs.c.outcome == PairOutcome.SCORED,
            )
        )
        scored: defaultdict[str, list[int]] = defaultdict(list)
        for row in rows:
            scored[row.unit_id].append(int(row.baseline_passed) - int(row.candidate_passed))
        for talk in chunk:
            if found := [difference for unit in talk for difference in scored[unit]]:
                yield fmean(found)


def _mine(place: Place, criterion: str) -> ColumnElement[bool]:
    return and_(*(detectors.c[name] == value for name, value in _names(place, criterion).items()))


def _names(place: Place, criterion: str) -> dict[str, str]:
    return {"model": place.model, "tier": place.tier, "epoch": place.epoch, "criterion": criterion}


def _written(watch: Watch) -> str:
    stretches = {"worse": watch.worse} | ({} if watch.better is None else {"better": watch.better})
    return json.dumps(
        {
            name: {
                "units": stretch.units,
                "log_product": stretch.log_product,
                "log_total": [None if total == -math.inf else total for total in stretch.log_total],
            }
            for name, stretch in stretches.items()
        },
        allow_nan=False,
    )


def _stretch(told: Mapping[str, Any], fresh: Stretch) -> Stretch:
    return replace(
        fresh,
        units=told["units"],
        log_product=tuple(told["log_product"]),
        log_total=tuple(-math.inf if total is None else total for total in told["log_total"]),
    )
