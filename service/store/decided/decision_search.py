"""The decision log as a person looks through it: the latest first, by model, tier, kind, actor and time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, ColumnElement, Select, select

from service.store.decided.chain import Row
from service.store.decided.decisions import Entry, entry_of
from service.store.sql.database import Database
from service.store.sql.schema import decisions

MOST_CHOICES = 200
"""Of each kind that are offered; others can still be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which rows; what is None does not matter."""

    models: frozenset[str] | None = None
    """Who looks may see these alone, and then no row that is of no model."""
    model: str | None = None
    tier: str | None = None
    action: str | None = None
    actor: str | None = None
    since: float | None = None
    """Unix seconds, as `until`; a row of either moment is wanted."""
    until: float | None = None

    @property
    def narrows(self) -> bool:
        """Whether somebody asked for less than all that may be seen."""
        asked = (self.model, self.tier, self.action, self.actor, self.since, self.until)
        return any(each is not None for each in asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What there is to look for, by name."""

    actions: tuple[str, ...]
    actors: tuple[str, ...]


def search(db: Database, wanted: Wanted, *, below: int | None = None, limit: int) -> list[Entry]:
    """The latest rows, the last one first; with `below`, of those before that sequence number."""
    found = _matching(select(decisions), wanted)
    if below is not None:
        found = found.where(decisions.c.seq < below)
    with db.read() as connection:
        rows = connection.execute(found.order_by(decisions.c.seq.desc()).limit(limit))
        return [entry_of(row) for row in rows]


def choices(db: Database, models: frozenset[str] | None = None) -> Choices:
    """Every kind of decision and everybody who decided, of what these models' log says; None = all."""
    seen = Wanted(models=models)

    def names(column: Column[str]) -> tuple[str, ...]:
        asked = _matching(select(column), seen).distinct().order_by(column).limit(MOST_CHOICES)
        return tuple(connection.execute(asked).scalars())

    with db.read() as connection:
        return Choices(actions=names(decisions.c.action), actors=names(decisions.c.actor))


def row_at(db: Database, seq: int) -> Row | None:
    """One row as it is stored; None when there is none of that number."""
    with db.read() as connection:
        row = connection.execute(select(decisions).where(decisions.c.seq == seq)).one_or_none()
    return None if row is None else Row(**row._mapping)


def _matching(found: Select[Any], wanted: Wanted) -> Select[Any]:
    named = decisions.c
    conditions: list[ColumnElement[bool]] = []
    if wanted.models is not None:
        conditions.append(named.model.in_(sorted(wanted.models)))
    for column, name in (
        (named.model, wanted.model),
        (named.tier, wanted.tier),
        (named.action, wanted.action),
        (named.actor, wanted.actor),
    ):
        if name is not None:
            conditions.append(column == name)
    if wanted.since is not None:
        conditions.append(named.at >= wanted.since)
    if wanted.until is not None:
        conditions.append(named.at <= wanted.until)
    return found.where(*conditions)
