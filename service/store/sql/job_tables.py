"""Tables of shadow jobs and of the blocks of load that each is made of.

A job's manifest says all that is needed to repeat it; what it found is in its blocks and, once a part is
over, in `measurements` and in the job's own `findings`. No prompt is in here.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Double, Index, Integer, LargeBinary, String, Table, Text

from service.store.sql.schema import metadata

shadow_jobs = Table(
    "shadow_jobs",
    metadata,
    Column("job_id", String, primary_key=True),
    Column("model", String, nullable=False),
    # The model while the job is not over, else NULL: a database admits one such row for each model.
    Column("active", String, unique=True),
    Column("state", String, nullable=False),
    Column("part", String, nullable=False),  # what is measured now, or was last
    Column("cause", String, nullable=False),  # schedule, request, replay
    Column("actor", String, nullable=False),
    Column("own_capacity", Boolean, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("started_at", Double),
    Column("ended_at", Double),
    Column("cancelled_by", String),
    Column("reason", Text, nullable=False),  # why it ended as it did
    Column("manifest", Text, nullable=False),  # canonical JSON
    Column("manifest_digest", String, nullable=False),
    Column("replay_of", String),  # digest of the manifest that it repeats
    Column("differences", Text, nullable=False),  # from that one; a JSON list of sentences
    Column("remarks", Text, nullable=False),  # what was not measured, and why; a JSON list of sentences
    Column("findings", Text),  # canonical JSON
    Column("expected_blocks", Integer, nullable=False),
    Column("expected_seconds", Double, nullable=False),
    Index("shadow_jobs_by_model", "model", "created_at"),
)

load_blocks = Table(
    "load_blocks",
    metadata,
    Column("job_id", String, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),  # from 0, in the order of running
    Column("tier", String, nullable=False),
    Column("part", String, nullable=False),
    Column("plan", Text, nullable=False),  # canonical JSON
    Column("seconds", Double, nullable=False),  # that it is to last
    Column("state", String, nullable=False),
    Column("owner", String, nullable=False),
    Column("lease_until", Double, nullable=False),
    Column("leases", Integer, nullable=False),  # how often it was begun; more than once: a holder died
    Column("enqueued_at", Double, nullable=False),  # 0: the broker was not told of it yet
    Column("started_at", Double),
    Column("ended_at", Double),
    Column("tokens", BigInteger, nullable=False),  # of prompts and answers, warm-up included
    Column(
        "clients", BigInteger, nullable=False
    ),  # answers that clients had meanwhile, where they are watched
    Column("figures", Text),  # JSON, without its `columns`
    Column("requests", LargeBinary),  # zstd of JSON: those of the window, a column a figure
    Index("load_blocks_by_state", "state", "lease_until"),
)
