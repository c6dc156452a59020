"""How the evidence is spread over the traffic: requests by stratum and tenant, as they came and count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Select, bindparam, func, select

from service.decision.evidence import Coverage
from service.store.database import Database
from service.store.evidence import Place, at_places, within
from service.store.ladder_facts import OTHERS, LadderFacts, read_facts
from service.store.tally_tables import stratum_sums, tenant_tallies
from service.store.units import Arm, Kind
from service.strata import TENANT


def read_coverage(db: Database, model: str, tier: str, epoch: str) -> Coverage:
    """Requests by stratum, as they came and as they count; see `coverage_at`."""
    place = Place(tier, Arm.CANDIDATE.value, epoch)
    with db.read() as connection:
        return coverage_at(connection, model, [place], read_facts(connection, model))[place]


def coverage_at(
    connection: Connection, model: str, places: Sequence[Place], facts: LadderFacts
) -> dict[Place, Coverage]:
    """Requests by stratum, as they came and as they count.

    Crossed strata are compared with all traffic, which proxies count; those that only a worker can tell, and
    tenants, with all captures that were taken up. A request counts under several evaluators, and under recall
    with a pair for each needle: were all of these added up, long contexts would crowd out the rest. So a
    stratum has as many as its busiest evaluator. Of a closed conversation every request counts, or the few
    first turns of each would crowd out the many late ones.
    """
    traffic = {**facts.traffic, **facts.taken}
    evidence = _units_by_tenant(connection, model, places, facts.taken)
    rows = connection.execute(_COVERED, at_places(model, places)).all()
    for tier, arm, epoch, stratum, number in rows:
        if number and (place := Place(tier, arm, epoch)) in evidence:
            evidence[place][stratum] = int(number)
    return {place: Coverage(traffic=traffic, evidence=evidence[place]) for place in places}


_COVERED: Select[Any] = (
    select(
        *(stratum_sums.c[name] for name in (*Place._fields, "stratum")),
        func.max(stratum_sums.c.units + stratum_sums.c.further),
    )
    .where(within(stratum_sums))
    .group_by(*(stratum_sums.c[name] for name in (*Place._fields, "stratum")))
)


def _units_by_tenant(
    connection: Connection, model: str, places: Sequence[Place], taken: Mapping[str, int]
) -> dict[Place, dict[str, int]]:
    """What counts of each tenant in `taken`."""
    found: dict[Place, dict[str, int]] = {place: {} for place in places}
    named = [name.partition("=")[2] for name in taken if name.startswith(f"{TENANT}=") and name != OTHERS]
    asked = at_places(model, places)
    by_evaluator: Counter[tuple[Place, str]] = Counter()
    rows = connection.execute(_OF_TENANTS, {**asked, "tenants": named}).all()
    for tier, arm, epoch, evaluator, tenant, number in rows:
        place, name = Place(tier, arm, epoch), f"{TENANT}={tenant}"
        if place not in found:
            continue
        if number:
            found[place][name] = max(found[place].get(name, 0), int(number))
        by_evaluator[place, evaluator] += int(number)
    if OTHERS in taken:
        for tier, arm, epoch, evaluator, number in connection.execute(_OF_ALL_TENANTS, asked):
            place = Place(tier, arm, epoch)
            rest = int(number) - by_evaluator[place, evaluator]
            if rest and place in found:
                found[place][OTHERS] = max(found[place].get(OTHERS, 0), rest)
    return found


_REQUESTS = (Kind.UNIT.value, Kind.FURTHER.value)
"""Kinds that add up to the requests that count: one a conversation, and its further ones."""
_BY_EVALUATOR = tuple(tenant_tallies.c[name] for name in (*Place._fields, "evaluator"))
_OF_ALL_TENANTS: Select[Any] = (
    select(*_BY_EVALUATOR, func.sum(tenant_tallies.c.amount))
    .where(within(tenant_tallies), tenant_tallies.c.kind.in_(_REQUESTS))
    .group_by(*_BY_EVALUATOR)
)
_OF_TENANTS: Select[Any] = (
    select(*_BY_EVALUATOR, tenant_tallies.c.tenant, func.sum(tenant_tallies.c.amount))
    .where(
        within(tenant_tallies),
        tenant_tallies.c.kind.in_(_REQUESTS),
        tenant_tallies.c.tenant.in_(bindparam("tenants", expanding=True)),
    )
    .group_by(*_BY_EVALUATOR, tenant_tallies.c.tenant)
)
