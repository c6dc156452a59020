"""What labellers say of queued pairs: once each, by name, and never overwritten by accident."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from sqlalchemy import ColumnElement, Connection, delete, select

from service.store.labels.access_log import LOOK, note
from service.store.sql.adjudication_tables import (
    adjudication_access,
    adjudication_items,
    adjudication_labels,
)
from service.store.sql.database import Database

JUDGE = "judge:"
"""Begins the name of a labeller that is a language model."""


class Said(StrEnum):
    """Which sides pass by the rubric."""

    A = "a"
    B = "b"
    BOTH = "both"
    NEITHER = "neither"
    SKIP = "skip"
    """Cannot be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What one labeller says of one item."""

    item_id: str
    labeller: str
    said: Said
    at: float
    """Unix seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A labeller who said something else before."""

    item_id: str
    labeller: str
    had: Said
    said: Said


@dataclass(slots=True, kw_only=True)
class Recorded:
    """What became of labels."""

    recorded: int = 0
    replaced: int = 0
    unchanged: int = 0
    """Said before, in the same words."""
    conflicts: list[Conflict] = field(default_factory=list)
    """Kept as they were."""
    unknown: list[str] = field(default_factory=list)
    """Items that are not in the queue."""
    seen_openly: list[str] = field(default_factory=list)
    """Items whose sides the token was shown by name; what it says of them is not blind, and left out."""


def record_labels(
    db: Database,
    given: Iterable[Given],
    *,
    token: str,
    judge: bool = False,
    replace: bool = False,
    models: Collection[str] | None = None,
) -> Recorded:
    """Add what was said; a labeller who said something else before, here or earlier in `given`, is a conflict
    unless `replace`. Of two at once by one labeller the second sees what the first wrote.

    Of other `models` than these every item is unknown; None = all are known.
    """
    told = Recorded()
    listed = sorted(given, key=lambda each: (each.item_id, each.labeller))
    with db.write() as connection:
        for labeller in sorted({each.labeller for each in listed}):
            db.lock(connection, f"labels of {labeller}")
        ids = sorted({each.item_id for each in listed})
        known = _known(connection, ids, models)
        seen = _seen_openly(connection, ids, token)
        had = {
            (row.item_id, row.labeller): Said(row.said)
            for row in connection.execute(
                select(adjudication_labels).where(adjudication_labels.c.item_id.in_(ids))
            )
        }
        for each in listed:
            key = (each.item_id, each.labeller)
            before = had.get(key)
            if each.item_id not in known:
                told.unknown.append(each.item_id)
            elif each.item_id in seen and before is not each.said:
                told.seen_openly.append(each.item_id)
            elif before is None:
                told.recorded += 1
                had[key] = each.said
                _write(db, connection, each, token=token, judge=judge, action="label")
            elif before is each.said:
                told.unchanged += 1
            elif replace:
                told.replaced += 1
                had[key] = each.said
                _write(db, connection, each, token=token, judge=judge, action="relabel")
            else:
                told.conflicts.append(
                    Conflict(item_id=each.item_id, labeller=each.labeller, had=before, said=each.said)
                )
    return told


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """What a labeller said of one item."""

    item_id: str
    said: Said
    at: float
    """Unix seconds."""


def last_label(db: Database, labeller: str) -> Labelled | None:
    """The latest that this labeller said."""
    table = adjudication_labels.c
    with db.read() as connection:
        row = connection.execute(
            select(table.item_id, table.said, table.at)
            .where(table.labeller == labeller)
            .order_by(table.at.desc(), table.item_id.desc())
            .limit(1)
        ).one_or_none()
    return None if row is None else Labelled(item_id=row.item_id, said=Said(row.said), at=row.at)


def take_back(db: Database, item_id: str, *, labeller: str, token: str, at: float) -> Said | None:
    """Unsay what this labeller said of an item; what it was, None for nothing. The log keeps both."""
    with db.write() as connection:
        db.lock(connection, f"labels of {labeller}")
        gone = connection.execute(
            delete(adjudication_labels)
            .where(adjudication_labels.c.item_id == item_id, adjudication_labels.c.labeller == labeller)
            .returning(adjudication_labels.c.said)
        ).scalar_one_or_none()
        if gone is None:
            return None
        said = Said(gone)
        note(connection, [item_id], actor=token, action="unlabel", at=at, detail=f"{labeller}: {said.value}")
    return said


def _known(connection: Connection, ids: Collection[str], models: Collection[str] | None) -> set[str]:
    wanted: ColumnElement[bool] = adjudication_items.c.item_id.in_(ids)
    if models is not None:
        wanted &= adjudication_items.c.model.in_(sorted(models))
    return set(connection.execute(select(adjudication_items.c.item_id).where(wanted)).scalars())


def _seen_openly(connection: Connection, ids: Collection[str], token: str) -> set[str]:
    table = adjudication_access.c
    wanted = table.item_id.in_(ids) & (table.actor == token) & (table.action == LOOK)
    return set(connection.execute(select(table.item_id).where(wanted)).scalars())


def _write(
    db: Database, connection: Connection, given: Given, *, token: str, judge: bool, action: str
) -> None:
    insert = db.insert(adjudication_labels).values(
        item_id=given.item_id,
        labeller=given.labeller,
        judge=judge,
        said=given.said.value,
        at=given.at,
        token=token,
    )
    connection.execute(
        insert.on_conflict_do_update(
            index_elements=[adjudication_labels.c.item_id, adjudication_labels.c.labeller],
            set_={name: insert.excluded[name] for name in ("judge", "said", "at", "token")},
        )
    )
    note(connection, [given.item_id], actor=token, action=action, at=given.at, detail=_told(given))


def _told(given: Given) -> str:
    return f"{given.labeller}: {given.said.value}"
