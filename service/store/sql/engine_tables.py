"""Tables of what engines tell of themselves, of the artifact that each tier is, and of what epochs were."""

from __future__ import annotations

from sqlalchemy import Column, Double, String, Table, Text

from service.store.sql.schema import metadata

backend_words = Table(
    "backend_words",
    metadata,
    Column("model", String, primary_key=True),
    Column("tier", String, primary_key=True),
    Column("backend", String, primary_key=True),  # its URL
    Column("facts", Text, nullable=False),  # canonical JSON
    Column("told_at", Double, nullable=False),
)

tier_artifacts = Table(
    # Of a tier: the artifact that its evidence belongs to, and what its backends agree on now.
    "tier_artifacts",
    metadata,
    Column("model", String, primary_key=True),
    Column("tier", String, primary_key=True),
    Column("settled", Text),  # canonical JSON, as is `agreed`
    Column("settled_since", Double),
    Column("agreed", Text),
    Column("agreed_since", Double),
    Column("heard_at", Double),
    Column("unsettled", Text, nullable=False),
)

epoch_facts = Table(
    # What an epoch was: all that its hash is made of, as JSON.
    "epoch_facts",
    metadata,
    Column("model", String, primary_key=True),
    Column("tier", String, primary_key=True),
    Column("epoch", String, primary_key=True),
    Column("facts", Text, nullable=False),
    Column("first_seen", Double, nullable=False),
)
