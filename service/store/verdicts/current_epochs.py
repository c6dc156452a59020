"""The epoch that evidence belongs to now: what the configuration declares, and what engines turned out to be.

The one place where both are put together (statistics A5). While the baseline or the tier is unsettled, pairs
belong to no epoch: they are written down under `NO_EPOCH`, where they cost no epoch its evidence.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from sqlalchemy import select

from service.decision.epoch import epoch_id
from service.decision.evidence import Attribution
from service.engines.attribution import compare
from service.engines.facts import EngineFacts
from service.engines.settling import Settlement
from service.fleet import Ladder
from service.store.sql.database import Database
from service.store.sql.engine_tables import epoch_facts
from service.store.verdicts.epochs import epochs_of
from service.store.verdicts.observations import TierKey, read_settlements

NO_EPOCH = "unsettled"
"""In place of an epoch's hash, of pairs that belong to none."""

Declared = Callable[[str, str], Mapping[str, object]]
"""What the configuration says of (model, tier): recipe, policy, evaluators."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentEpochs:
    """The epochs of one moment, by (model, tier)."""

    epoch_of: Callable[[str, str], str]
    unsettled_of: Callable[[str, str], str] = lambda model, tier: ""
    """Why pairs belong to no epoch at the moment; empty when they do."""
    since_of: Callable[[str, str], float] = lambda model, tier: 0.0
    """Unix seconds; what the tier answered clients before may have come from another artifact."""
    attribution_of: Callable[[str, str], Attribution | None] = lambda model, tier: None
    """What differs between the tier and its baseline besides the precision; None when that is not told."""


def read_epochs(db: Database, ladders: Mapping[str, Ladder], declared: Declared) -> CurrentEpochs:
    """As they are now, in one reading; what is asked of them later is answered from that."""
    return _epochs(read_settlements(db), ladders, _hashing(declared))


def live_epochs(db: Database, ladders: Mapping[str, Ladder], declared: Declared) -> CurrentEpochs:
    """As they are whenever they are asked for; `declared` must not change. For who asks over hours."""
    hashed = _hashing(declared)

    def now() -> CurrentEpochs:
        return _epochs(read_settlements(db), ladders, hashed)

    return CurrentEpochs(
        epoch_of=lambda model, tier: now().epoch_of(model, tier),
        unsettled_of=lambda model, tier: now().unsettled_of(model, tier),
        since_of=lambda model, tier: now().since_of(model, tier),
        attribution_of=lambda model, tier: now().attribution_of(model, tier),
    )


Hashed = Callable[[str, str, EngineFacts | None, EngineFacts | None], str]
"""The epoch of (model, tier) with these engines behind baseline and tier."""


def _hashing(declared: Declared) -> Hashed:
    @lru_cache(maxsize=1024)
    def hashed(model: str, tier: str, baseline: EngineFacts | None, engine: EngineFacts | None) -> str:
        return epoch_id(facts_of(declared(model, tier), baseline, engine))

    return hashed


def _epochs(
    settlements: Mapping[TierKey, Settlement], ladders: Mapping[str, Ladder], hashed: Hashed
) -> CurrentEpochs:
    def standing(model: str, tier: str) -> tuple[Settlement, Settlement]:
        unheard = Settlement()
        baseline = ladders[model].baseline.name
        return settlements.get((model, baseline), unheard), settlements.get((model, tier), unheard)

    def epoch_of(model: str, tier: str) -> str:
        baseline, own = standing(model, tier)
        return hashed(model, tier, baseline.settled, own.settled)

    def unsettled_of(model: str, tier: str) -> str:
        baseline, own = standing(model, tier)
        told = {ladders[model].baseline.name: baseline.unsettled} | {tier: own.unsettled}
        return "; ".join(f"{name}: {why}" for name, why in told.items() if why)

    def attribution_of(model: str, tier: str) -> Attribution | None:
        baseline, candidate = standing(model, tier)
        found = compare(baseline.settled, candidate.settled)
        unsettled = unsettled_of(model, tier)
        return replace(found or Attribution(), unsettled=unsettled) if unsettled else found

    return CurrentEpochs(
        epoch_of=epoch_of,
        unsettled_of=unsettled_of,
        since_of=lambda model, tier: standing(model, tier)[1].settled_since or 0.0,
        attribution_of=attribution_of,
    )


def facts_of(
    declared: Mapping[str, object], baseline: EngineFacts | None, engine: EngineFacts | None
) -> dict[str, object]:
    """All that an epoch's hash is made of; engines that tell nothing leave it to what is declared."""
    told = {"baseline": baseline, "tier": engine}
    engines = {name: facts.identity for name, facts in told.items() if facts is not None}
    return {**declared, "engines": engines} if engines else dict(declared)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownEpoch:
    """An epoch, and what it was."""

    epoch: str
    facts: Mapping[str, object]
    first_seen: float
    """Unix seconds."""
    attempt: int | None = None
    """What it counts as, once it reached the minimum of pairs."""


def record_epochs(db: Database, ladders: Mapping[str, Ladder], declared: Declared, *, now: float) -> int:
    """Write down the facts of epochs not known yet, of tiers that are settled; how many these were."""
    settlements = read_settlements(db)
    rows: dict[tuple[str, str, str], dict[str, object]] = {}
    for model, ladder in ladders.items():
        baseline = settlements.get((model, ladder.baseline.name), Settlement())
        for tier in ladder.tiers:
            settled = settlements.get((model, tier.name), Settlement())
            if baseline.unsettled or settled.unsettled:
                continue
            facts = facts_of(declared(model, tier.name), baseline.settled, settled.settled)
            epoch = epoch_id(facts)
            rows[model, tier.name, epoch] = {
                "model": model,
                "tier": tier.name,
                "epoch": epoch,
                "facts": json.dumps(facts, sort_keys=True),
                "first_seen": now,
            }
    with db.read() as connection:
        columns = epoch_facts.c.model, epoch_facts.c.tier, epoch_facts.c.epoch
        known = {(row.model, row.tier, row.epoch) for row in connection.execute(select(*columns))}
    fresh = [row for key, row in sorted(rows.items()) if key not in known]
    if fresh:
        with db.write() as connection:
            connection.execute(db.insert(epoch_facts).on_conflict_do_nothing(), fresh)
    return len(fresh)


def known_epochs(db: Database, model: str, tier: str) -> list[KnownEpoch]:
    """Every epoch of a tier that was ever seen, the latest first."""
    mine = (epoch_facts.c.model == model) & (epoch_facts.c.tier == tier)
    with db.one_moment() as connection:
        rows = connection.execute(
            select(epoch_facts).where(mine).order_by(epoch_facts.c.first_seen.desc(), epoch_facts.c.epoch)
        ).all()
        numbered = epochs_of(connection, model)
    return [
        KnownEpoch(
            epoch=row.epoch,
            facts=json.loads(row.facts),
            first_seen=row.first_seen,
            attempt=(numbered.attempt(tier, row.epoch) if (tier, row.epoch) in numbered.attempts else None),
        )
        for row in rows
    ]
