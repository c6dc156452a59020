"""Proof that the tallies are what the pairs say: recomputed from units and pairs, and compared row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, Row, select

from service.store.database import Database
from service.store.schema import pair_ledger, pairs, tallies, units
from service.store.units import LedgerRow, PairRow, TallyRow, Unit, ledger_rows, tally_rows

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
    "at",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One row that is not what the pairs say."""

    row: TallyRow | LedgerRow
    stored: int
    recounted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recount:
    """What was counted anew, and where it differs."""

    units: int
    pairs: int
    differences: tuple[Difference, ...]

    @property
    def equal(self) -> bool:
        return not self.differences


def recount(db: Database) -> Recount:
    """Count everything again from the pairs, in one consistent read; holds one unit in memory at a time."""
    tally: Counter[TallyRow] = Counter()
    ledger: Counter[LedgerRow] = Counter()
    seen = of_pairs = 0
    with db.read() as connection:
        for unit in _units(connection):
            seen += 1
            of_pairs += len(unit.rows)
            tally.update(tally_rows(unit, counted=unit.counted))
            ledger.update(ledger_rows(unit))
        stored_tally = {
            TallyRow(*(row[name] for name in TallyRow._fields)): int(row["amount"])
            for row in connection.execute(select(tallies)).mappings()
        }
        stored_ledger = {
            LedgerRow(*(row[name] for name in LedgerRow._fields)): int(row["amount"])
            for row in connection.execute(select(pair_ledger)).mappings()
        }
    differences = [
        Difference(row=row, stored=stored_tally.get(row, 0), recounted=tally[row])
        for row in sorted({*stored_tally, *tally})
        if stored_tally.get(row, 0) != tally[row]
    ] + [
        Difference(row=row, stored=stored_ledger.get(row, 0), recounted=ledger[row])
        for row in sorted({*stored_ledger, *ledger})
        if stored_ledger.get(row, 0) != ledger[row]
    ]
    return Recount(units=seen, pairs=of_pairs, differences=tuple(differences))


def _units(connection: Connection) -> Iterator[Unit]:
    """Every unit with its pairs. A unit that lost its pairs is missed, and so makes a difference."""
    of_pair = [column.name for column in pairs.columns if column.name != "unit_id"]
    wanted = (
        select(units, *(pairs.c[name].label(f"pair_{name}") for name in of_pair))
        .join(pairs, pairs.c.unit_id == units.c.unit_id)
        .order_by(units.c.unit_id, pairs.c.item)
    )
    with connection.execution_options(yield_per=1000).execute(wanted) as rows:
        for _, group in groupby(rows, key=lambda row: row.unit_id):
            yield _unit(list(group), of_pair)


def _unit(rows: list[Row[Any]], of_pair: list[str]) -> Unit:
    first = rows[0]._mapping
    return Unit(
        **{name: first[name] for name in _OF_UNIT},
        rows=tuple(PairRow(**{name: row._mapping[f"pair_{name}"] for name in of_pair}) for row in rows),
    )
