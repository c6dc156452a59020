"""Everything counted about the tiers of one ladder, read at one moment in a few queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from service.decision.evidence import Coverage
from service.decision.policy import Policy
from service.store.scored.breakdown import Partitioned, suspicious_strata, tenants_at
from service.store.scored.evidence import (
    ANY_VERSION,
    Place,
    TalliesAt,
    Versions,
    overtaking_since,
    tallies_at,
)
from service.store.verdicts.coverage import coverage_at
from service.store.verdicts.ladder_facts import LadderFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderCounts:
    """By place."""

    tallies: TalliesAt
    strata: Mapping[Place, Partitioned]
    """Those that could speak against a tier."""
    tenants: Mapping[Place, Partitioned]
    """Only where the policy caps what one tenant may hold."""
    coverage: Mapping[Place, Coverage]


def read_counts(
    connection: Connection,
    model: str,
    candidates: Sequence[Place],
    control: Place,
    facts: LadderFacts,
    *,
    policy: Policy,
    universe: frozenset[str],
    present: Versions = ANY_VERSION,
) -> LadderCounts:
    """Of the candidates, and of the control the tallies alone."""
    places = [*candidates, control]
    overtook = overtaking_since(connection, model, places, facts.awaited, present)
    tenants: Mapping[Place, Partitioned] = {place: {} for place in candidates}
    if policy.tenant_share_cap is not None:
        tenants = tenants_at(connection, model, candidates, overtook, present)
    return LadderCounts(
        tallies=tallies_at(connection, model, places, overtook, present),
        strata=suspicious_strata(connection, model, candidates, policy, overtook, universe, present),
        tenants=tenants,
        coverage=coverage_at(connection, model, candidates, facts),
    )
