"""Holds: why a tier may not get clients, or no more of them, in an epoch. Hysteresis is that they stay.

`rolled_back`: the guard took it out of service for harm. Only an approval against that (`override`, by an
admin) or another epoch puts the tier back.
`slo_lost`: a measurement showed it; a later one that shows the contrary ends it.
`rejected`: a person took it out of service, or keeps it from getting there; it is put back like one that was
rolled back.
`frozen`: a warning stopped its ramp; the next approval ends it.
Every beginning and end is a row of the decision log, in one transaction with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, select, update

from service.fleet import Route
from service.store.decided.decisions import append_within
from service.store.decided.routes import check_route_within, set_route_within
from service.store.sql.database import Database
from service.store.sql.schema import approvals, holds


class HoldKind(StrEnum):
    """Why; see above for what ends each."""

    ROLLED_BACK = "rolled_back"
    REJECTED = "rejected"
    SLO_LOST = "slo_lost"
    FROZEN = "frozen"


BARRING = frozenset({HoldKind.ROLLED_BACK, HoldKind.REJECTED, HoldKind.SLO_LOST})
"""Kinds that only an override may be given against."""
FREEZING = frozenset({HoldKind.FROZEN, HoldKind.SLO_LOST})
"""Kinds that stop a ramp."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """One reason to stop."""

    kind: HoldKind
    reason: str
    at: float
    """Unix seconds."""
    ended_at: float | None = None
    """Unix seconds; None while it is in force."""


def read_holds(db: Database, model: str, tier: str, epoch: str) -> tuple[Hold, ...]:
    """Those of one tier in one epoch, ended ones as well, oldest first."""
    with db.read() as connection:
        rows = connection.execute(
            select(holds).where(_of(model, tier, epoch)).order_by(holds.c.at, holds.c.kind)
        )
        return tuple(
            Hold(kind=HoldKind(row.kind), reason=row.reason, at=row.at, ended_at=row.ended_at) for row in rows
        )


def begin_hold(
    db: Database, *, model: str, tier: str, epoch: str, kind: HoldKind, reason: str, at: float, actor: str
) -> bool:
    """Hold the tier and log it; False, and nothing changes, while such a hold is in force."""
    with db.write() as connection:
        db.lock(connection, "decisions")
        over = holds.c.ended_at.is_not(None)
        begun = _put(
            db, connection, model=model, tier=tier, epoch=epoch, kind=kind, reason=reason, at=at, where=over
        )
        if begun:
            append_within(
                db,
                connection,
                at=at,
                actor=actor,
                action=kind.value,
                model=model,
                tier=tier,
                detail={"epoch": epoch, "reasons": [reason]},
            )
    return begun


def end_hold(
    db: Database, *, model: str, tier: str, epoch: str, kind: HoldKind, reason: str, at: float, actor: str
) -> bool:
    """End a hold and log it; False, and nothing changes, when none is in force."""
    with db.write() as connection:
        db.lock(connection, "decisions")
        ended = end_holds_within(connection, model=model, tier=tier, epoch=epoch, kinds=(kind,), at=at)
        if ended:
            append_within(
                db,
                connection,
                at=at,
                actor=actor,
                action=f"{kind.value}_ended",
                model=model,
                tier=tier,
                detail={"epoch": epoch, "reasons": [reason]},
            )
    return ended


def end_holds_within(
    connection: Connection, *, model: str, tier: str, epoch: str, kinds: tuple[HoldKind, ...], at: float
) -> bool:
    """End holds as part of a transaction that logs why; whether any was in force."""
    mine = _of(model, tier, epoch) & holds.c.kind.in_(kinds) & holds.c.ended_at.is_(None)
    return bool(connection.execute(update(holds).where(mine).values(ended_at=at)).rowcount)


def roll_back(
    db: Database,
    route: Route,
    *,
    tier: str,
    target: str,
    epoch: str,
    kind: HoldKind | None,
    reason: str,
    at: float,
    actor: str,
    detail: Mapping[str, Any],
    expect: int,
) -> Route:
    """Take a tier out of service, withdraw its approval and hold it, in one transaction; the route as placed.

    `kind` None: it is held already. RouteMoved when the route has another version than `expect`, so that of
    two who decide on the same route one acts.
    """
    with db.write() as connection:
        placed = set_route_within(
            db,
            connection,
            route,
            at=at,
            actor=actor,
            action="roll_back",
            tier=target,
            detail={**detail, "from": tier, "epoch": epoch, "approval": "withdrawn"},
            expect=expect,
        )
        if kind is not None:
            _put(db, connection, model=route.model, tier=tier, epoch=epoch, kind=kind, reason=reason, at=at)
        connection.execute(
            delete(approvals).where(approvals.c.model == route.model, approvals.c.tier == tier)
        )
    return placed


def reject(
    db: Database,
    *,
    model: str,
    tier: str,
    epoch: str,
    reason: str,
    at: float,
    actor: str,
    route: Route | None = None,
    expect: int | None = None,
) -> bool:
    """Hold the tier because a person rejects it, withdraw its approval, and put `route` in force if given.

    One transaction, logged; False, and nothing changes, while it is rejected already and no route is given.
    RouteMoved as in `roll_back`.
    """
    with db.write() as connection:
        db.lock(connection, "decisions")
        check_route_within(connection, model, expect)
        mine = _of(model, tier, epoch) & (holds.c.kind == HoldKind.REJECTED) & holds.c.ended_at.is_(None)
        approved = (approvals.c.model == model) & (approvals.c.tier == tier)
        known = connection.execute(select(holds.c.at).where(mine)).first() is not None
        withdrawn = connection.execute(delete(approvals).where(approved)).rowcount > 0
        if known and not withdrawn and route is None:
            return False
        _put(
            db,
            connection,
            model=model,
            tier=tier,
            epoch=epoch,
            kind=HoldKind.REJECTED,
            reason=reason,
            at=at,
        )
        append_within(
            db,
            connection,
            at=at,
            actor=actor,
            action="reject",
            model=model,
            tier=tier,
            detail={"epoch": epoch, "reason": reason, **({"approval": "withdrawn"} if withdrawn else {})},
        )
        if route is not None:
            set_route_within(
                db,
                connection,
                route,
                at=at,
                actor=actor,
                action="roll_back",
                tier=route.serving,
                detail={"because": "rejected", "reason": reason, "from": tier, "epoch": epoch},
                expect=expect,
            )
    return True


def _put(
    db: Database,
    connection: Connection,
    *,
    model: str,
    tier: str,
    epoch: str,
    kind: HoldKind,
    reason: str,
    at: float,
    where: ColumnElement[bool] | None = None,
) -> bool:
    """Put a hold in force, one that is there only where it is as `where` says; whether it was put."""
    insert = db.insert(holds).values(
        model=model, tier=tier, epoch=epoch, kind=kind, reason=reason, at=at, ended_at=None
    )
    put = insert.on_conflict_do_update(
        index_elements=list(holds.primary_key.columns),
        set_={"reason": reason, "at": at, "ended_at": None},
        where=where,
    ).returning(holds.c.kind)
    return connection.execute(put).first() is not None


def _of(model: str, tier: str, epoch: str) -> ColumnElement[bool]:
    return (holds.c.model == model) & (holds.c.tier == tier) & (holds.c.epoch == epoch)
