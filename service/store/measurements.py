"""What load runs showed of SLO and money; a verdict takes the latest of its epoch that is not too old."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select

from service.decision.evidence import Measured, Shown
from service.decision.policy import Gate
from service.store.database import Database
from service.store.schema import measurements

MEASURED = (Gate.SLO, Gate.MONEY)
"""Gates that load runs decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What one load run showed of one gate of one tier. The baseline has some of its SLO, too."""

    model: str
    tier: str
    gate: Gate
    epoch: str
    at: float
    """Unix seconds of its end."""
    shown: Shown
    reason: str
    """One sentence with both numbers."""
    numbers: Mapping[str, Any] = field(default_factory=dict)
    """What it rests on, as JSON."""

    def __post_init__(self) -> None:
        if self.gate not in MEASURED:
            raise ValueError(f"load runs measure {' and '.join(MEASURED)}, not {self.gate}")
        if not self.reason:
            raise ValueError("a measurement needs a reason")

    @property
    def measured(self) -> Measured:
        """As the evidence has it."""
        return Measured(shown=self.shown, reason=self.reason)


def put_measurement(db: Database, measurement: Measurement) -> None:
    """Keep it; one of the same moment is replaced. ValueError when its numbers are not JSON."""
    try:
        numbers = json.dumps(dict(measurement.numbers), sort_keys=True, allow_nan=False)
    except TypeError as error:
        raise ValueError(f"the numbers of a measurement must be JSON: {error}") from error
    told = {"shown": measurement.shown, "reason": measurement.reason, "numbers": numbers}
    names = ("model", "tier", "gate", "epoch", "at")
    insert = db.insert(measurements).values({name: getattr(measurement, name) for name in names} | told)
    with db.write() as connection:
        connection.execute(
            insert.on_conflict_do_update(index_elements=list(measurements.primary_key.columns), set_=told)
        )


def latest_shown(db: Database, model: str, *, since: float) -> dict[tuple[str, str, Gate], Measured]:
    """What the last one at or after `since` showed, by tier, epoch and gate."""
    of = measurements.c
    with db.read() as connection:
        rows = connection.execute(
            select(of.tier, of.epoch, of.gate, of.shown, of.reason)
            .where(of.model == model, of.at >= since)
            .order_by(of.at)
        ).all()
    return {
        (row.tier, row.epoch, Gate(row.gate)): Measured(shown=Shown(row.shown), reason=row.reason)
        for row in rows
    }


def latest_measurement(
    db: Database, model: str, tier: str, gate: Gate, epoch: str, *, since: float
) -> Measurement | None:
    """The last one of that epoch at or after `since`, None without one."""
    with db.read() as connection:
        row = connection.execute(
            select(measurements)
            .where(
                measurements.c.model == model,
                measurements.c.tier == tier,
                measurements.c.gate == gate,
                measurements.c.epoch == epoch,
                measurements.c.at >= since,
            )
            .order_by(measurements.c.at.desc())
            .limit(1)
        ).one_or_none()
    if row is None:
        return None
    return Measurement(
        model=row.model,
        tier=row.tier,
        gate=Gate(row.gate),
        epoch=row.epoch,
        at=row.at,
        shown=Shown(row.shown),
        reason=row.reason,
        numbers=json.loads(row.numbers),
    )
