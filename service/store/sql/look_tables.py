"""What the guard's looks at a tier found: how far its limits had narrowed by then."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, String, Table

from service.store.sql.schema import metadata

looks_taken = Table(
    # One row each time a criterion's pairs have grown by a twentieth (`looks`): some 200 to a million pairs.
    "looks_taken",
    metadata,
    Column("model", String, primary_key=True),
    Column("tier", String, primary_key=True),
    Column("epoch", String, primary_key=True),
    Column("criterion", String, primary_key=True),
    Column("pairs", BigInteger, primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
    Column("conversations", BigInteger, nullable=False),
    Column("harm", BigInteger, nullable=False),
    Column("benefit", BigInteger, nullable=False),
    Column("estimate", Double, nullable=False),
    Column("lower", Double, nullable=False),
    Column("upper", Double, nullable=False),
    Column("level", Double, nullable=False),
    Column("margin", Double, nullable=False),
    Column("decision", String, nullable=False),
)
