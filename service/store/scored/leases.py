"""Who replays which capture: a lease with an expiry, in SQL, so that recovery never rests on the broker.

A capture is leased, and then settled once: processed, expired or lost. Who comes second gets nothing and
leaves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from enum import StrEnum

from sqlalchemy import Connection, case, func, select, update

from service.store.redis.capture import mark_of, model_mark
from service.store.sql.database import Database
from service.store.sql.schema import captures

MOST_AWAITED = 3
"""Times a capture may be taken and evidence still wait for it: one that ends its workers must not hold up
others."""
_CHUNK = 500


class State(StrEnum):
    """Where a capture is in SQL; all but `leased` are final."""

    LEASED = "leased"
    PROCESSED = "processed"
    EXPIRED = "expired"
    """Its time to live ran out before it was replayed."""
    LOST = "lost"
    """Redis forgot it before its time."""


SETTLED = frozenset({State.PROCESSED, State.EXPIRED, State.LOST})


def lease(
    db: Database, capture_ids: Collection[str], *, owner: str, now: float, seconds: float = 120.0
) -> list[str]:
    """Those of the ids that `owner` now holds until `now + seconds`.

    Left out are settled ones and those whose lease still runs, the owner's own included: a message
    delivered twice to one worker is replayed once.
    """
    held: set[str] = set()
    with db.write() as connection:
        for chunk in _chunks(sorted(set(capture_ids))):
            rows = [
                {
                    "capture_id": each,
                    "mark": mark_of(each),
                    "state": State.LEASED,
                    "owner": owner,
                    "lease_until": now + seconds,
                    "taken_at": now,
                    "leases": 1,
                }
                for each in chunk
            ]
            insert = db.insert(captures).values(rows)
            taken = insert.on_conflict_do_update(
                index_elements=[captures.c.capture_id],
                set_={
                    "owner": insert.excluded.owner,
                    "lease_until": insert.excluded.lease_until,
                    "leases": captures.c.leases + 1,
                },
                where=(captures.c.state == State.LEASED) & (captures.c.lease_until <= now),
            ).returning(captures.c.capture_id)
            held.update(connection.execute(taken).scalars())
    return [each for each in dict.fromkeys(capture_ids) if each in held]


def heartbeat(
    db: Database, capture_ids: Collection[str], *, owner: str, now: float, seconds: float = 120.0
) -> list[str]:
    """Extend the leases that `owner` still holds and return these; the others are somebody else's now."""
    kept: set[str] = set()
    with db.write() as connection:
        for chunk in _chunks(sorted(set(capture_ids))):
            mine = _lock(connection, chunk, owner)
            connection.execute(
                update(captures).where(captures.c.capture_id.in_(mine)).values(lease_until=now + seconds)
            )
            kept.update(mine)
    return [each for each in dict.fromkeys(capture_ids) if each in kept]


def release(db: Database, capture_ids: Collection[str], *, owner: str) -> None:
    """Give up leases without settling, so that the next who asks gets them at once.

    They count as never taken: whoever gives up lives.
    """
    with db.write() as connection:
        for chunk in _chunks(sorted(set(capture_ids))):
            mine = _lock(connection, chunk, owner)
            connection.execute(
                update(captures)
                .where(captures.c.capture_id.in_(mine))
                .values(lease_until=0.0, leases=captures.c.leases - 1)
            )


def expire(db: Database, capture_ids: Collection[str], *, at: float) -> int:
    """Settle captures whose time to live ran out; how many were not settled before."""
    return _settle(db, capture_ids, State.EXPIRED, at)


def lose(db: Database, capture_ids: Collection[str], *, at: float) -> int:
    """Settle captures that Redis no longer knows at all; how many were not settled before."""
    return _settle(db, capture_ids, State.LOST, at)


def run_out(db: Database, now: float, *, limit: int = 1000) -> list[str]:
    """Captures whose holder let its lease run out, longest first."""
    with db.read() as connection:
        return list(
            connection.execute(
                select(captures.c.capture_id)
                .where(captures.c.state == State.LEASED, captures.c.lease_until <= now)
                .order_by(captures.c.lease_until, captures.c.capture_id)
                .limit(limit)
            ).scalars()
        )


def times_taken(db: Database, capture_ids: Collection[str]) -> dict[str, int]:
    """How often each was leased and not given up; those that never were leased are left out."""
    with db.read() as connection:
        return {
            row.capture_id: row.leases
            for chunk in _chunks(sorted(set(capture_ids)))
            for row in connection.execute(
                select(captures.c.capture_id, captures.c.leases).where(captures.c.capture_id.in_(chunk))
            )
        }


def settled(db: Database, capture_ids: Collection[str]) -> set[str]:
    """Those of the ids that need no more work and may be forgotten in Redis."""
    with db.read() as connection:
        return {
            each
            for chunk in _chunks(sorted(set(capture_ids)))
            for each in connection.execute(
                select(captures.c.capture_id).where(
                    captures.c.capture_id.in_(chunk), captures.c.state.in_(sorted(SETTLED))
                )
            ).scalars()
        }


def held(db: Database, capture_ids: Collection[str], now: float) -> set[str]:
    """Those of the ids whose lease still runs: somebody is at work on them."""
    with db.read() as connection:
        return {
            each
            for chunk in _chunks(sorted(set(capture_ids)))
            for each in connection.execute(
                select(captures.c.capture_id).where(
                    captures.c.capture_id.in_(chunk),
                    captures.c.state == State.LEASED,
                    captures.c.lease_until > now,
                )
            ).scalars()
        }


def oldest_awaited(connection: Connection, model: str) -> float | None:
    """When the oldest capture of a model that is still being replayed was taken; None when none is."""
    return connection.execute(
        select(func.min(captures.c.taken_at)).where(
            captures.c.state == State.LEASED,
            captures.c.mark == model_mark(model),
            captures.c.leases <= MOST_AWAITED,
        )
    ).scalar()


def settle(
    db: Database, connection: Connection, capture_id: str, state: State, *, owner: str, at: float
) -> bool:
    """Settle one capture within a transaction; False when it was settled already."""
    return _settle_rows(db, connection, [capture_id], state, owner=owner, at=at) == 1


def _settle(db: Database, capture_ids: Collection[str], state: State, at: float) -> int:
    with db.write() as connection:
        return sum(
            _settle_rows(db, connection, chunk, state, owner="", at=at)
            for chunk in _chunks(sorted(set(capture_ids)))
        )


def _settle_rows(
    db: Database, connection: Connection, ids: Sequence[str], state: State, *, owner: str, at: float
) -> int:
    if state not in SETTLED:
        raise ValueError(f"{state} is not a final state")
    rows = [
        {
            "capture_id": each,
            "mark": mark_of(each),
            "state": state,
            "owner": owner,
            "lease_until": at,
            "taken_at": at,
            "leases": 0,
            "settled_at": at,
        }
        for each in ids
    ]
    insert = db.insert(captures).values(rows)
    done = insert.on_conflict_do_update(
        index_elements=[captures.c.capture_id],
        set_={
            "state": insert.excluded.state,
            "owner": case((insert.excluded.owner == "", captures.c.owner), else_=insert.excluded.owner),
            "settled_at": insert.excluded.settled_at,
        },
        where=captures.c.state == State.LEASED,
    ).returning(captures.c.capture_id)
    return len(connection.execute(done).fetchall())


def _lock(connection: Connection, ids: Sequence[str], owner: str) -> list[str]:
    """Those that `owner` holds, locked in the order in which `lease` takes them, or the two may deadlock."""
    return list(
        connection.execute(
            select(captures.c.capture_id)
            .where(
                captures.c.capture_id.in_(ids),
                captures.c.owner == owner,
                captures.c.state == State.LEASED,
            )
            .order_by(captures.c.capture_id)
            .with_for_update()
        ).scalars()
    )


def _chunks(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), _CHUNK):
        yield ids[start : start + _CHUNK]
