"""The outbox of answers to pipelines: a row is written before its request is answered and survives restarts.

A row is taken by moving its due time, so that two guards do not send the same; what its taker does not finish
is due again when that time comes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row, delete, func, select, update

from service.store.sql.callback_tables import gate_callbacks as table
from service.store.sql.database import Database
from service.store.sql.schema import key_of

TAKEN_SECONDS = 60.0
"""How long whoever took a row may need; longer than any attempt."""
MARK = "mark"
"""In the place of a tool: a row that is no answer and tells how far something was read (`webhooks`)."""


class CallbackState(StrEnum):
    """What became of an answer."""

    WAITING = "waiting"
    ANSWERED = "answered"
    GIVEN_UP = "given_up"
    """It could not be delivered; the next delivery of the same request tries again."""


class Asked(StrEnum):
    """What a request to be answered came to."""

    NEW = "new"
    KNOWN = "known"
    """It is, or was, being answered."""
    AGAIN = "again"
    """It had ended, and is answered once more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Callback:
    """One answer that is owed."""

    callback_id: str
    tool: str
    model: str
    tier: str
    basis: str
    place: Mapping[str, Any]
    state: CallbackState
    attempts: int
    reports: int
    told: str
    problem: str
    due_at: float
    created_at: float


def ask(
    db: Database,
    *,
    tool: str,
    key: Sequence[str],
    delivery: str,
    model: str,
    tier: str,
    basis: str,
    place: Mapping[str, Any],
    now: float,
    reopens: frozenset[CallbackState],
) -> Asked:
    """Owe an answer, once for each `key`, which is what the sender signed, and once for each delivery.

    A request whose answer ended in one of `reopens` is answered again, by the terms of this request.
    """
    with db.write() as connection:
        return ask_within(
            db,
            connection,
            tool=tool,
            key=key,
            delivery=delivery,
            model=model,
            tier=tier,
            basis=basis,
            place=place,
            now=now,
            reopens=reopens,
        )


def ask_within(
    db: Database,
    connection: Connection,
    *,
    tool: str,
    key: Sequence[str],
    delivery: str,
    model: str,
    tier: str,
    basis: str,
    place: Mapping[str, Any],
    now: float,
    reopens: frozenset[CallbackState],
) -> Asked:
    """`ask` in the transaction of what it is about."""
    row = {
        "callback_id": key_of(tool, *key),
        "tool": tool,
        "delivery": delivery,
        "model": model,
        "tier": tier,
        "basis": basis,
        "place": json.dumps(place, sort_keys=True, allow_nan=False),
        "state": CallbackState.WAITING.value,
        "attempts": 0,
        "reports": 0,
        "told": "",
        "problem": "",
        "due_at": now,
        "created_at": now,
        "ended_at": None,
    }
    if delivery:
        of = select(table.c.callback_id).where(table.c.tool == tool, table.c.delivery == delivery)
        if connection.execute(of).scalar() not in (None, row["callback_id"]):
            return Asked.KNOWN
    kept = connection.execute(
        db.insert(table)
        .values(row)
        .on_conflict_do_nothing(index_elements=[table.c.callback_id])
        .returning(table.c.callback_id)
    )
    if kept.first() is not None:
        return Asked.NEW
    # How many reports were made stays: the limit is that of the run, however often it asks.
    fresh = {name: row[name] for name in row if name not in ("callback_id", "tool", "reports", "told")}
    opened = connection.execute(
        update(table)
        .where(
            table.c.callback_id == row["callback_id"],
            table.c.state.in_([each.value for each in reopens]),
        )
        .values(fresh)
    )
    return Asked.AGAIN if opened.rowcount else Asked.KNOWN


def due(db: Database, now: float, *, limit: int, tools: Collection[str]) -> list[Callback]:
    """Answers to be given or tried again, to these tools, the longest due first."""
    with db.read() as connection:
        rows = connection.execute(
            select(table)
            .where(
                table.c.state == CallbackState.WAITING.value,
                table.c.due_at <= now,
                table.c.tool.in_(sorted(tools)),
            )
            .order_by(table.c.due_at, table.c.callback_id)
            .limit(limit)
        ).all()
    return [row_of(row) for row in rows]


def take(db: Database, callback: Callback, *, now: float) -> bool:
    """Whether the row is the caller's for `TAKEN_SECONDS`; False when another was faster."""
    with db.write() as connection:
        taken = connection.execute(
            update(table)
            .where(
                table.c.callback_id == callback.callback_id,
                table.c.state == CallbackState.WAITING.value,
                table.c.due_at == callback.due_at,
            )
            .values(due_at=now + TAKEN_SECONDS)
        )
        return taken.rowcount > 0


def count_report(db: Database, callback: Callback, *, most: int, told: str) -> bool:
    """Count a report of progress before it is sent; False, and nothing is to be sent, when there were `most`.

    One whose sending failed counts too: the other side may have taken it.
    """
    with db.write() as connection:
        counted = connection.execute(
            update(table)
            .where(table.c.callback_id == callback.callback_id, table.c.reports < most)
            .values(reports=table.c.reports + 1, told=told)
        )
        return counted.rowcount > 0


def wait(db: Database, callback: Callback, *, until: float) -> None:
    """Look at it again then; nothing failed."""
    _set(db, callback, due_at=until, attempts=0, problem="")


def try_again(db: Database, callback: Callback, *, at: float, problem: str) -> None:
    """An attempt failed and another is due."""
    _set(db, callback, due_at=at, attempts=callback.attempts + 1, problem=problem)


def end(db: Database, callback: Callback, *, state: CallbackState, at: float, problem: str = "") -> None:
    """Nothing more is due."""
    _set(db, callback, state=state.value, ended_at=at, problem=problem)


def of_tool(db: Database, tool: str, *, limit: int = 100) -> list[Callback]:
    """The latest of a tool, whatever became of them."""
    with db.read() as connection:
        rows = connection.execute(
            select(table)
            .where(table.c.tool == tool)
            .order_by(table.c.created_at.desc(), table.c.callback_id)
            .limit(limit)
        ).all()
    return [row_of(row) for row in rows]


def count_callbacks(db: Database) -> dict[tuple[str, CallbackState], int]:
    """How many are kept, by tool and state."""
    with db.read() as connection:
        rows = connection.execute(
            select(table.c.tool, table.c.state, func.count())
            .where(table.c.tool != MARK)
            .group_by(table.c.tool, table.c.state)
        ).all()
    return {(row[0], CallbackState(row[1])): row[2] for row in rows}


def forget_callbacks(db: Database, *, before: float) -> int:
    """Remove those that ended before (unix seconds)."""
    with db.write() as connection:
        return connection.execute(delete(table).where(table.c.ended_at < before)).rowcount


def _set(db: Database, callback: Callback, **changes: Any) -> None:
    with db.write() as connection:
        connection.execute(update(table).where(table.c.callback_id == callback.callback_id).values(**changes))


def row_of(row: Row[Any]) -> Callback:
    """A row as a value."""
    return Callback(
        callback_id=row.callback_id,
        tool=row.tool,
        model=row.model,
        tier=row.tier,
        basis=row.basis,
        place=json.loads(row.place),
        state=CallbackState(row.state),
        attempts=row.attempts,
        reports=row.reports,
        told=row.told,
        problem=row.problem,
        due_at=row.due_at,
        created_at=row.created_at,
    )
