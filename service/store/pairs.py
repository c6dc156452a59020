"""Scored pairs, recorded once: units, their pairs, the tallies and the pair ledger in one transaction.

A unit counts for its conversation when its capture was the first to claim it (statistics A2, `units:
first_sampled`) and the same request, by digest, has not counted before in the epoch; otherwise it is kept and
shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from sqlalchemy import Connection, Executable, Table, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from service.store.conversations import conversation_of as conversation_of
from service.store.database import Database
from service.store.leases import State, settle
from service.store.schema import captures as captures_table
from service.store.schema import claims as claims_table
from service.store.schema import pair_ledger, tallies
from service.store.schema import pairs as pairs_table
from service.store.schema import units as units_table
from service.store.units import Arm as Arm
from service.store.units import Claim as Claim
from service.store.units import LedgerRow, TallyRow, ledger_rows, tally_rows
from service.store.units import PairOutcome as PairOutcome
from service.store.units import PairRow as PairRow
from service.store.units import Unit as Unit


def claim(db: Database, claims: Sequence[Claim], *, capture_id: str) -> set[Claim]:
    """Those this capture holds: the first to claim keeps it, and claims it again after a crash.

    A claim is held whole or not at all: one whose request has counted already leaves its conversation free
    for a later turn.
    """
    if not claims:
        return set()
    with db.write() as connection:
        wanted = {key for each in claims for key in each.keys}
        holders = _claim_keys(db, connection, wanted, capture_id)
        held = {each for each in claims if _holds(each, holders, capture_id)}
        useless = wanted - {key for each in held for key in each.keys}
        connection.execute(
            delete(claims_table).where(
                claims_table.c.claim.in_(sorted(useless)), claims_table.c.capture_id == capture_id
            )
        )
    return held


def _holds(claim: Claim, holders: Mapping[str, str], capture_id: str) -> bool:
    return all(holders[key] == capture_id for key in claim.keys)


def record(
    db: Database,
    *,
    capture_id: str,
    owner: str,
    units: Sequence[Unit],
    state: str = State.PROCESSED,
    at: float,
) -> bool:
    """Settle a capture and add all that it says, in one transaction.

    False, and nothing changes, when the capture was settled already. Whoever records first wins, even
    after its lease ran out: both holders judged the same exchange, and only one of them is counted.
    """
    if strangers := {unit.capture_id for unit in units} - {capture_id}:
        raise ValueError(f"units of {sorted(strangers)} cannot be recorded with capture {capture_id}")
    if len({unit.id for unit in units}) != len(units):
        raise ValueError(f"capture {capture_id} has two units for one tier, arm, evaluator and epoch")
    with db.write() as connection:
        if not settle(db, connection, capture_id, State(state), owner=owner, at=at):
            return False
        if units:
            _add(db, connection, capture_id, units)
    return True


def _add(db: Database, connection: Connection, capture_id: str, units: Sequence[Unit]) -> None:
    # Retention may have removed the settlement of a capture that a stale message brings back: its units
    # remain.
    known = set(
        connection.execute(
            select(units_table.c.unit_id).where(units_table.c.unit_id.in_([unit.id for unit in units]))
        ).scalars()
    )
    fresh = [unit for unit in units if unit.id not in known]
    if not fresh:
        return
    wanted = [key for unit in fresh if unit.counted for key in unit.claim.keys]
    holders = _claim_keys(db, connection, wanted, capture_id) if wanted else {}
    counted = [unit.counted and _holds(unit.claim, holders, capture_id) for unit in fresh]
    taken_at = connection.execute(
        select(captures_table.c.taken_at).where(captures_table.c.capture_id == capture_id)
    ).scalar_one()
    connection.execute(
        units_table.insert(),
        [
            {**_unit_row(unit, counts), "taken_at": taken_at}
            for unit, counts in zip(fresh, counted, strict=True)
        ],
    )
    connection.execute(pairs_table.insert(), [row for unit in fresh for row in _pair_rows(unit)])
    tally: Counter[TallyRow] = Counter()
    ledger: Counter[LedgerRow] = Counter()
    for unit, counts in zip(fresh, counted, strict=True):
        tally.update(tally_rows(unit, counted=counts))
        ledger.update(ledger_rows(unit))
    increment(db, connection, tallies, [{**key._asdict(), "amount": tally[key]} for key in sorted(tally)])
    increment(
        db, connection, pair_ledger, [{**key._asdict(), "amount": ledger[key]} for key in sorted(ledger)]
    )


def _claim_keys(db: Database, connection: Connection, keys: Iterable[str], capture_id: str) -> dict[str, str]:
    """The holder of each key after claiming what was free; sorted, so that two who claim never deadlock."""
    wanted = sorted(set(keys))
    connection.execute(
        db.insert(claims_table).on_conflict_do_nothing(),
        [{"claim": key, "capture_id": capture_id} for key in wanted],
    )
    found = connection.execute(select(claims_table).where(claims_table.c.claim.in_(wanted)))
    return {row.claim: row.capture_id for row in found}


def increment(
    db: Database, connection: Connection, table: Table, rows: Sequence[Mapping[str, object]]
) -> None:
    """Add `amount` to each row; in the order of the keys, or two who add may deadlock."""
    if rows:
        connection.execute(_adding(db.is_sqlite, table), rows)


@lru_cache(maxsize=16)
def _adding(is_sqlite: bool, table: Table) -> Executable:
    """The statement that adds: made once, since making it costs more than sending it."""
    insert = sqlite.insert(table) if is_sqlite else postgresql.insert(table)
    return insert.on_conflict_do_update(
        index_elements=list(table.primary_key.columns),
        set_={"amount": table.c.amount + insert.excluded.amount},
    )


def _unit_row(unit: Unit, counted: bool) -> dict[str, object]:
    names = ("capture_id", "model", "tier", "arm", "epoch", "evaluator", "version")
    more = ("conversation", "stratum", "tenant", "digest", "at")
    return {
        "unit_id": unit.id,
        **{name: getattr(unit, name) for name in (*names, *more)},
        "counted": counted,
        "discordant": any(row.harm or row.benefit for row in unit.rows),
    }


def _pair_rows(unit: Unit) -> list[dict[str, object]]:
    names = ("item", "outcome", "unscored_reason", "baseline_passed", "candidate_passed", "origin")
    texts = ("baseline_label", "candidate_label", "baseline_reason", "candidate_reason")
    return [
        {
            "unit_id": unit.id,
            **{name: getattr(row, name) for name in names},
            **{name: _storable(getattr(row, name)) for name in texts},
        }
        for row in unit.rows
    ]


def _storable(text: str) -> str:
    """Reasons quote what models write: neither NUL nor half a surrogate pair may stop a capture."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
