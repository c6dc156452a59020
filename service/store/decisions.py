"""The decision log: append-only, each row bound to the one before it by sha256.

    digest = sha256(canonical JSON of seq, at, actor, action, model, tier, detail, prev)

Canonical JSON is ASCII with sorted keys, no spaces and no NaN. The chain shows that a row was altered,
removed, added or moved; the head, kept apart, shows rows cut off the end. It cannot show that everything
was rewritten: for that, keep a digest elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, Row, select

from service.store.database import Database
from service.store.schema import decision_head, decisions
from service.store.whence import KEY, whence

GENESIS = "0" * 64
"""`prev` of the first row."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The last row: whoever keeps its digest elsewhere can tell whether what is there now grew out of it."""

    seq: int
    """0 of an empty log."""
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
    written = _canonical(told)
    # Python's shortest float survives both databases exactly, an int would come back as a float.
    at = float(at)
    entry = Entry(
        seq=seq,
        at=at,
        actor=actor,
        action=action,
        model=model,
        tier=tier,
        detail=json.loads(written),
        prev=prev,
        digest=_digest(seq, at, actor, action, model, tier, written, prev),
    )
    connection.execute(
        decisions.insert().values(
            seq=seq,
            at=at,
            actor=actor,
            action=action,
            model=model,
            tier=tier,
            detail=written,
            prev=prev,
            digest=entry.digest,
        )
    )
    insert = db.insert(decision_head).values(only=1, seq=seq, digest=entry.digest)
    connection.execute(
        insert.on_conflict_do_update(
            index_elements=[decision_head.c.only],
            set_={"seq": insert.excluded.seq, "digest": insert.excluded.digest},
        )
    )
    return entry


def read(db: Database, model: str | None = None, *, after: int = 0, limit: int = 100) -> list[Entry]:
    """Rows after a sequence number, oldest first; of one model, or of all."""
    wanted = decisions.c.seq > after
    if model is not None:
        wanted &= decisions.c.model == model
    with db.read() as connection:
        rows = connection.execute(select(decisions).where(wanted).order_by(decisions.c.seq).limit(limit))
        return [_entry(row) for row in rows]


def head_of(db: Database) -> Head:
    """The last row as it is kept apart from the rows."""
    with db.read() as connection:
        row = connection.execute(select(decision_head)).one_or_none()
    return Head(seq=0, digest=GENESIS) if row is None else Head(seq=row.seq, digest=row.digest)


def last_of(connection: Connection, action: str) -> Entry | None:
    """The latest row of an action; under the log's lock nobody adds another."""
    mine = select(decisions).where(decisions.c.action == action).order_by(decisions.c.seq.desc()).limit(1)
    row = connection.execute(mine).one_or_none()
    return None if row is None else _entry(row)


def verify(db: Database) -> int | None:
    """Sequence number of the first row that does not fit, None when the whole chain holds.

    A row that is missing is told by its number, so one past the last row means that rows were cut off.
    """
    with db.read() as connection:
        head = connection.execute(select(decision_head)).one_or_none()
        seq, prev = 0, GENESIS
        paged = connection.execution_options(yield_per=1000)
        with paged.execute(select(decisions).order_by(decisions.c.seq)) as rows:
            for row in rows:
                seq += 1
                written = (row.seq, row.at, row.actor, row.action, row.model, row.tier, row.detail, row.prev)
                if row.seq != seq or row.prev != prev or row.digest != _digest(*written):
                    return seq
                prev = row.digest
    if head is None:
        return None if seq == 0 else 1
    if head.seq > seq:
        return seq + 1
    return None if (head.seq, head.digest) == (seq, prev) else seq


def _digest(
    seq: int,
    at: float,
    actor: str,
    action: str,
    model: str,
    tier: str | None,
    detail: str,
    prev: str,
) -> str:
    # The detail enters as the text that is stored: not even its spaces can change.
    row = {
        "seq": seq,
        "at": at,
        "actor": actor,
        "action": action,
        "model": model,
        "tier": tier,
        "detail": detail,
        "prev": prev,
    }
    return sha256(_canonical(row).encode()).hexdigest()


def _canonical(document: Mapping[str, Any]) -> str:
    try:
        return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    except TypeError as error:
        raise ValueError(f"the detail of a decision must be JSON: {error}") from error


def _entry(row: Row[Any]) -> Entry:
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
