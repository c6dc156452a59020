"""Proof that the counts are what the pairs say: counted again from units and pairs, compared row by row.

What is counted again can also take the place of what is there: so a database of an older version gets its
tables of counts (`upgrade`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Row, Table, delete, func, select

from service.store.scored.counting import Counts, Part, part_of
from service.store.scored.pairs import add_counts
from service.store.scored.units import PairRow, Unit
from service.store.sql.database import Database
from service.store.sql.schema import pair_ledger, pairs, units
from service.store.sql.tally_tables import COUNTED_TABLES

TABLES = (*COUNTED_TABLES, pair_ledger)
EVERY = 10_000
"""Units between two reports of how far it is."""

_OF_UNIT = (
    "capture_id",
    "model",
    "tier",
    "arm",
    "evaluator",
    "version",
    "epoch",
    "conversation",
    "stratum",
    "tenant",
    "digest",
    "counted",
    "waits",
    "at",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One row that is not what the pairs say."""

    table: str
    row: Mapping[str, str | int]
    """Its key."""
    stored: Mapping[str, int]
    """Its amounts; zeros for a row that is not there."""
    recounted: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recount:
    """What was counted anew, and where it differs."""

    units: int
    pairs: int
    rows: int
    """Rows of all tables that were compared."""
    differences: tuple[Difference, ...]

    @property
    def equal(self) -> bool:
        return not self.differences


@dataclass(slots=True, kw_only=True)
class _Counted:
    """Everything counted again, and from how much."""

    counts: Counts
    units: int = 0
    pairs: int = 0


def recount(db: Database, *, told: Callable[[int, int], None] | None = None, every: int = EVERY) -> Recount:
    """Count everything again from the pairs, in one consistent read; holds one conversation at a time.

    `told` hears after `every` units how many of how many are done.
    """
    with db.read() as connection:
        counted = _count(connection, told, every)
        stored = {table.name: _stored(connection, table) for table in TABLES}
    recounted = _by_table(counted.counts)
    differences: list[Difference] = []
    rows = 0
    for table in TABLES:
        keys = [column.name for column in table.primary_key]
        amounts = [column.name for column in table.columns if not column.primary_key]
        there, again = stored[table.name], recounted[table.name]
        nothing = (0,) * len(amounts)
        for key in sorted({*there, *again}):
            rows += 1
            if there.get(key, nothing) != again.get(key, nothing):
                differences.append(
                    Difference(
                        table=table.name,
                        row=dict(zip(keys, key, strict=True)),
                        stored=dict(zip(amounts, there.get(key, nothing), strict=True)),
                        recounted=dict(zip(amounts, again.get(key, nothing), strict=True)),
                    )
                )
    return Recount(units=counted.units, pairs=counted.pairs, rows=rows, differences=tuple(differences))


def rebuild(
    db: Database,
    connection: Connection,
    *,
    told: Callable[[int, int], None] | None = None,
    every: int = EVERY,
) -> int:
    """Put what the pairs say in the place of every table of counts; how many units were counted."""
    counted = _count(connection, told, every)
    for table in TABLES:
        connection.execute(delete(table))
    add_counts(db, connection, counted.counts)
    return counted.units


def _count(connection: Connection, told: Callable[[int, int], None] | None, every: int) -> _Counted:
    total = int(connection.execute(select(func.count()).select_from(units)).scalar_one())
    counted = _Counted(counts=Counts())
    for _, conversation in groupby(_units(connection), key=lambda unit: unit.conversation):
        seen: set[str] = set()
        groups: dict[tuple[str, ...], list[Part]] = {}
        for unit in conversation:
            counted.units += 1
            counted.pairs += len(unit.rows)
            if told is not None and counted.units % every == 0:
                told(counted.units, total)
            if unit.capture_id not in seen:
                seen.add(unit.capture_id)
                counted.counts.add_taken(unit)
            counted.counts.add_unit(unit)
            if unit.counted:
                part = part_of(unit)
                groups.setdefault(part[:6], []).append(part)
        for group in groups.values():
            counted.counts.add_conversation(group)
    return counted


def _by_table(counts: Counts) -> dict[str, dict[tuple[Any, ...], tuple[int, ...]]]:
    amounts: dict[str, Counter[Any]] = {
        "tallies": counts.tallies,
        "stratum_tallies": counts.strata,
        "tenant_tallies": counts.tenants,
        "takings": counts.takings,
        "pair_ledger": counts.ledger,
    }
    found: dict[str, dict[tuple[Any, ...], tuple[int, ...]]] = {
        name: {tuple(key): (amount,) for key, amount in counter.items()} for name, counter in amounts.items()
    }
    found["stratum_sums"] = {tuple(key): tuple(sums) for key, sums in counts.sums.items()}
    return found


def _stored(connection: Connection, table: Table) -> dict[tuple[Any, ...], tuple[int, ...]]:
    keys = [column.name for column in table.primary_key]
    amounts = [column.name for column in table.columns if not column.primary_key]
    key_of, amount_of = itemgetter(*keys), itemgetter(*amounts)
    one = len(amounts) == 1
    return {
        key_of(row): (int(row[amounts[0]]),) if one else tuple(map(int, amount_of(row)))
        for row in connection.execute(select(table)).mappings()
    }


def _units(connection: Connection) -> Iterator[Unit]:
    """Every unit with its pairs, by conversation. One without pairs is missed, and makes a difference."""
    of_pair = [column.name for column in pairs.columns if column.name != "unit_id"]
    wanted = (
        select(units, *(pairs.c[name].label(f"pair_{name}") for name in of_pair))
        .join(pairs, pairs.c.unit_id == units.c.unit_id)
        .order_by(units.c.conversation, units.c.unit_id, pairs.c.item)
    )
    with connection.execute(wanted, execution_options={"yield_per": 1000}) as rows:
        for _, group in groupby(rows, key=lambda row: row.unit_id):
            yield unit_of(list(group), of_pair)


def unit_of(rows: list[Row[Any]], of_pair: list[str]) -> Unit:
    """The unit of rows that join it with its pairs, whose columns begin with `pair_`."""
    first = rows[0]._mapping
    return Unit(
        **{name: first[name] for name in _OF_UNIT},
        marginals=tuple(first["marginals"].split()),
        rows=tuple(PairRow(**{name: row._mapping[f"pair_{name}"] for name in of_pair}) for row in rows),
    )
