"""What tokens are restricted to, and secrets that a rotation leaves in force for a while."""

from __future__ import annotations

from sqlalchemy import Column, Double, String, Table

from service.store.sql.schema import metadata

token_models = Table(
    # A token without a row here may ask about every model.
    "token_models",
    metadata,
    Column("name", String, primary_key=True),
    Column("model", String, primary_key=True),
)

former_secrets = Table(
    "former_secrets",
    metadata,
    Column("token_id", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("digest", String, nullable=False),
    Column("until", Double, nullable=False),
)
