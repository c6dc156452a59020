"""The decision log: append-only, each row bound to the one before it by sha256 (`chain`).

The chain shows that a row was altered, removed, added or moved; the head, kept apart, shows rows cut off the
end. It cannot show that everything was rewritten: for that, keep a digest elsewhere, as attestations do.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import sqlalchemy
from sqlalchemy import Connection, select

from service.store.decided.chain import GENESIS, Break, Head, Row, canonical, find_break
from service.store.decided.whence import KEY, whence
from service.store.sql.database import Database
from service.store.sql.schema import decision_head, decisions


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row of the log."""

    seq: int
    """1 for the first, then without a gap."""
    at: float
    """Unix seconds."""
    actor: str
    """A token's name, or the part of Tiergate that acted by itself."""
    action: str
    model: str
    tier: str | None
    detail: Mapping[str, Any]
    """Why, and what exactly; `whence` in it says from where."""
    prev: str
    digest: str


def append(
    db: Database,
    *,
    at: float,
    actor: str,
    action: str,
    model: str,
    tier: str | None = None,
    detail: Mapping[str, Any] | None = None,
) -> Entry:
    """Add a row. ValueError when the detail is not JSON."""
    with db.write() as connection:
        return append_within(
            db, connection, at=at, actor=actor, action=action, model=model, tier=tier, detail=detail
        )


def append_within(
    db: Database,
    connection: Connection,
    *,
    at: float,
    actor: str,
    action: str,
    model: str,
    tier: str | None,
    detail: Mapping[str, Any] | None,
) -> Entry:
    """Add a row in the transaction of what it tells of; holds the log's lock until that ends."""
    if not actor or not action:
        raise ValueError("a decision needs an actor and an action")
    db.lock(connection, "decisions")
    head = connection.execute(select(decision_head)).one_or_none()
    seq, prev = (1, GENESIS) if head is None else (head.seq + 1, str(head.digest))
    told = dict(detail or {})
    if KEY in told:
        raise ValueError(f"{KEY!r} of a decision's detail is told by the log itself")
    if came := whence(db):
        told[KEY] = came
    written = canonical(told)
    # Python's shortest float survives both databases exactly, an int would come back as a float.
    row = Row(
        seq=seq,
        at=float(at),
        actor=actor,
        action=action,
        model=model,
        tier=tier,
        detail=written,
        prev=prev,
        digest="",
    )
    row = replace(row, digest=row.true_digest)
    connection.execute(decisions.insert().values(**asdict(row)))
    insert = db.insert(decision_head).values(only=1, seq=seq, digest=row.digest)
    connection.execute(
        insert.on_conflict_do_update(
            index_elements=[decision_head.c.only],
            set_={"seq": insert.excluded.seq, "digest": insert.excluded.digest},
        )
    )
    return entry_of(row)


def read(db: Database, model: str | None = None, *, after: int = 0, limit: int = 100) -> list[Entry]:
    """Rows after a sequence number, oldest first; of one model, or of all."""
    wanted = decisions.c.seq > after
    if model is not None:
        wanted &= decisions.c.model == model
    with db.read() as connection:
        rows = connection.execute(select(decisions).where(wanted).order_by(decisions.c.seq).limit(limit))
        return [entry_of(row) for row in rows]


def latest(
    db: Database, *, model: str | None = None, tier: str | None = None, limit: int = 20
) -> list[Entry]:
    """The last rows, oldest first; of one model or tier, or of all."""
    wanted = select(decisions).order_by(decisions.c.seq.desc()).limit(limit)
    if model is not None:
        wanted = wanted.where(decisions.c.model == model)
    if tier is not None:
        wanted = wanted.where(decisions.c.tier == tier)
    with db.read() as connection:
        return [entry_of(row) for row in connection.execute(wanted)][::-1]


def head_of(db: Database) -> Head:
    """The last row as it is kept apart from the rows."""
    with db.read() as connection:
        return head_within(connection) or Head(seq=0, digest=GENESIS)


@contextmanager
def whole(db: Database) -> Iterator[tuple[Iterable[Row], Head | None]]:
    """Every row, oldest first, and the head, of one moment, while the block lasts."""
    with db.read() as connection:
        head = head_within(connection)
        paged = connection.execution_options(yield_per=1000)
        with paged.execute(select(decisions).order_by(decisions.c.seq)) as rows:
            yield (_stored(row) for row in rows), head


def last_of(connection: Connection, action: str) -> Entry | None:
    """The latest row of an action; under the log's lock nobody adds another."""
    mine = select(decisions).where(decisions.c.action == action).order_by(decisions.c.seq.desc()).limit(1)
    row = connection.execute(mine).one_or_none()
    return None if row is None else entry_of(row)


def check(db: Database, *, kept: Iterable[Head] = ()) -> Break | None:
    """Where the log does not hold; None when all of it does. `kept` as in `find_break`."""
    with whole(db) as (rows, head):
        return find_break(rows, head, kept=kept)


def verify(db: Database) -> int | None:
    """Sequence number of the first row that does not fit, None when the whole chain holds.

    A row that is missing is told by its number, so one past the last row means that rows were cut off.
    """
    found = check(db)
    return None if found is None else found.seq


def entry_of(row: Row | sqlalchemy.Row[Any]) -> Entry:
    """A row with its detail read."""
    return Entry(
        seq=row.seq,
        at=row.at,
        actor=row.actor,
        action=row.action,
        model=row.model,
        tier=row.tier,
        detail=json.loads(row.detail),
        prev=row.prev,
        digest=row.digest,
    )


def head_within(connection: Connection) -> Head | None:
    """`head_of` as part of a transaction; None of a log without any row."""
    row = connection.execute(select(decision_head)).one_or_none()
    return None if row is None else Head(seq=row.seq, digest=row.digest)


def _stored(row: sqlalchemy.Row[Any]) -> Row:
    return Row(**row._mapping)
