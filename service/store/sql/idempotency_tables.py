"""Writes that were sent with an `Idempotency-Key`, and what they were answered."""

from __future__ import annotations

from sqlalchemy import Column, Double, Index, Integer, String, Table, Text

from service.store.sql.schema import metadata

idempotent_writes = Table(
    "idempotent_writes",
    metadata,
    Column("write_id", String, primary_key=True),  # key_of the caller and its key
    Column("fingerprint", String, nullable=False),  # sha256 of method, path, query and body
    Column("begun_at", Double, nullable=False),
    Column("status", Integer),  # null while it is being answered
    Column("media_type", String),
    Column("answer", Text),  # null with a status: too long to be kept
    Index("idempotent_writes_by_time", "begun_at"),
)
