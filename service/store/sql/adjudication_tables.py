"""Tables of adjudication: pairs that people are to judge, what is kept of them to judge by, what was said.

What was asked and answered is sealed (`kept_text`) and goes after its retention; what was said stays, since
findings rest on it. Every reading of a text is in `adjudication_access`.
"""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Double, Index, Integer, LargeBinary, String, Table

from service.store.sql.schema import metadata

adjudication_items = Table(
    # Pairs drawn for judgement: by what the evaluator says, by a hash, and by nothing else.
    "adjudication_items",
    metadata,
    Column("item_id", String, primary_key=True),  # a hash: its order is the random order of labelling
    Column("unit_id", String, nullable=False),
    Column("item", Integer, nullable=False),
    Column("model", String, nullable=False),
    Column("tier", String, nullable=False),
    Column("epoch", String, nullable=False),
    Column("evaluator", String, nullable=False),
    Column("version", String, nullable=False),
    Column("baseline_failed", Boolean, nullable=False),  # what the evaluator says
    Column("candidate_failed", Boolean, nullable=False),
    Column("chance", Double, nullable=False),  # of being drawn
    Column("swapped", Boolean, nullable=False),  # side a is the candidate
    Column("by_two", Boolean, nullable=False),  # two people are to label it
    Column("queued_at", Double, nullable=False),
    Column("judge_attempts", Integer, nullable=False),
    Column("judge_until", Double, nullable=False),  # nobody else asks the judge before
    Index("adjudication_items_by_place", "model", "tier", "epoch", "evaluator"),
)

adjudication_texts = Table(
    "adjudication_texts",
    metadata,
    Column("item_id", String, primary_key=True),
    Column("expires_at", Double, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Index("adjudication_texts_by_expiry", "expires_at"),
)

adjudication_labels = Table(
    # What each labeller says of an item: the last word of each.
    "adjudication_labels",
    metadata,
    Column("item_id", String, primary_key=True),
    Column("labeller", String, primary_key=True),
    Column("judge", Boolean, nullable=False),  # a language model, not a person
    Column("said", String, nullable=False),
    Column("at", Double, nullable=False),
    Column("token", String, nullable=False),  # that brought it in
)

adjudication_access = Table(
    # Who saw which captured text, and who said what when; grows only.
    "adjudication_access",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("at", Double, nullable=False),
    Column("actor", String, nullable=False),  # the token, or the judge
    Column("action", String, nullable=False),
    Column("item_id", String, nullable=False),
    Column("detail", String, nullable=False),
    Index("adjudication_access_by_item", "item_id", "seq"),
)
