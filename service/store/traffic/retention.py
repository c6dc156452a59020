"""What is not kept for ever: settlements, the reasons beside pairs, and the ledgers of proxies long gone."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, not_, select, update

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Retained:
    """How much a run took away."""

    settlements: int
    reasons: int
    instances: int


def retain(db: Database, *, before: float) -> Retained:
    """Forget what was settled, judged or closed before a time (unix seconds); every sum stays as it was.

    `before` must lie further back than any capture lives, or a late message would count a capture again.
    """
    with db.write() as connection:
        settlements = _settlements(db, connection, before)
        reasons = _reasons(connection, before)
        instances = _instances(db, connection, before)
    return Retained(settlements=settlements, reasons=reasons, instances=instances)


def _settlements(db: Database, connection: Connection, before: float) -> int:
    # What a proxy counted in doubt stays: whether it arrived is read from its row.
    old = (captures.c.settled_at < before) & captures.c.capture_id.not_in(select(in_doubt.c.capture_id))
    counted = connection.execute(
        select(captures.c.state, captures.c.mark, func.count().label("amount"))
        .where(old)
        .group_by(captures.c.state, captures.c.mark)
        .order_by(captures.c.state, captures.c.mark)
    ).mappings()
    increment(db, connection, settled_captures, [dict(row) for row in counted])
    return connection.execute(delete(captures).where(old)).rowcount


def _reasons(connection: Connection, before: float) -> int:
    told = (pairs.c.baseline_reason != "") | (pairs.c.candidate_reason != "")
    old = pairs.c.unit_id.in_(select(units.c.unit_id).where(units.c.at < before))
    return connection.execute(
        update(pairs).where(told, old).values(baseline_reason="", candidate_reason="")
    ).rowcount


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
