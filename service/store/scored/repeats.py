"""Requests that both arms answered twice: the energy distance of a candidate (statistics A11).

Of a sample of captures candidates are asked again (`shadow.repeats`). With the control's pair of the same
capture that makes four outcomes, of which two are the baseline's and two the candidate's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Connection, Select, String, bindparam, select

from service.decision.energy import Energy, Repeats, energy_distance
from service.store.scored.evidence import ANY_VERSION, Place, Versions
from service.store.scored.units import Arm, PairOutcome
from service.store.sql.schema import key_of, pairs, units

MOST_PAIRS = 2000
"""The latest of one ladder that are read: at every verdict, whatever was repeated before."""

EnergiesAt = Mapping[Place, Mapping[str, Energy]]
"""By place of the candidate and evaluator."""


def energies_at(
    connection: Connection,
    model: str,
    candidates: Collection[Place],
    control: Place,
    present: Versions = ANY_VERSION,
) -> EnergiesAt:
    """Of the counted repeats of these candidates; nothing for one that was not asked twice."""
    by_epoch = {(place.tier, place.epoch): place for place in candidates}
    asked = {
        "model": model,
        "tiers": sorted({tier for tier, _ in by_epoch}),
        "epochs": sorted({epoch for _, epoch in by_epoch}),
    }
    rows = [
        row
        for row in connection.execute(_REPEATED, asked).all()
        if (row.tier, row.epoch) in by_epoch and present.get(row.evaluator, row.version) == row.version
    ]
    controls = {
        key_of(row.capture_id, control.tier, control.arm, row.evaluator, row.version, control.epoch): None
        for row in rows
    }
    first = {
        (row.unit_id, row.item): (row.baseline_passed, row.candidate_passed)
        for row in (connection.execute(_CONTROLS, {"units": list(controls)}) if controls else ())
    }
    found: defaultdict[tuple[Place, str], list[Repeats]] = defaultdict(list)
    for row in rows:
        name = key_of(row.capture_id, control.tier, control.arm, row.evaluator, row.version, control.epoch)
        if (name, row.item) not in first:
            continue
        one, other = first[name, row.item]
        found[by_epoch[row.tier, row.epoch], row.evaluator].append(
            Repeats(
                conversation=row.conversation,
                baseline=(float(not one), float(not other)),
                candidate=(float(not row.baseline_passed), float(not row.candidate_passed)),
            )
        )
    told: dict[Place, dict[str, Energy]] = {place: {} for place in candidates}
    for (place, evaluator), repeats in sorted(found.items()):
        told[place][evaluator] = energy_distance(repeats)
    return told


_SCORED = pairs.c.outcome == PairOutcome.SCORED.value
_REPEATED: Select[Any] = (
    select(
        *(units.c[name] for name in ("capture_id", "tier", "epoch", "evaluator", "version", "conversation")),
        *(pairs.c[name] for name in ("item", "baseline_passed", "candidate_passed")),
    )
    .join_from(units, pairs, pairs.c.unit_id == units.c.unit_id)
    .where(
        units.c.model == bindparam("model", type_=String),
        units.c.tier.in_(bindparam("tiers", expanding=True)),
        units.c.arm == Arm.REPEAT.value,
        units.c.epoch.in_(bindparam("epochs", expanding=True)),
        units.c.counted,
        _SCORED,
    )
    .order_by(units.c.at.desc(), units.c.unit_id, pairs.c.item)
    .limit(MOST_PAIRS)
)
_CONTROLS: Select[Any] = select(
    *(pairs.c[name] for name in ("unit_id", "item", "baseline_passed", "candidate_passed"))
).where(pairs.c.unit_id.in_(bindparam("units", expanding=True)), _SCORED)
# Made once: making a statement costs more than asking it.
