"""Tables counted from units and pairs, all in the transaction that adds these, and all provable by `recount`.

`tallies` is what a verdict reads for a whole ladder at once. The same counts by stratum and by tenant are
beside it, with a row of sums for each stratum, so that a verdict reads the histogram of those alone that
could speak against a tier. Every table adds up in any order: amounts are integers.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, Integer, String, Table, Text

from service.store.sql.schema import metadata


def _keyed(*names: str) -> list[Column[Any]]:
    """Columns of a primary key, in the order in which rows are stored and found."""
    numbers = ("pairs", "harm", "benefit")
    return [
        Column(name, Integer if name in numbers else String, primary_key=True, autoincrement=False)
        for name in names
    ]


_PLACE = ("model", "tier", "arm", "epoch", "evaluator")
_COUNTED = ("kind", "reason", "pairs", "harm", "benefit", "version")
"""kind `unit`: conversations by triple; `both_failed`, `not_counted`, `unscored` (with its reason): pairs;
`further`: requests that count in a conversation besides one."""

tallies = Table(
    "tallies",
    metadata,
    *_keyed(*_PLACE, *_COUNTED),
    Column("amount", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

stratum_tallies = Table(
    "stratum_tallies",
    metadata,
    *_keyed(*_PLACE, "stratum", *_COUNTED),
    Column("amount", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

stratum_sums = Table(
    # Of one stratum over its rows of `stratum_tallies`. `drift` is the sum of the units' mean differences, in
    # 2^-32: an integer, so that it adds up in any order. The key is in the order in which coverage asks for
    # the busiest evaluator of each stratum: one pass, no sorting.
    "stratum_sums",
    metadata,
    *_keyed("model", "tier", "arm", "epoch", "stratum", "evaluator", "version"),
    Column("units", BigInteger, nullable=False),
    Column("pairs", BigInteger, nullable=False),
    Column("harm", BigInteger, nullable=False),
    Column("benefit", BigInteger, nullable=False),
    Column("both_failed", BigInteger, nullable=False),
    Column("not_counted", BigInteger, nullable=False),
    Column("unscored", BigInteger, nullable=False),
    Column("further", BigInteger, nullable=False),
    Column("drift", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

tenant_tallies = Table(
    "tenant_tallies",
    metadata,
    *_keyed(*_PLACE, "tenant", *_COUNTED),
    Column("amount", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

takings = Table(
    # Captures that were taken up and compared, by stratum in the dimensions a worker tells, and by tenant.
    "takings",
    metadata,
    *_keyed("model", "stratum"),
    Column("amount", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

traffic_before = Table(
    # What a model's takings and ledger said of each stratum when an epoch of a tier began (`epochs`): what
    # came since is the traffic that the epoch's evidence is compared with. Not counted from pairs.
    "traffic_before",
    metadata,
    *_keyed("model", "tier", "epoch"),
    Column("amounts", Text, nullable=False),  # JSON by stratum: a verdict reads them whole
    sqlite_with_rowid=False,
)

COUNTED_TABLES = (tallies, stratum_tallies, stratum_sums, tenant_tallies, takings)
