"""Evidence by stratum and by tenant: what could be worse than the whole, and what is missing from it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select

from service.decision.evidence import Coverage
from service.decision.policy import Criterion, Hypothesis
from service.decision.tally import Tally
from service.store.counters import Count, ledger_key, split_ledger_key
from service.store.counting import DRIFT_UNIT, Counts, Sums
from service.store.database import Database
from service.store.evidence import Place, TallyCount, overtaking, tally_of, within
from service.store.schema import ledger_counters
from service.store.tally_tables import stratum_sums, stratum_tallies, takings, tenant_tallies
from service.store.units import Arm, Kind
from service.strata import TENANT, UNIVERSE

Partitioned = Mapping[str, Mapping[str, Tally]]
"""Tallies by evaluator, and within it by stratum or tenant."""
MOST_TENANTS = 50
"""Tenants that are told apart where coverage is concerned: no more can hold 2 % of the traffic each."""
_OTHERS = f"{TENANT}=(others)"


def suspicious_strata(
    connection: Connection,
    model: str,
    places: Collection[Place],
    criteria: Iterable[Criterion],
    ahead: Counts,
    universe: Collection[str] = UNIVERSE,
) -> dict[Place, dict[str, dict[str, Tally]]]:
    """Strata whose mean difference is beyond the margin: E_HARM of every other is at most 1, exactly.

    Sums in 2^-32 are rounded, by less than one for each unit: strata that close to the margin are read as
    well. So are those from which something is taken off again, since sums do not know of that.
    """
    touched = {row.stratum for row in ahead.strata}
    key = (*Place._fields, "evaluator", "stratum")
    columns = [stratum_sums.c[name] for name in key]
    found = (
        select(*columns)
        .where(stratum_sums.c.model == model, within(stratum_sums, places), _among(universe))
        .group_by(*columns)
        .having(or_(stratum_sums.c.stratum.in_(touched), _beyond(criteria)))
        .subquery()
    )
    at = and_(stratum_tallies.c.model == model, *(stratum_tallies.c[name] == found.c[name] for name in key))
    counted = (*key, *TallyCount._fields)
    rows = connection.execute(select(*(stratum_tallies.c[name] for name in counted)).join(found, at)).all()
    counts: defaultdict[tuple[str, ...], list[TallyCount]] = defaultdict(list)
    for row in rows:
        counts[tuple(row[:5])].append(TallyCount(*row[5:]))
    for each, amount in ahead.strata.items():
        at_key = (each.tier, each.arm, each.epoch, each.evaluator, each.stratum)
        if at_key in counts:
            taken = TallyCount(each.kind, each.reason, each.pairs, each.harm, each.benefit, amount)
            counts[at_key].append(taken)
    strata: dict[Place, dict[str, dict[str, Tally]]] = {place: {} for place in places}
    for (tier, arm, epoch, evaluator, stratum), listed in counts.items():
        strata[Place(tier, arm, epoch)].setdefault(evaluator, {})[stratum] = tally_of(listed)
    return strata


def _among(universe: Collection[str]) -> ColumnElement[bool]:
    return stratum_sums.c.stratum.in_(sorted(universe))


def _beyond(criteria: Iterable[Criterion]) -> ColumnElement[bool]:
    """Whether the mean difference of a stratum is beyond the margin; either way, if either is harm."""
    drift, number = func.sum(stratum_sums.c.drift), func.sum(stratum_sums.c.units)
    conditions = []
    for criterion in criteria:
        most = number * (int(criterion.margin * DRIFT_UNIT) - 1)
        beyond = drift > most
        if criterion.hypothesis is Hypothesis.EQUIVALENT:
            beyond = or_(beyond, -drift > most)
        conditions.append(and_(stratum_sums.c.evaluator == criterion.evaluator, beyond))
    return or_(False, *conditions)


def read_coverage(db: Database, model: str, tier: str, epoch: str) -> Coverage:
    """Requests by stratum, as they came and as they count; see `coverage_at`."""
    place = Place(tier, Arm.CANDIDATE.value, epoch)
    with db.read() as connection:
        return coverage_at(connection, model, [place])[place]


def coverage_at(connection: Connection, model: str, places: Collection[Place]) -> dict[Place, Coverage]:
    """Requests by stratum, as they came and as they count.

    Crossed strata are compared with all traffic, which proxies count; those that only a worker can tell, and
    tenants, with all captures that were taken up. A request counts under several evaluators, and under recall
    with a pair for each needle: were all of these added up, long contexts would crowd out the rest. So a
    stratum has as many as its busiest evaluator.
    """
    crossed, taken = _traffic(connection, model), _taken(connection, model)
    counted = _units_by_stratum(connection, model, places)
    tenants = _units_by_tenant(connection, model, places, taken)
    return {
        place: Coverage(traffic={**crossed, **taken}, evidence={**counted[place], **tenants[place]})
        for place in places
    }


def _traffic(connection: Connection, model: str) -> dict[str, int]:
    """Eligible requests by crossed stratum, from the mirror ledger."""
    prefix = ledger_key(Count.TRAFFIC, model, "-").removesuffix("-")
    seen = connection.execute(
        select(ledger_counters.c.counter, func.sum(ledger_counters.c.amount))
        .where(ledger_counters.c.counter.startswith(prefix, autoescape=True))
        .group_by(ledger_counters.c.counter)
    )
    return {split_ledger_key(counter).detail: int(amount) for counter, amount in seen}


def _taken(connection: Connection, model: str) -> dict[str, int]:
    """Captures taken up, by what a worker tells of them; the smallest tenants as one."""
    of_tenant = takings.c.stratum.startswith(f"{TENANT}=", autoescape=True)
    columns = (takings.c.stratum, takings.c.amount)
    chosen = select(*columns).where(takings.c.model == model)
    found = {name: int(amount) for name, amount in connection.execute(chosen.where(~of_tenant))}
    largest = chosen.where(of_tenant).order_by(takings.c.amount.desc(), takings.c.stratum)
    listed = connection.execute(largest.limit(MOST_TENANTS + 1)).all()
    tenants = {name: int(amount) for name, amount in listed[:MOST_TENANTS]}
    if len(listed) > MOST_TENANTS:
        every = select(func.sum(takings.c.amount)).where(takings.c.model == model, of_tenant)
        tenants[_OTHERS] = int(connection.execute(every).scalar_one()) - sum(tenants.values())
    return {**found, **tenants}


def _units_by_stratum(
    connection: Connection, model: str, places: Collection[Place]
) -> dict[Place, dict[str, int]]:
    by_evaluator = [stratum_sums.c[name] for name in (*Place._fields, "evaluator", "stratum")]
    summed = (
        select(*by_evaluator, func.sum(stratum_sums.c.units).label("units"))
        .where(stratum_sums.c.model == model, within(stratum_sums, places))
        .group_by(*by_evaluator)
        .subquery()
    )
    key = [summed.c[name] for name in (*Place._fields, "stratum")]
    rows = connection.execute(select(*key, func.max(summed.c.units).label("amount")).group_by(*key))
    found: dict[Place, dict[str, int]] = {place: {} for place in places}
    for row in rows:
        if row.amount:
            found[_place(row)][row.stratum] = int(row.amount)
    return found


def _units_by_tenant(
    connection: Connection, model: str, places: Collection[Place], taken: Mapping[str, int]
) -> dict[Place, dict[str, int]]:
    """What counts of each tenant in `taken`."""
    named = [name.partition("=")[2] for name in taken if name.startswith(f"{TENANT}=") and name != _OTHERS]
    key = [tenant_tallies.c[name] for name in (*Place._fields, "evaluator", "tenant")]
    amount = func.sum(tenant_tallies.c.amount).label("amount")
    chosen = select(*key[:4], amount).where(
        tenant_tallies.c.model == model, within(tenant_tallies, places), tenant_tallies.c.kind == Kind.UNIT
    )
    rows = connection.execute(
        select(*key, amount)
        .where(
            tenant_tallies.c.model == model,
            within(tenant_tallies, places),
            tenant_tallies.c.kind == Kind.UNIT,
            tenant_tallies.c.tenant.in_(named),
        )
        .group_by(*key)
    )
    found: dict[Place, Counter[str]] = {place: Counter() for place in places}
    by_evaluator: Counter[tuple[Place, str]] = Counter()
    for row in rows:
        place, name = _place(row), f"{TENANT}={row.tenant}"
        found[place][name] = max(found[place][name], int(row.amount))
        by_evaluator[place, row.evaluator] += int(row.amount)
    if _OTHERS in taken:
        for row in connection.execute(chosen.group_by(*key[:4])):
            place = _place(row)
            rest = int(row.amount) - by_evaluator[place, row.evaluator]
            found[place][_OTHERS] = max(found[place][_OTHERS], rest)
    return {place: {name: number for name, number in each.items() if number} for place, each in found.items()}


def _place(row: Any) -> Place:
    return Place(row.tier, row.arm, row.epoch)


def read_tenants(db: Database, model: str, tier: str, epoch: str) -> Partitioned:
    """The evidence on a candidate by evaluator and tenant, without what overtook."""
    place = Place(tier, Arm.CANDIDATE.value, epoch)
    with db.read() as connection:
        return tenants_at(connection, model, [place], overtaking(connection, model, [place]))[place]


def tenants_at(
    connection: Connection, model: str, places: Collection[Place], ahead: Counts
) -> dict[Place, dict[str, dict[str, Tally]]]:
    """The same for a whole ladder."""
    counted = (*Place._fields, "evaluator", "tenant", *TallyCount._fields)
    rows = connection.execute(
        select(*(tenant_tallies.c[name] for name in counted)).where(
            tenant_tallies.c.model == model, within(tenant_tallies, places)
        )
    ).all()
    counts: defaultdict[tuple[str, ...], list[TallyCount]] = defaultdict(list)
    for row in rows:
        counts[tuple(row[:5])].append(TallyCount(*row[5:]))
    for each, amount in ahead.tenants.items():
        taken = TallyCount(each.kind, each.reason, each.pairs, each.harm, each.benefit, amount)
        counts[each.tier, each.arm, each.epoch, each.evaluator, each.tenant].append(taken)
    found: dict[Place, dict[str, dict[str, Tally]]] = {place: {} for place in places}
    for (tier, arm, epoch, evaluator, tenant), listed in sorted(counts.items()):
        found[Place(tier, arm, epoch)].setdefault(evaluator, {})[tenant] = tally_of(listed)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class StratumStanding:
    """One criterion in one stratum, by numbers: a field of the heat map."""

    evaluator: str
    stratum: str
    sums: Sums = field(default_factory=Sums)

    @property
    def estimate(self) -> float | None:
        """Mean difference of the units, None without any; positive is worse."""
        return self.sums.drift / DRIFT_UNIT / self.sums.units if self.sums.units else None


def read_strata(
    db: Database, model: str, tier: str, epoch: str, arm: str = Arm.CANDIDATE
) -> list[StratumStanding]:
    """Every stratum that was met, by evaluator, in the order of their names; without what overtook."""
    place = Place(tier, Arm(arm).value, epoch)
    with db.read() as connection:
        rows = connection.execute(
            select(stratum_sums).where(stratum_sums.c.model == model, within(stratum_sums, [place]))
        ).mappings()
        found: dict[tuple[str, str], Sums] = {}
        for row in rows:
            key = (row["evaluator"], row["stratum"])
            sums = Sums(*(int(row[name]) for name in Sums._fields))
            found[key] = found.get(key, Sums()).plus(sums)
        for each, sums in overtaking(connection, model, [place]).sums.items():
            key = (each.evaluator, each.stratum)
            found[key] = found.get(key, Sums()).plus(sums)
    return [
        StratumStanding(evaluator=evaluator, stratum=stratum, sums=sums)
        for (evaluator, stratum), sums in sorted(found.items())
    ]
