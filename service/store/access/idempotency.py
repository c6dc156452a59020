"""A write with a key is done once: the first request claims the key, later ones get its answer.

A claim whose process died is never done again, for nobody knows how far it came; it is forgotten with all
others after `KEPT_SECONDS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import delete, select, update
from sqlalchemy.exc import IntegrityError

from service.store.sql.database import Database
from service.store.sql.idempotency_tables import idempotent_writes as writes
from service.store.sql.schema import key_of

KEPT_SECONDS = 86_400.0
RUNNING_SECONDS = 120.0
"""A claim without an answer that is older belongs to a process that died."""
MOST_KEPT = 256 * 1024
"""Characters of an answer."""


class Standing(StrEnum):
    """How a key stands when a request comes with it."""

    FRESH = "fresh"
    """It is the caller's to do; `settle` or `release` it."""
    ANSWERED = "answered"
    OTHER = "other"
    """It was used for another request."""
    RUNNING = "running"
    UNKNOWN = "unknown"
    """Its process died, or its answer was too long to be kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What became of asking for a key."""

    write_id: str
    standing: Standing
    status: int = 0
    """HTTP status; of an answered one."""
    media_type: str = ""
    answer: str = ""


def claim(db: Database, *, caller: str, key: str, fingerprint: str, now: float) -> Claim:
    """Take the key if it is free; keys of other callers are other keys."""
    write_id = key_of(caller, key)
    try:
        with db.write() as connection:
            connection.execute(delete(writes).where(writes.c.begun_at < now - KEPT_SECONDS))
            known = connection.execute(select(writes).where(writes.c.write_id == write_id)).one_or_none()
            if known is None:
                connection.execute(
                    writes.insert().values(write_id=write_id, fingerprint=fingerprint, begun_at=now)
                )
                return Claim(write_id=write_id, standing=Standing.FRESH)
    except IntegrityError:  # a twin took it between the two statements
        return Claim(write_id=write_id, standing=Standing.RUNNING)
    if known.fingerprint != fingerprint:
        return Claim(write_id=write_id, standing=Standing.OTHER)
    if known.status is None and known.begun_at > now - RUNNING_SECONDS:
        return Claim(write_id=write_id, standing=Standing.RUNNING)
    if known.status is None or known.answer is None:
        return Claim(write_id=write_id, standing=Standing.UNKNOWN)
    return Claim(
        write_id=write_id,
        standing=Standing.ANSWERED,
        status=known.status,
        media_type=known.media_type,
        answer=known.answer,
    )


def settle(db: Database, write_id: str, *, status: int, media_type: str, answer: str) -> None:
    """Keep what the request was answered."""
    kept = answer if len(answer) <= MOST_KEPT else None
    with db.write() as connection:
        connection.execute(
            update(writes)
            .where(writes.c.write_id == write_id)
            .values(status=status, media_type=media_type, answer=kept)
        )


def release(db: Database, write_id: str) -> None:
    """Let go of a key whose request changed nothing: it may be tried again."""
    with db.write() as connection:
        connection.execute(delete(writes).where(writes.c.write_id == write_id))
