"""Tables of the corpus: requests kept beyond their scoring, answers kept beside some, what was sent again.

Requests and answers are sealed as captures are (`store.redis.capture`) and redacted before; names, numbers
and digests are in the clear.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
)

from service.store.sql.schema import metadata

corpus = Table(
    # Requests, at most so many of each place: a stratum of one period.
    "corpus",
    metadata,
    Column("place", String, primary_key=True),  # key_of model, corpus, stratum, period
    Column("digest", String, primary_key=True),  # of the request as it is kept
    Column("model", String, nullable=False),
    Column("name", String, nullable=False),  # of the corpus
    Column("stratum", String, nullable=False),
    Column("tenant", String, nullable=False),
    Column("rank", Double, nullable=False),  # in [0, 1); the smallest stay
    Column("original", String, nullable=False),  # digest of the request as it came, by which evidence counts
    Column("label", String, nullable=False),
    Column("arrived_at", Double),  # unix seconds, or seconds from the start of a trace
    Column("expires_at", Double),
    Column("bytes", Integer, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Index("corpus_by_rank", "place", "rank"),
    Index("corpus_by_model", "model", "name"),
    Index("corpus_by_tenant", "tenant"),
    Index("corpus_by_expiry", "expires_at"),
    Index("corpus_by_bytes", "bytes"),
)

corpus_strata = Table(
    # How many requests were there to draw from.
    "corpus_strata",
    metadata,
    Column("place", String, primary_key=True),
    Column("model", String, nullable=False),
    Column("name", String, nullable=False),
    Column("stratum", String, nullable=False),
    Column("tenant", String, nullable=False),
    Column("expires_at", Double),
    Column("seen", BigInteger, nullable=False),
    Index("corpus_strata_by_model", "model", "name"),
    Index("corpus_strata_by_tenant", "tenant"),
)

kept_answers = Table(
    # Every answer to one captured request, chosen by its hash alone, whatever was answered.
    "kept_answers",
    metadata,
    Column("capture_id", String, primary_key=True),
    Column("model", String, nullable=False),
    Column("tenant", String, nullable=False),
    Column("scored", String, nullable=False),  # key_of the epochs and versions it was last judged under
    Column("expires_at", Double, nullable=False),
    Column("bytes", Integer, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Index("kept_answers_by_scoring", "model", "scored"),
    Index("kept_answers_by_tenant", "tenant"),
    Index("kept_answers_by_expiry", "expires_at"),
    Index("kept_answers_by_bytes", "bytes"),
)

resends = Table(
    # Captured requests, and those that their tenant sent again within the window, by the tier that had
    # answered before.
    "resends",
    metadata,
    Column("model", String, primary_key=True),
    Column("tier", String, primary_key=True),
    Column("day", Integer, primary_key=True, autoincrement=False),  # unix days
    Column("together", Boolean, primary_key=True),  # sampled with its conversation, and not by itself
    Column("share", String, primary_key=True),  # of requests that were sampled, as a decimal
    Column("total", BigInteger, nullable=False),
    Column("resent", BigInteger, nullable=False),
)
