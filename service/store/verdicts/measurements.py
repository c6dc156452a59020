"""What load runs showed of SLO and money; a verdict takes the latest of its epoch that is not too old.

Who makes a load run, at its end and once:

    held = held_to(db, policy, evidence, Gate.SLO, at=at)
    shown = slo_gate(blocks, alpha=held.alpha, terms=held.terms)
    put_measurement(db, Measurement.of(shown, evidence, Gate.SLO, at=at, run=held.run))

`evidence` is that of the tier's rung in `read_standing`; the baseline's own SLO (`baseline_slo`) belongs to
`Evidence(model=..., tier=baseline, epoch=question.epoch_of(model, baseline))`.

`at` is the end of the run as it was written down first: asked again after a worker died, the run has the same
number and replaces itself. A run that was never made, since its budget could not reach the power, has no
number and spends nothing: `run=None`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from sqlalchemy import Row, func, select

from service.decision.decide import limits_of
from service.decision.evidence import Evidence, Measured, Shown
from service.decision.policy import Gate, Policy
from service.decision.terms import Terms
from service.decision.thresholds import run_alpha
from service.store.sql.database import Database
from service.store.sql.schema import measurements

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
    run: int | None = None
    """j: which run of the tier in this epoch; None when nothing was looked at."""

    def __post_init__(self) -> None:
        if self.gate not in MEASURED:
            raise ValueError(f"load runs measure {' and '.join(MEASURED)}, not {self.gate}")
        if not self.reason:
            raise ValueError("a measurement needs a reason")
        if self.run is not None and self.run < 1:
            raise ValueError(f"runs count from 1, got {self.run}")

    @classmethod
    def of(cls, found: Measured, evidence: Evidence, gate: Gate, *, at: float, run: int | None) -> Self:
        """What a gate says of a run that ended at `at`, of the tier and epoch of the evidence."""
        return cls(
            model=evidence.model,
            tier=evidence.tier,
            gate=gate,
            epoch=evidence.epoch,
            at=at,
            shown=found.shown,
            reason=found.reason,
            numbers=found.numbers,
            run=run,
        )

    def measured(self, *, now: float) -> Measured:
        """As the evidence has it."""
        return Measured(
            shown=self.shown,
            reason=self.reason,
            numbers=self.numbers,
            run=self.run,
            age_seconds=max(0.0, now - self.at),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldTo:
    """What a load run must show, fixed before anybody looks at it."""

    run: int
    """j, counted from 1."""
    alpha: float
    """alpha_j; 0 when no error rate is left for it."""
    terms: Terms


def held_to(db: Database, policy: Policy, evidence: Evidence, gate: Gate, *, at: float) -> HeldTo:
    """What the run that ends at `at` is held to: the j-th of the tier in the epoch of the evidence (A5)."""
    run = 1 + runs_before(db, evidence.model, evidence.tier, gate, evidence.epoch, at=at)
    return HeldTo(run=run, alpha=run_alpha(limits_of(policy, evidence), run), terms=policy.load_runs)


def runs_before(db: Database, model: str, tier: str, gate: Gate, epoch: str, *, at: float) -> int:
    """Load runs of that epoch that ended before and were looked at."""
    of = measurements.c
    with db.read() as connection:
        found = connection.execute(
            select(func.count())
            .select_from(measurements)
            .where(of.model == model, of.tier == tier, of.gate == gate, of.epoch == epoch)
            .where(of.at < at, of.run.is_not(None))
        )
        return int(found.scalar_one())


def put_measurement(db: Database, measurement: Measurement) -> None:
    """Keep it; one of the same moment is replaced. ValueError when its numbers are not JSON."""
    try:
        numbers = json.dumps(dict(measurement.numbers), sort_keys=True, allow_nan=False)
    except TypeError as error:
        raise ValueError(f"the numbers of a measurement must be JSON: {error}") from error
    told = {
        "shown": measurement.shown,
        "reason": measurement.reason,
        "numbers": numbers,
        "run": measurement.run,
    }
    names = ("model", "tier", "gate", "epoch", "at")
    insert = db.insert(measurements).values({name: getattr(measurement, name) for name in names} | told)
    with db.write() as connection:
        connection.execute(
            insert.on_conflict_do_update(index_elements=list(measurements.primary_key.columns), set_=told)
        )


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
    return None if row is None else _measurement(row)


def _measurement(row: Row[Any]) -> Measurement:
    return Measurement(
        model=row.model,
        tier=row.tier,
        gate=Gate(row.gate),
        epoch=row.epoch,
        at=row.at,
        shown=Shown(row.shown),
        reason=row.reason,
        numbers=json.loads(row.numbers),
        run=row.run,
    )
