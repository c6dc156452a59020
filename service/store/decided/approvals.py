"""Approvals in force: that a person or pipeline accepted a verdict, with that verdict."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from sqlalchemy import Connection, delete, func, select

from service.fleet import Route
from service.store.decided.decisions import append_within
from service.store.decided.holds import HoldKind, end_holds_within
from service.store.decided.routes import check_route_within, set_route_within
from service.store.sql.database import Database
from service.store.sql.schema import approvals, holds


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """That a tier may serve."""

    model: str
    tier: str
    actor: str
    at: float
    """Unix seconds."""
    expires_at: float | None = None
    """Unix seconds; None = until revoked."""
    artifact: str | None = None
    """sha256 of what was approved: model, recipe, engine, flags."""
    override: bool = False
    """Given against the verdict."""
    reason: str | None = None
    epoch: str
    policy_digest: str
    evaluators: Mapping[str, str] = field(default_factory=dict)
    """Versions by name."""
    verdict: Mapping[str, Any]
    """The verdict at that moment, as JSON."""

    def __post_init__(self) -> None:
        if self.override and not self.reason:
            raise ValueError("an override needs a reason")
        if self.expires_at is not None and self.expires_at <= self.at:
            raise ValueError("an approval must expire after it is given")

    def expired(self, now: float) -> bool:
        return self.expires_at is not None and self.expires_at <= now


def current_approval(db: Database, model: str, tier: str) -> Approval | None:
    """The last approval that was not revoked; ask it whether it has expired."""
    with db.read() as connection:
        document = connection.execute(
            select(approvals.c.document).where(approvals.c.model == model, approvals.c.tier == tier)
        ).scalar_one_or_none()
    return None if document is None else Approval(**json.loads(document))


def put_approval(
    db: Database, approval: Approval, *, route: Route | None = None, expect: int | None = None
) -> Route | None:
    """Approve, log it, and with `route` put that in force, in one transaction; the route with its version.

    A ramp that a warning froze goes on: whoever approves now has seen it. An override is dated no earlier
    than the holds that it is given against, though another clock, or this one before it was set back, was
    ahead when these began.
    `expect` as in `set_route`, also without a route: the verdict was read under the route of that version.
    """
    with db.write() as connection:
        db.lock(connection, "decisions")  # before the holds are read
        approval = _after_holds(connection, approval)
        document = {each.name: getattr(approval, each.name) for each in fields(approval)}
        written = json.dumps(document, sort_keys=True, allow_nan=False)
        append_within(
            db,
            connection,
            at=approval.at,
            actor=approval.actor,
            action="approve",
            model=approval.model,
            tier=approval.tier,
            detail=json.loads(written),
        )
        insert = db.insert(approvals).values(model=approval.model, tier=approval.tier, document=written)
        connection.execute(
            insert.on_conflict_do_update(
                index_elements=[approvals.c.model, approvals.c.tier],
                set_={"document": insert.excluded.document},
            )
        )
        end_holds_within(
            connection,
            model=approval.model,
            tier=approval.tier,
            epoch=approval.epoch,
            kinds=(HoldKind.FROZEN,),
            at=approval.at,
        )
        if route is None:
            check_route_within(connection, approval.model, expect)
            return None
        return set_route_within(
            db,
            connection,
            route,
            at=approval.at,
            actor=approval.actor,
            action="promote",
            tier=approval.tier,
            detail={"because": "approved"},
            expect=expect,
        )


def _after_holds(connection: Connection, approval: Approval) -> Approval:
    latest = connection.execute(
        select(func.max(holds.c.at)).where(
            holds.c.model == approval.model,
            holds.c.tier == approval.tier,
            holds.c.epoch == approval.epoch,
            holds.c.ended_at.is_(None),
        )
    ).scalar()
    if not approval.override or latest is None or latest <= approval.at:
        return approval
    until = approval.expires_at
    return replace(approval, at=latest, expires_at=None if until is None else until + (latest - approval.at))


def revoke(
    db: Database,
    model: str,
    tier: str,
    *,
    at: float,
    actor: str,
    reason: str | None = None,
    route: Route | None = None,
    expect: int | None = None,
) -> bool:
    """Withdraw an approval, log it, and with `route` put that in force, in one transaction.

    False, and nothing changes, when there is none. `expect` as in `put_approval`.
    """
    with db.write() as connection:
        db.lock(connection, "decisions")
        gone = connection.execute(
            delete(approvals).where(approvals.c.model == model, approvals.c.tier == tier)
        ).rowcount
        if not gone:
            return False
        append_within(
            db,
            connection,
            at=at,
            actor=actor,
            action="revoke",
            model=model,
            tier=tier,
            detail={"reason": reason},
        )
        if route is None:
            check_route_within(connection, model, expect)
        else:
            set_route_within(
                db,
                connection,
                route,
                at=at,
                actor=actor,
                action="roll_back",
                tier=route.serving,
                detail={"because": "revoked", "reason": reason},
                expect=expect,
            )
    return True
