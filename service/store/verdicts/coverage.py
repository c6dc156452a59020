"""How the evidence is spread over the traffic: requests by stratum and tenant, as they came and count."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Text, bindparam, cast, func, select

from service.decision.evidence import Coverage
from service.store.scored.evidence import Place, at_places, within
from service.store.scored.units import Arm, Kind
from service.store.sql.database import Database
from service.store.sql.tally_tables import stratum_sums, tenant_tallies
from service.store.verdicts.ladder_facts import LadderFacts, read_facts
from service.store.verdicts.traffic_since import OTHERS, since_began
from service.strata import TENANT


def read_coverage(db: Database, model: str, tier: str, epoch: str) -> Coverage:
    """Requests by stratum, as they came and as they count; see `coverage_at`."""
    place = Place(tier, Arm.CANDIDATE.value, epoch)
    with db.read() as connection:
        return coverage_at(connection, model, [place], read_facts(connection, model, [epoch]))[place]


def coverage_at(
    connection: Connection, model: str, places: Sequence[Place], facts: LadderFacts
) -> dict[Place, Coverage]:
    """Requests by stratum, as they came since the epoch began and as they count.

    Crossed strata are compared with all traffic, which proxies count; those that only a worker can tell, and
    tenants, with all captures that were taken up. A request counts under several evaluators, and under recall
    with a pair for each needle: were all of these added up, long contexts would crowd out the rest. So a
    stratum has as many as its busiest evaluator. Of a closed conversation every request counts, or the few
    first turns of each would crowd out the many late ones.
    """
    traffic = {**facts.traffic, **facts.taken}
    evidence = _units_by_tenant(connection, model, places, facts.taken)
    for place, counts in _covered(connection, model, places):
        if place in evidence:
            evidence[place].update(counts)
    before = facts.traffic_before
    return {
        place: Coverage(
            traffic=since_began(traffic, before.get((place.tier, place.epoch), {}), counts), evidence=counts
        )
        for place, counts in evidence.items()
    }


def _covered(
    connection: Connection, model: str, places: Sequence[Place]
) -> Iterator[tuple[Place, dict[str, int]]]:
    """Each stratum with the requests of its busiest evaluator, where any count."""
    asked = at_places(model, places)
    if connection.dialect.name == "postgresql":
        # A row for each place: hundreds of them would take longer to send and to receive than to find.
        for tier, arm, epoch, counts in connection.execute(_COVERED_BY_PLACE, asked):
            yield Place(tier, arm, epoch), json.loads(counts)
        return
    found: defaultdict[tuple[str, str, str], dict[str, int]] = defaultdict(dict)
    for tier, arm, epoch, stratum, number in connection.execute(_COVERED, asked).all():
        found[tier, arm, epoch][stratum] = number
    for parts, counts in found.items():
        yield Place(*parts), counts


_COVERED: Select[Any] = (
    select(
        *(stratum_sums.c[name] for name in (*Place._fields, "stratum")),
        func.max(stratum_sums.c.units + stratum_sums.c.further).label("number"),
    )
    .where(within(stratum_sums))
    .group_by(*(stratum_sums.c[name] for name in (*Place._fields, "stratum")))
    .having(func.max(stratum_sums.c.units + stratum_sums.c.further) > 0)
)


def _by_place() -> Select[Any]:
    covered = _COVERED.subquery()
    place = [covered.c[name] for name in Place._fields]
    counts = func.json_object_agg(covered.c.stratum, covered.c.number)
    return select(*place, cast(counts, Text)).group_by(*place)


_COVERED_BY_PLACE = _by_place()


def _units_by_tenant(
    connection: Connection, model: str, places: Sequence[Place], taken: Mapping[str, int]
) -> dict[Place, dict[str, int]]:
    """What counts of each tenant in `taken`, by its busiest evaluator."""
    found: dict[Place, dict[str, int]] = {place: {} for place in places}
    named = [name.partition("=")[2] for name in taken if name.startswith(f"{TENANT}=") and name != OTHERS]
    asked = {**at_places(model, places), "tenants": named}
    rows = [
        (Place(tier, arm, epoch), f"{TENANT}={tenant}", number)
        for tier, arm, epoch, tenant, number in connection.execute(_OF_TENANTS, asked).all()
    ]
    if OTHERS in taken:
        others = connection.execute(_OF_OTHERS, asked).all()
        rows += [(Place(tier, arm, epoch), OTHERS, number) for tier, arm, epoch, number in others]
    for place, name, number in rows:
        if number and place in found:
            found[place][name] = int(number)
    return found


def _busiest(which: ColumnElement[bool], *apart: ColumnElement[Any]) -> Select[Any]:
    """Requests that count at each place, of the busiest evaluator: one a conversation, and further ones."""
    place = [tenant_tallies.c[name] for name in Place._fields]
    requests = tenant_tallies.c.kind.in_((Kind.UNIT.value, Kind.FURTHER.value))
    by = (*place, *apart)
    number = func.sum(tenant_tallies.c.amount).label("number")
    summed = (
        select(*by, number)
        .where(within(tenant_tallies), requests, which)
        .group_by(*by, tenant_tallies.c.evaluator)
    ).subquery()
    kept = [summed.c[column.name] for column in by]
    return select(*kept, func.max(summed.c.number)).group_by(*kept)


_NAMED = tenant_tallies.c.tenant.in_(bindparam("tenants", expanding=True))
_OF_TENANTS = _busiest(_NAMED, tenant_tallies.c.tenant)
_OF_OTHERS = _busiest(~_NAMED)
