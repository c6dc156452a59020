"""What an admin decided about a tier in one epoch: to skip it, or to restore its alpha (statistics A4, A5).

Each holds for the epoch it was decided in, as evidence does: another epoch is another tier, and coming back
to the epoch comes back to the decision. The latest of each kind is kept; all of them are in the decision log,
each in one transaction with what it changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import ColumnElement, Connection, delete, func, select

from service.store.decided.decisions import append_within
from service.store.sql.database import Database
from service.store.sql.schema import epochs, interventions


class Kind(StrEnum):
    SKIP = "skip"
    """The tiers above do without this one."""
    RESTORE_ALPHA = "restore_alpha"
    """Epochs before this one are no attempts any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervention:
    """One decision of an admin."""

    epoch: str
    through: int
    """The highest attempt that the tier had then; 0 for none."""
    reason: str
    actor: str
    at: float
    """Unix seconds."""


Interventions = Mapping[tuple[str, Kind], Intervention]
"""By tier and kind."""


def interventions_of(connection: Connection, model: str) -> Interventions:
    """All that were decided for a model, those of other epochs as well."""
    rows = connection.execute(select(interventions).where(interventions.c.model == model))
    return {
        (row.tier, Kind(row.kind)): Intervention(
            epoch=row.epoch, through=row.through, reason=row.reason, actor=row.actor, at=row.at
        )
        for row in rows
    }


def intervene(
    db: Database, kind: Kind, *, model: str, tier: str, epoch: str, reason: str, actor: str, at: float
) -> bool:
    """Decide and log it; False, and nothing changes, when it was decided for this epoch already."""
    with db.write() as connection:
        db.lock(connection, "decisions")
        db.lock(connection, f"epochs of {model}")
        known = interventions_of(connection, model).get((tier, kind))
        if known is not None and known.epoch == epoch:
            return False
        of_tier = (epochs.c.model == model) & (epochs.c.tier == tier)
        through = connection.execute(select(func.max(epochs.c.attempt)).where(of_tier)).scalar() or 0
        insert = db.insert(interventions).values(
            model=model,
            tier=tier,
            kind=kind.value,
            epoch=epoch,
            through=through,
            reason=reason,
            actor=actor,
            at=at,
        )
        connection.execute(
            insert.on_conflict_do_update(
                index_elements=list(interventions.primary_key.columns),
                set_={name: insert.excluded[name] for name in ("epoch", "through", "reason", "actor", "at")},
            )
        )
        append_within(
            db,
            connection,
            at=at,
            actor=actor,
            action=kind.value,
            model=model,
            tier=tier,
            detail={"epoch": epoch, "reason": reason, "attempts": through},
        )
    return True


def undo_skip(
    db: Database, *, model: str, tier: str, epoch: str, reason: str | None, actor: str, at: float
) -> bool:
    """Let the tiers above wait for this one again, and log it; False when it is not skipped in this epoch."""
    with db.write() as connection:
        db.lock(connection, "decisions")
        undone = connection.execute(delete(interventions).where(_skip(model, tier, epoch))).rowcount
        if undone:
            append_within(
                db,
                connection,
                at=at,
                actor=actor,
                action="skip_undone",
                model=model,
                tier=tier,
                detail={"epoch": epoch, "reason": reason},
            )
    return bool(undone)


def _skip(model: str, tier: str, epoch: str) -> ColumnElement[bool]:
    return (
        (interventions.c.model == model)
        & (interventions.c.tier == tier)
        & (interventions.c.kind == Kind.SKIP.value)
        & (interventions.c.epoch == epoch)
    )
