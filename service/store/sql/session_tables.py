"""What browsers' sessions are signed with, and those that ended before their time."""

from __future__ import annotations

from sqlalchemy import Column, Double, Index, LargeBinary, String, Table

from service.store.sql.schema import metadata

session_keys = Table(
    # One row: every API process signs with the same key, and a restart ends nobody's session.
    "session_keys",
    metadata,
    Column("name", String, primary_key=True),
    Column("secret", LargeBinary, nullable=False),
    Column("made_at", Double, nullable=False),
)

ended_sessions = Table(
    "ended_sessions",
    metadata,
    Column("session_id", String, primary_key=True),
    Column("until", Double, nullable=False),  # when its cookie is worth nothing anyway
    Index("ended_sessions_by_time", "until"),
)
