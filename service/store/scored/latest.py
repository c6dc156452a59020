"""When the latest pair of each tier came: how old the evidence is."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import func, select

from service.store.scored.units import Arm
from service.store.sql.database import Database
from service.store.sql.schema import units


def latest_pairs(db: Database, model: str, tiers: Iterable[str]) -> dict[str, float]:
    """Unix seconds by tier; tiers without a pair are left out.

    A question a tier: the newest entry of `units_by_time` answers it, whatever else there is.
    """
    found: dict[str, float] = {}
    with db.read() as connection:
        for tier in tiers:
            at = connection.execute(
                select(func.max(units.c.at)).where(
                    units.c.model == model, units.c.tier == tier, units.c.arm == Arm.CANDIDATE.value
                )
            ).scalar()
            if at is not None:
                found[tier] = float(at)
    return found
