"""Who saw which captured text, and who said what of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, select

from service.store.sql.adjudication_tables import adjudication_access
from service.store.sql.database import Database

LOOK = "look"
"""The action of who was shown both answers of a pair with the names of their sides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One entry."""

    seq: int
    at: float
    """Unix seconds."""
    actor: str
    action: str
    item_id: str
    detail: str


def read_access(
    db: Database, *, after: int = 0, limit: int = 100, item_id: str | None = None
) -> list[Access]:
    """Entries beyond a sequence number, oldest first."""
    if limit < 1:
        raise ValueError(f"limit must be at least 1, got {limit}")
    wanted = adjudication_access.c.seq > after
    if item_id is not None:
        wanted &= adjudication_access.c.item_id == item_id
    with db.read() as connection:
        rows = connection.execute(
            select(adjudication_access).where(wanted).order_by(adjudication_access.c.seq).limit(limit)
        ).mappings()
        return [Access(**row) for row in rows]


def note(
    connection: Connection, ids: Iterable[str], *, actor: str, action: str, at: float, detail: str = ""
) -> None:
    """Write down who did what with these items."""
    rows = [{"at": at, "actor": actor, "action": action, "item_id": each, "detail": detail} for each in ids]
    if rows:
        connection.execute(adjudication_access.insert(), rows)
