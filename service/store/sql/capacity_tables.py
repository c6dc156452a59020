"""Tables that advice about capacity rests on: counters that engines told, and hashes of captured prompts."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Double, Index, Integer, LargeBinary, String, Table

from service.store.sql.schema import metadata

engine_readings = Table(
    # Counters of serving backends, some a hour; they begin anew when an engine does.
    "engine_readings",
    metadata,
    Column("model", String, primary_key=True),
    Column("tier", String, primary_key=True),
    Column("backend", String, primary_key=True),  # its URL
    Column("at", Double, primary_key=True),
    Column("prefill_tokens", Double, nullable=False),
    Column("reused_tokens", Double, nullable=False),
    Column("prefill_seconds", Double),
    Column("decode_seconds", Double),
    Column("running", Double),
    Column("kv_usage", Double),
    Column("evicted_tokens", Double),
    Index("engine_readings_by_time", "at"),
)

prompt_prefixes = Table(
    # What two prompts have in common at their beginning, and nothing of what they say.
    "prompt_prefixes",
    metadata,
    Column("capture_id", String, primary_key=True),
    Column("model", String, nullable=False),
    Column("tenant", String, nullable=False),
    Column("at", Double, nullable=False),  # when it was asked
    Column("tokens", Integer, nullable=False),  # of the prompt, as estimated
    Column("blocks", LargeBinary, nullable=False),  # keyed hashes of its beginnings, 8 bytes each
    Column("share", Double, nullable=False),  # of requests that were sampled then
    Column("together", Boolean, nullable=False),  # sampled with its conversation, and not by itself
    Column("expires_at", Double, nullable=False),
    Index("prompt_prefixes_by_model", "model", "at"),
    Index("prompt_prefixes_by_tenant", "tenant"),
    Index("prompt_prefixes_by_expiry", "expires_at"),
)
