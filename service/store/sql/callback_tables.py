"""Answers that are owed to a pipeline: kept from before its request is answered until they are given."""

from __future__ import annotations

from sqlalchemy import Column, Double, Index, Integer, String, Table, Text

from service.store.sql.schema import metadata

gate_callbacks = Table(
    "gate_callbacks",
    metadata,
    Column("callback_id", String, primary_key=True),  # key_of what its sender signed
    Column("tool", String, nullable=False),
    Column("delivery", String, nullable=False),  # the sender's name for its request; empty where it has none
    Column("model", String, nullable=False),
    Column("tier", String, nullable=False),
    Column("basis", String, nullable=False),
    Column("place", Text, nullable=False),  # canonical JSON: where the answer goes, below the configured URL
    Column("state", String, nullable=False),
    Column("attempts", Integer, nullable=False),  # that failed since the last one that did not
    Column("reports", Integer, nullable=False),  # of progress, counted before they are sent
    Column("told", Text, nullable=False),  # the last of them
    Column("problem", Text, nullable=False),  # why the last attempt failed
    Column("due_at", Double, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("ended_at", Double),
    Index("gate_callbacks_due", "state", "due_at"),
    Index("gate_callbacks_by_delivery", "tool", "delivery"),
)
