"""The key that signs browsers' sessions, made once for all API processes; and sessions that ended."""

from __future__ import annotations

import secrets

from sqlalchemy import delete, select

from service.store.sql.database import Database
from service.store.sql.session_tables import ended_sessions, session_keys

KEY_BYTES = 32
_NAME = "dashboard"


def session_key(db: Database, *, now: float) -> bytes:
    """The key, made by whoever asks first."""
    asked = select(session_keys.c.secret).where(session_keys.c.name == _NAME)
    with db.read() as connection:
        known = connection.execute(asked).scalar_one_or_none()
    if known is None:
        made = db.insert(session_keys).values(name=_NAME, secret=secrets.token_bytes(KEY_BYTES), made_at=now)
        with db.write() as connection:
            connection.execute(made.on_conflict_do_nothing())
            known = connection.execute(asked).scalar_one()
    return bytes(known)


def end_session(db: Database, session_id: str, *, until: float, now: float) -> None:
    """Nothing is let in by its cookie any more; forgets those whose cookies ended by themselves."""
    row = db.insert(ended_sessions).values(session_id=session_id, until=until)
    with db.write() as connection:
        connection.execute(delete(ended_sessions).where(ended_sessions.c.until < now))
        connection.execute(row.on_conflict_do_nothing())


def has_ended(db: Database, session_id: str) -> bool:
    """Whether somebody ended it."""
    asked = select(ended_sessions.c.session_id).where(ended_sessions.c.session_id == session_id)
    with db.read() as connection:
        return connection.execute(asked).one_or_none() is not None
