"""The tables. One description for SQLite and PostgreSQL; `VERSION` changes with any of them. What is counted
from units and pairs is in `tally_tables`.

Keys made of several names are hashed (`key_of`), so that indices stay small at a million pairs. No prompt
is in here in the clear: labels and one-sentence reasons are, until `retention` takes the reasons away.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)

VERSION = 8
UPGRADABLE = frozenset({3, 5, 6, 7})
"""Older versions that `tiergate recount --upgrade` makes into this one."""

metadata = MetaData()

# SQLite compares bytes anyway; PostgreSQL must, or a search by prefix could not use the index.
_BYTEWISE = String().with_variant(String(collation="C"), "postgresql")


@lru_cache(maxsize=4096)
def key_of(*parts: str) -> str:
    """128 bits of sha256 over the parts, each with its length: `ab, c` and `a, bc` differ.

    Any text has a key: clients name conversations, and half a surrogate pair is a name as well. Kept for a
    while: a capture asks for each of its keys several times.
    """
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    joined = b"".join(len(each).to_bytes(4, "big") + each for each in encoded)
    return sha256(joined).hexdigest()[:32]


schema_version = Table("schema_version", metadata, Column("version", Integer, primary_key=True))

captures = Table(
    "captures",
    metadata,
    Column("capture_id", _BYTEWISE, primary_key=True),
    Column("mark", String, nullable=False),  # of the model, see capture.model_mark
    Column("state", String, nullable=False),
    Column("owner", String, nullable=False),
    Column("lease_until", Double, nullable=False),
    Column("taken_at", Double, nullable=False),  # first; the order in which evidence counts
    Column(
        "leases", Integer, nullable=False
    ),  # how often it was taken and not given up; more than one: a holder died
    Column("settled_at", Double),
    Index("captures_by_state", "state", "lease_until"),
    Index("captures_by_mark", "state", "mark"),
    Index("captures_by_settling", "settled_at"),
)

settled_captures = Table(
    # What retention removed from `captures`, so that the account still adds up.
    "settled_captures",
    metadata,
    Column("state", String, primary_key=True),
    Column("mark", String, primary_key=True),
    Column("amount", BigInteger, nullable=False),
)

units = Table(
    "units",
    metadata,
    Column("unit_id", String, primary_key=True),  # key_of capture, tier, arm, evaluator, version, epoch
    Column("capture_id", String, nullable=False),
    Column("model", String, nullable=False),
    Column("tier", String, nullable=False),
    Column("arm", String, nullable=False),
    Column("epoch", String, nullable=False),
    Column("evaluator", String, nullable=False),
    Column("version", String, nullable=False),
    Column("conversation", String, nullable=False),
    Column("stratum", String, nullable=False),  # the crossed one
    Column("marginals", String, nullable=False),  # strata of the other dimensions, one space between two
    Column("tenant", String, nullable=False),
    Column("digest", String, nullable=False),
    Column("counted", Boolean, nullable=False),
    Column("waits", Boolean, nullable=False),  # to count once its conversation is closed
    Column("discordant", Boolean, nullable=False),
    # The order in which evidence counts: when its capture was taken, or when its conversation was due to
    # close.
    Column("taken_at", Double, nullable=False),
    Column("at", Double, nullable=False),
    Index("units_by_time", "model", "tier", "arm", "at"),
    Index("units_by_taking", "model", "taken_at"),
    Index("units_discordant", "model", "tier", "arm", "discordant", "at"),
    Index("units_by_conversation", "conversation"),
)

pairs = Table(
    "pairs",
    metadata,
    Column("unit_id", String, primary_key=True),
    Column("item", Integer, primary_key=True),
    Column("outcome", String, nullable=False),
    Column("unscored_reason", String, nullable=False),
    Column("baseline_passed", Boolean),
    Column("candidate_passed", Boolean),
    Column("baseline_label", String, nullable=False),
    Column("candidate_label", String, nullable=False),
    Column("baseline_reason", Text, nullable=False),
    Column("candidate_reason", Text, nullable=False),
    Column("origin", String, nullable=False),
    Column("own_stratum", String, nullable=False, server_default=""),  # of the item, besides its unit's
)

claims = Table(
    # Which capture counts for a conversation, and for a request digest, in an epoch of one tier and
    # evaluator.
    "claims",
    metadata,
    Column("claim", String, primary_key=True),
    Column("capture_id", String, nullable=False),
)

pair_ledger = Table(
    # Pairs by what became of them; outcome `due` is counted on its own, so that the sum can fail.
    "pair_ledger",
    metadata,
    Column("model", String, primary_key=True),
    Column("tier", String, primary_key=True),
    Column("arm", String, primary_key=True),
    Column("evaluator", String, primary_key=True),
    Column("outcome", String, primary_key=True),
    Column("reason", String, primary_key=True),
    Column("amount", BigInteger, nullable=False),
)

epochs = Table(
    "epochs",
    metadata,
    Column("model", String, primary_key=True),
    Column("tier", String, primary_key=True),
    Column("epoch", String, primary_key=True),
    Column("attempt", Integer, nullable=False),
    Index("epochs_by_attempt", "model", "tier", "attempt", unique=True),
)

epoch_plans = Table(
    # N_max of a criterion, fixed once per epoch at the minimum of pairs (statistics A13), and from what.
    "epoch_plans",
    metadata,
    Column("model", String, primary_key=True),
    Column("tier", String, primary_key=True),
    Column("epoch", String, primary_key=True),
    Column("evaluator", String, primary_key=True),
    Column("max_pairs", BigInteger, nullable=False),
    Column("pairs", BigInteger, nullable=False),
    Column("discordant", BigInteger, nullable=False),
    Column("control_discordance", Double, nullable=False),
)

epoch_starts = Table(
    # When the first capture that counts in an epoch was taken.
    "epoch_starts",
    metadata,
    Column("model", String, primary_key=True),
    Column("tier", String, primary_key=True),
    Column("epoch", String, primary_key=True),
    Column("first_pair_at", Double, nullable=False),
)

interventions = Table(
    # What an admin decided about a tier in an epoch: `skip`, `restore_alpha`. The latest of each kind.
    "interventions",
    metadata,
    Column("model", String, primary_key=True),
    Column("tier", String, primary_key=True),
    Column("kind", String, primary_key=True),
    Column("epoch", String, nullable=False),
    Column("through", Integer, nullable=False),  # the highest attempt that the tier had then
    Column("reason", Text, nullable=False),
    Column("actor", String, nullable=False),
    Column("at", Double, nullable=False),
)

conversations = Table(
    # Those that count once they are closed; a closed one stays closed.
    "conversations",
    metadata,
    Column("conversation", String, primary_key=True),
    Column("model", String, nullable=False),
    Column("last_at", Double, nullable=False),  # when the last of its captures was taken
    Column("closed_at", Double),
    Index("conversations_open", "model", "closed_at", "last_at"),
)

prefixes = Table(
    # Message lists and the beginnings of them, by hash of model, tenant and list.
    "prefixes",
    metadata,
    Column("prefix", String, primary_key=True),
    Column("conversation", String, nullable=False),
    Column("complete", Boolean, nullable=False),  # somebody sent exactly this list
)

ledger_instances = Table(
    "ledger_instances",
    metadata,
    Column("instance", String, primary_key=True),
    Column("closed", Boolean, nullable=False),
    Column("written_at", Double, nullable=False),
)

ledger_counters = Table(
    "ledger_counters",
    metadata,
    Column("instance", String, primary_key=True),
    Column("counter", String, primary_key=True),
    Column("amount", BigInteger, nullable=False),
)

in_doubt = Table(
    # Captures a proxy counted as dropped(store_down) without knowing whether Redis took them.
    "in_doubt",
    metadata,
    Column("capture_id", String, primary_key=True),
    Column("mark", String, nullable=False),
)

decisions = Table(
    "decisions",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
    Column("actor", String, nullable=False),
    Column("action", String, nullable=False),
    Column("model", String, nullable=False),
    Column("tier", String),
    Column("detail", Text, nullable=False),  # canonical JSON
    Column("prev", String, nullable=False),
    Column("digest", String, nullable=False),
    Index("decisions_by_model", "model", "seq"),
)

decision_head = Table(
    # The last row of the log: without it, cutting rows off the end would go unnoticed.
    "decision_head",
    metadata,
    Column("only", Integer, primary_key=True, autoincrement=False),
    Column("seq", Integer, nullable=False),
    Column("digest", String, nullable=False),
)

approvals = Table(
    "approvals",
    metadata,
    Column("model", String, primary_key=True),
    Column("tier", String, primary_key=True),
    Column("document", Text, nullable=False),
)

holds = Table(
    # Why a tier may not get (more) clients in an epoch: rolled_back, rejected, slo_lost, frozen.
    "holds",
    metadata,
    Column("model", String, primary_key=True),
    Column("tier", String, primary_key=True),
    Column("epoch", String, primary_key=True),
    Column("kind", String, primary_key=True),
    Column("reason", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("ended_at", Double),
)

measurements = Table(
    # What load runs showed of the gates that pairs cannot tell.
    "measurements",
    metadata,
    Column("model", String, primary_key=True),
    Column("tier", String, primary_key=True),
    Column("gate", String, primary_key=True),
    Column("epoch", String, primary_key=True),
    Column("at", Double, primary_key=True),
    Column("shown", String, nullable=False),
    Column("reason", Text, nullable=False),
    Column("numbers", Text, nullable=False),  # canonical JSON
    Column("run", Integer),  # j: which run of the epoch; NULL when nothing was looked at
)

detectors = Table(
    # The e-detector of each criterion of a tier that serves: `state` is its R by bet, in logarithms.
    "detectors",
    metadata,
    Column("model", String, primary_key=True),
    Column("tier", String, primary_key=True),
    Column("epoch", String, primary_key=True),
    Column("criterion", String, primary_key=True),
    Column("state", Text, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("stopped_at", Double),  # since when it serves nobody
    Column("floor", Double, nullable=False),  # every unit taken up before is in the state
)

detector_units = Table(
    # Units from the floor on that a detector has seen, so that late ones are told from these.
    "detector_units",
    metadata,
    Column("unit_id", String, primary_key=True),
    Column("detector", String, nullable=False),  # key_of model, tier, epoch, criterion
    Column("taken_at", Double, nullable=False),
    Index("detector_units_by_taking", "detector", "taken_at"),
)

routes = Table(
    "routes",
    metadata,
    Column("model", String, primary_key=True),
    Column("weights", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("issued_at", Double, nullable=False),
)

tokens = Table(
    "tokens",
    metadata,
    Column("token_id", String, primary_key=True),
    Column("name", String, nullable=False, unique=True),
    Column("digest", String, nullable=False),
    Column("scopes", String, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double),
    Column("revoked_at", Double),
)
