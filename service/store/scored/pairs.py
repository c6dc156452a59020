"""Scored pairs, recorded once: units, their pairs, the tallies and the pair ledger in one transaction.

A unit counts for its conversation when its capture was the first to claim it (statistics A2, `units:
first_sampled`) and the same request, by digest, has not counted before in the epoch; otherwise it is kept and
shown. One that waits (`units: closed_conversations`) counts with all others of its conversation when that is
closed (`closing`), and not at all when it already is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Executable, Table, case, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from service.store.labels.adjudication import Drawn, queue
from service.store.scored.conversations import conversation_of as conversation_of
from service.store.scored.counting import Counts, recorded
from service.store.scored.details import detail_rows
from service.store.scored.leases import State, settle
from service.store.scored.units import Arm as Arm
from service.store.scored.units import Claim as Claim
from service.store.scored.units import PairOutcome as PairOutcome
from service.store.scored.units import PairRow as PairRow
from service.store.scored.units import Unit as Unit
from service.store.sql.database import Database
from service.store.sql.detail_tables import pair_details
from service.store.sql.schema import captures as captures_table
from service.store.sql.schema import claims as claims_table
from service.store.sql.schema import conversations, pair_ledger
from service.store.sql.schema import pairs as pairs_table
from service.store.sql.schema import units as units_table
from service.store.sql.tally_tables import stratum_sums, stratum_tallies, takings, tallies, tenant_tallies


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
    return all(holders.get(key) == capture_id for key in claim.keys)


def record(
    db: Database,
    *,
    capture_id: str,
    owner: str,
    units: Sequence[Unit],
    state: str = State.PROCESSED,
    drawn: Sequence[Drawn] = (),
    alongside: Callable[[Connection], None] | None = None,
    at: float,
) -> bool:
    """Settle a capture and add all that it says, in one transaction, with the pairs of it that are `drawn`
    for people to judge, and what `alongside` writes at the end of it.

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
        queue(db, connection, drawn)
        if alongside is not None:
            alongside(connection)
    return True


def record_again(db: Database, *, capture_id: str, units: Sequence[Unit], at: float) -> int:
    """Add units of a capture that was settled long ago, judged anew; how many were not there yet.

    They count in the order in which they come now (`at`, unix seconds), and only where the capture gets the
    claims: live traffic of the same conversation or request may have been first.
    """
    if strangers := {unit.capture_id for unit in units} - {capture_id}:
        raise ValueError(f"units of {sorted(strangers)} cannot be recorded with capture {capture_id}")
    if not units:
        return 0
    with db.write() as connection:
        return _add(db, connection, capture_id, units, taken_at=at)


def _add(
    db: Database,
    connection: Connection,
    capture_id: str,
    units: Sequence[Unit],
    taken_at: float | None = None,
) -> int:
    # Retention may have removed the settlement of a capture that a stale message brings back: its units
    # remain.
    known = set(
        connection.execute(
            select(units_table.c.unit_id).where(
                units_table.c.conversation.in_({unit.conversation for unit in units}),
                units_table.c.capture_id == capture_id,
            )
        ).scalars()
    )
    fresh = [unit for unit in units if unit.id not in known]
    if not fresh:
        return 0
    if taken_at is None:
        taken_at = connection.execute(
            select(captures_table.c.taken_at).where(captures_table.c.capture_id == capture_id)
        ).scalar_one()
    placed = _place(db, connection, capture_id, fresh, taken_at)
    connection.execute(units_table.insert(), [{**_unit_row(unit), "taken_at": taken_at} for unit in placed])
    connection.execute(pairs_table.insert(), [row for unit in placed for row in _pair_rows(unit)])
    add_counts(db, connection, recorded(placed, taken=not known))
    increment(db, connection, pair_details, detail_rows(db, connection, placed))
    return len(placed)


def _place(
    db: Database, connection: Connection, capture_id: str, units: Sequence[Unit], taken_at: float
) -> list[Unit]:
    """The units as they are to be recorded: counted, waiting or late only where that is granted."""
    closed = {
        name: _is_closed(db, connection, name, model, taken_at)
        for name, model in sorted({(unit.conversation, unit.model) for unit in units if unit.waits})
    }
    asking = [unit for unit in units if unit.counted or unit.waits]
    holders = _claim_keys(db, connection, {key for unit in asking for key in unit.claim.keys}, capture_id)
    placed = []
    for unit in units:
        granted = _holds(unit.claim, holders, capture_id)
        late = unit.waits and closed[unit.conversation]
        if late and granted and unit.claim.keys:
            # What does not count leaves its request to a later conversation.
            connection.execute(delete(claims_table).where(claims_table.c.claim.in_(unit.claim.keys)))
        placed.append(
            unit.when_late()
            if late
            else replace(unit, counted=unit.counted and granted, waits=unit.waits and granted)
        )
    return placed


def _is_closed(db: Database, connection: Connection, conversation: str, model: str, taken_at: float) -> bool:
    """Whether a conversation was closed; if not, it stays open, locked, and knows of this request."""
    insert = db.insert(conversations).values(
        conversation=conversation, model=model, last_at=taken_at, closed_at=None
    )
    later = (conversations.c.last_at < insert.excluded.last_at) & conversations.c.closed_at.is_(None)
    known = insert.on_conflict_do_update(
        index_elements=[conversations.c.conversation],
        set_={"last_at": case((later, insert.excluded.last_at), else_=conversations.c.last_at)},
    ).returning(conversations.c.closed_at)
    return connection.execute(known).scalar() is not None


def add_counts(db: Database, connection: Connection, counts: Counts) -> None:
    """Add to every table of counts; always in this order, and by key within one: who adds never deadlocks."""
    amounts: tuple[tuple[Table, Counter[Any]], ...] = (
        (tallies, counts.tallies),
        (stratum_tallies, counts.strata),
        (tenant_tallies, counts.tenants),
        (pair_ledger, counts.ledger),
        (takings, counts.takings),
    )
    for table, counter in amounts:
        rows = [{**key._asdict(), "amount": amount} for key, amount in sorted(counter.items()) if amount]
        increment(db, connection, table, rows)
    sums = sorted(counts.sums.items())
    increment(db, connection, stratum_sums, [{**key._asdict(), **each._asdict()} for key, each in sums])


def _claim_keys(db: Database, connection: Connection, keys: Iterable[str], capture_id: str) -> dict[str, str]:
    """The holder of each key after claiming what was free; sorted, so that two who claim never deadlock."""
    wanted = sorted(set(keys))
    if not wanted:
        return {}
    connection.execute(
        db.insert(claims_table).on_conflict_do_nothing(),
        [{"claim": key, "capture_id": capture_id} for key in wanted],
    )
    found = connection.execute(select(claims_table).where(claims_table.c.claim.in_(wanted)))
    return {row.claim: row.capture_id for row in found}


def increment(
    db: Database, connection: Connection, table: Table, rows: Sequence[Mapping[str, object]]
) -> None:
    """Add the amounts to each row; in the order of the keys, or two who add may deadlock."""
    if rows:
        connection.execute(_adding(db.is_sqlite, table), rows)


@lru_cache(maxsize=16)
def _adding(is_sqlite: bool, table: Table) -> Executable:
    """The statement that adds: made once, since making it costs more than sending it."""
    insert = sqlite.insert(table) if is_sqlite else postgresql.insert(table)
    amounts = [column.name for column in table.columns if not column.primary_key]
    return insert.on_conflict_do_update(
        index_elements=list(table.primary_key.columns),
        set_={name: table.c[name] + insert.excluded[name] for name in amounts},
    )


def _unit_row(unit: Unit) -> dict[str, object]:
    names = ("capture_id", "model", "tier", "arm", "epoch", "evaluator", "version")
    more = ("conversation", "stratum", "tenant", "digest", "counted", "waits", "at")
    return {
        "unit_id": unit.id,
        **{name: getattr(unit, name) for name in (*names, *more)},
        "marginals": " ".join(unit.marginals),
        "discordant": any(row.harm or row.benefit for row in unit.rows),
    }


def _pair_rows(unit: Unit) -> list[dict[str, object]]:
    names = (
        *("item", "outcome", "unscored_reason", "baseline_passed", "candidate_passed", "origin"),
        "own_stratum",
    )
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
