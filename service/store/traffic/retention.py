"""What is not kept for ever: settlements, the reasons beside pairs, and the ledgers of proxies long gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, literal, not_, select, tuple_, update

from service.store.redis.redis_keys import META
from service.store.scored.pairs import increment
from service.store.sql.database import Database
from service.store.sql.schema import (
    captures,
    in_doubt,
    ledger_counters,
    ledger_instances,
    pairs,
    settled_captures,
    units,
)

GONE = "gone"
"""The instance under which proxies long gone are added up."""
_AT_ONCE = 1000
"""Rows in one transaction."""

Place = tuple[str, str, str]
"""Model, tier and arm."""
Bare = dict[Place, tuple[float, str]]
"""The latest unit whose pairs have no reasons any more: when it was judged (unix seconds), and which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retained:
    """How much a run took away."""

    settlements: int = 0
    reasons: int = 0
    instances: int = 0


def retain(
    db: Database,
    *,
    before: float,
    bare: Bare | None = None,
    more: Callable[[], bool] = lambda: True,
) -> Retained:
    """Forget what was settled, judged or closed before a time (unix seconds); every sum stays as it was.

    `before` must lie further back than any capture lives, or a late message would count a capture again.
    In transactions of `_AT_ONCE` rows, so that nobody waits for long to write. `more` is asked after each;
    what it leaves no time for is left to a later run. Who runs again hands over the same `bare`: old units
    are many, and so each is looked at once.
    """
    known = {} if bare is None else bare
    settlements = sum(_in_turns(lambda: _settlements(db, before), more))
    reasons = sum(_reasons(db, place, before, known, more) for place in _places(db))
    with db.write() as connection:
        instances = _instances(db, connection, before)
    return Retained(settlements=settlements, reasons=reasons, instances=instances)


def _in_turns(turn: Callable[[], int], more: Callable[[], bool]) -> Iterator[int]:
    """What each turn did, until one did nothing or there is no time for another."""
    while done := turn():
        yield done
        if not more():
            break


def _settlements(db: Database, before: float) -> int:
    # What a proxy counted in doubt stays: whether it arrived is read from its row.
    old = (captures.c.settled_at < before) & captures.c.capture_id.not_in(select(in_doubt.c.capture_id))
    with db.write() as connection:
        some = list(
            connection.execute(
                select(captures.c.capture_id).where(old).order_by(captures.c.settled_at).limit(_AT_ONCE)
            ).scalars()
        )
        if not some:
            return 0
        counted = connection.execute(
            select(captures.c.state, captures.c.mark, func.count().label("amount"))
            .where(captures.c.capture_id.in_(some))
            .group_by(captures.c.state, captures.c.mark)
            .order_by(captures.c.state, captures.c.mark)
        ).mappings()
        increment(db, connection, settled_captures, [dict(row) for row in counted])
        connection.execute(delete(captures).where(captures.c.capture_id.in_(some)))
    return len(some)


def _places(db: Database) -> list[Place]:
    """Where there are units: found from one to the next by the index; they are few, and units are many."""
    of = (units.c.model, units.c.tier, units.c.arm)
    found: list[Place] = []
    with db.read() as connection:
        while True:
            following = select(*of).order_by(*of).limit(1)
            if found:
                following = following.where(tuple_(*of) > tuple_(*map(literal, found[-1])))
            row = connection.execute(following).one_or_none()
            if row is None:
                return found
            found.append((row.model, row.tier, row.arm))


def _reasons(db: Database, place: Place, before: float, bare: Bare, more: Callable[[], bool]) -> int:
    """Take the reasons from the old pairs of one place, the oldest first; how many pairs had one."""
    taken = 0
    while some := _old_units(db, place, before, bare.get(place)):
        told = (pairs.c.baseline_reason != "") | (pairs.c.candidate_reason != "")
        of_some = pairs.c.unit_id.in_([unit for _, unit in some])
        with db.write() as connection:
            taken += connection.execute(
                update(pairs).where(told, of_some).values(baseline_reason="", candidate_reason="")
            ).rowcount
        bare[place] = some[-1]
        if not more():
            break
    return taken


def _old_units(
    db: Database, place: Place, before: float, after: tuple[float, str] | None
) -> list[tuple[float, str]]:
    """The next units of a place that were judged before a time, in their order: when, and which."""
    order = (units.c.at, units.c.unit_id)
    wanted = [units.c.model == place[0], units.c.tier == place[1], units.c.arm == place[2]]
    if after is not None:
        wanted += [units.c.at >= after[0], tuple_(*order) > tuple_(*map(literal, after))]
    found = select(*order).where(*wanted, units.c.at < before).order_by(*order).limit(_AT_ONCE)
    with db.read() as connection:
        return [(float(row.at), str(row.unit_id)) for row in connection.execute(found)]


def _instances(db: Database, connection: Connection, before: float) -> int:
    gone = list(
        connection.execute(
            select(ledger_instances.c.instance).where(
                ledger_instances.c.closed,
                ledger_instances.c.written_at < before,
                ledger_instances.c.instance != GONE,
            )
        ).scalars()
    )
    if not gone:
        return 0
    of_them = ledger_counters.c.instance.in_(gone)
    summed = connection.execute(
        select(ledger_counters.c.counter, func.sum(ledger_counters.c.amount).label("amount"))
        .where(of_them, not_(ledger_counters.c.counter.startswith(META)))
        .group_by(ledger_counters.c.counter)
        .order_by(ledger_counters.c.counter)
    ).all()
    connection.execute(
        db.insert(ledger_instances)
        .values(instance=GONE, closed=True, written_at=before)
        .on_conflict_do_nothing()
    )
    increment(
        db,
        connection,
        ledger_counters,
        [{"instance": GONE, "counter": row.counter, "amount": int(row.amount)} for row in summed],
    )
    connection.execute(delete(ledger_counters).where(of_them))
    connection.execute(delete(ledger_instances).where(ledger_instances.c.instance.in_(gone)))
    return len(gone)
