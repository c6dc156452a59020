"""Closing conversations (statistics A2, `units: closed_conversations`): then they count, once and for ever.

A conversation is due to close when none of its requests was taken up for a while. Whether it closes must not
depend on how its answers turn out: failures tend to be slow, and whoever closes by what is finished would see
the clean conversations first. So the clock by which it is idle stands still at the oldest capture that is
still being replayed, and conversations close in the order in which they are due.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

from sqlalchemy import Connection, select, update

from service.store.scored.counting import Counts, part_of
from service.store.scored.leases import oldest_awaited
from service.store.scored.pairs import add_counts
from service.store.scored.recount import unit_of
from service.store.scored.units import Unit
from service.store.sql.database import Database
from service.store.sql.schema import conversations, pairs, units

_AT_ONCE = 100
"""Conversations closed in one transaction."""


def close_idle(
    db: Database, model: str, *, idle_seconds: float, now: float, more: Callable[[], bool] = lambda: True
) -> int:
    """Close the conversations of a model that were idle for so long at `now`; how many.

    `now` (unix seconds) must be a moment before which nothing waits to be taken up any more. `more` is asked
    after every transaction: those that are left are the ones that were due last.
    """
    closed = 0
    while done := _close_some(db, model, idle_seconds, now):
        closed += done
        if not more():
            break
    return closed


def is_closed(db: Database, conversation: str) -> bool:
    """Whether what is still to come for it is late."""
    with db.read() as connection:
        found = select(conversations.c.closed_at).where(conversations.c.conversation == conversation)
        return connection.execute(found).scalar() is not None


def _close_some(db: Database, model: str, idle_seconds: float, now: float) -> int:
    with db.write() as connection:
        oldest = oldest_awaited(connection, model)
        until = (now if oldest is None else min(now, oldest)) - idle_seconds
        is_due = (
            conversations.c.model == model,
            conversations.c.closed_at.is_(None),
            conversations.c.last_at <= until,
        )
        first = (
            select(conversations.c.conversation)
            .where(*is_due)
            .order_by(conversations.c.last_at, conversations.c.conversation)
            .limit(_AT_ONCE)
        )
        # Locked in the order of their names, as everybody does: two who close, or close and record, wait.
        due = list(
            connection.execute(
                select(conversations.c.conversation)
                .where(*is_due, conversations.c.conversation.in_(first))
                .order_by(conversations.c.conversation)
                .with_for_update()
            ).scalars()
        )
        if not due:
            return 0
        counts = Counts()
        for group in _waiting(connection, due):
            counts.add_conversation([part_of(unit) for unit in group])
            for unit in group:
                counts.take_off_waiting(unit)
        chosen = conversations.c.conversation.in_(due)
        connection.execute(
            update(conversations).where(chosen).values(closed_at=conversations.c.last_at + idle_seconds)
        )
        due_at = (
            select(conversations.c.closed_at)
            .where(conversations.c.conversation == units.c.conversation)
            .scalar_subquery()
        )
        connection.execute(
            update(units)
            .where(units.c.conversation.in_(due), units.c.waits)
            .values(counted=True, waits=False, taken_at=due_at)
        )
        add_counts(db, connection, counts)
    return len(due)


def _waiting(connection: Connection, names: list[str]) -> list[list[Unit]]:
    """What waits in these conversations, by what it is to count for."""
    of_pair = [column.name for column in pairs.columns if column.name != "unit_id"]
    rows = connection.execute(
        select(units, *(pairs.c[name].label(f"pair_{name}") for name in of_pair))
        .join(pairs, pairs.c.unit_id == units.c.unit_id)
        .where(units.c.conversation.in_(names), units.c.waits)
        .order_by(units.c.conversation, units.c.unit_id, pairs.c.item)
    ).all()
    found: dict[tuple[str, ...], list[Unit]] = {}
    for _, group in groupby(rows, key=lambda row: row.unit_id):
        unit = unit_of(list(group), of_pair)
        key = (unit.conversation, unit.tier, unit.arm, unit.epoch, unit.evaluator, unit.version)
        found.setdefault(key, []).append(unit)
    return list(found.values())
