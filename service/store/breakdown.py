"""Evidence by stratum and by tenant: what could be worse than the whole, and what is missing from it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    String,
    and_,
    bindparam,
    func,
    or_,
    select,
)

from service.decision.eprocess import H5
from service.decision.evidence import Coverage
from service.decision.policy import Hypothesis, Policy
from service.decision.tally import Tally
from service.store.counters import Count, ledger_key, split_ledger_key
from service.store.counting import DRIFT_UNIT, Counts, Sums
from service.store.database import Database
from service.store.evidence import (
    ANY_VERSION,
    Conversations,
    Place,
    TallyCount,
    Versions,
    at_places,
    overtaking,
    tally_of,
    within,
)
from service.store.schema import ledger_counters
from service.store.tally_tables import stratum_sums, stratum_tallies, takings, tenant_tallies
from service.store.units import Arm, Kind
from service.strata import TENANT, UNIVERSE

Partitioned = Mapping[str, Mapping[str, Tally]]
"""Tallies by evaluator, and within it by stratum or tenant."""
MOST_TENANTS = 50
"""Tenants that are told apart where coverage is concerned: no more can hold 2 % of the traffic each."""
LEAST_EXCESS = 3.0
"""Units of harm beyond the margin with which a stratum is worth a look."""
_OTHERS = f"{TENANT}=(others)"


def suspicious_strata(
    connection: Connection,
    model: str,
    places: Sequence[Place],
    policy: Policy,
    overtook: Conversations,
    universe: frozenset[str] = UNIVERSE,
    present: Versions = ANY_VERSION,
) -> dict[Place, dict[str, dict[str, Tally]]]:
    """Strata that could show harm, by their sums alone: no histogram of the others is read.

    With units of mean differences D, log E_HARM(m) <= .9 sum(D - m) / (1 + m), since log(1 + x) <= x and .9
    is the largest bet. So a stratum whose sum is below `LEAST_EXCESS` has an e-value of at most 15, and one
    that is rejected has more. Sums still hold what overtook: without a unit, a stratum exceeds by its margin
    more, and by one more yet if the unit's arms differed.
    """
    least = min(LEAST_EXCESS, math.log(len(universe) / policy.alpha_strata) / max(H5.bets))
    margin = max(each.margin for each in policy.visible)
    lost = Counter((parts[0].tier, parts[0].evaluator) for parts in overtook).values()
    least -= margin * max(lost, default=0)
    discordant = Counter(
        (parts[0].tier, parts[0].evaluator, name)
        for parts in overtook
        if any(part.harm or part.benefit for part in parts)
        for name in {name for part in parts for name in part.every_stratum}
    )
    most = Counter[str]()
    for (_, _, stratum), times in discordant.items():
        most[stratum] = max(most[stratum], times)
    statement = _suspicious(tuple((each.evaluator, each.margin, each.hypothesis) for each in policy.visible))
    asked = {
        **at_places(model, places, present),
        "least": int(least * DRIFT_UNIT),
        "once": [name for name, times in most.items() if times == 1],
        "least_once": int((least - 1) * DRIFT_UNIT),
        "often": [name for name, times in most.items() if times > 1],
        "least_often": int((least - max(most.values(), default=0)) * DRIFT_UNIT),
    }
    counts: defaultdict[tuple[str, ...], list[TallyCount]] = defaultdict(list)
    for tier, arm, epoch, evaluator, stratum, *count in connection.execute(statement, asked).all():
        # Here, since PostgreSQL would compare every row with a list of parameters, name by name.
        if stratum in universe:
            counts[tier, arm, epoch, evaluator, stratum].append(TallyCount(*count))
    ahead = Counts()
    for parts in overtook:
        for stratum in dict.fromkeys(name for part in parts for name in part.every_stratum):
            if (*parts[0][1:5], stratum) in counts:
                ahead.add_within(stratum, parts, -1)
    for each, amount in ahead.strata.items():
        taken = TallyCount(each.kind, each.reason, each.pairs, each.harm, each.benefit, amount)
        counts[each.tier, each.arm, each.epoch, each.evaluator, each.stratum].append(taken)
    strata: dict[Place, dict[str, dict[str, Tally]]] = {place: {} for place in places}
    for (tier, arm, epoch, evaluator, stratum), listed in counts.items():
        tally = tally_of(listed)
        if tally.due and (place := Place(tier, arm, epoch)) in strata:
            strata[place].setdefault(evaluator, {})[stratum] = tally
    return strata


@lru_cache(maxsize=8)
def _suspicious(criteria: tuple[tuple[str, float, Hypothesis], ...]) -> Select[Any]:
    """The histograms of strata whose units exceed the margin by `least` in sum, 2^-32; made once."""
    sums, counted = stratum_sums, stratum_tallies
    key = (*Place._fields, "evaluator", "stratum")
    chosen = (
        select(*(sums.c[name] for name in (*key, "version")))
        .where(
            within(sums),
            or_(
                _beyond(criteria, bindparam("least", type_=BigInteger)),
                sums.c.stratum.in_(bindparam("once", expanding=True))
                & _beyond(criteria, bindparam("least_once", type_=BigInteger)),
                sums.c.stratum.in_(bindparam("often", expanding=True))
                & _beyond(criteria, bindparam("least_often", type_=BigInteger)),
            ),
        )
        .subquery()
    )
    at = and_(
        counted.c.model == bindparam("model", type_=String),
        *(counted.c[name] == chosen.c[name] for name in (*key, "version")),
    )
    return select(*(counted.c[name] for name in (*key, *TallyCount._fields))).join(chosen, at)


def _beyond(
    criteria: Iterable[tuple[str, float, Hypothesis]], least: ColumnElement[int]
) -> ColumnElement[bool]:
    """Whether a stratum exceeds the margin so far; either way, if either is harm.

    Sums in 2^-32 are rounded, by less than one for each unit.
    """
    conditions = []
    for evaluator, margin, hypothesis in criteria:
        excess = stratum_sums.c.drift - stratum_sums.c.units * (int(margin * DRIFT_UNIT) - 1)
        beyond = excess >= least
        if hypothesis is Hypothesis.EQUIVALENT:
            other = -stratum_sums.c.drift - stratum_sums.c.units * (int(margin * DRIFT_UNIT) - 1)
            beyond = or_(beyond, other >= least)
        conditions.append(and_(stratum_sums.c.evaluator == evaluator, beyond))
    return or_(*conditions)


def read_coverage(db: Database, model: str, tier: str, epoch: str) -> Coverage:
    """Requests by stratum, as they came and as they count; see `coverage_at`."""
    place = Place(tier, Arm.CANDIDATE.value, epoch)
    with db.read() as connection:
        return coverage_at(connection, model, [place])[place]


def coverage_at(connection: Connection, model: str, places: Sequence[Place]) -> dict[Place, Coverage]:
    """Requests by stratum, as they came and as they count.

    Crossed strata are compared with all traffic, which proxies count; those that only a worker can tell, and
    tenants, with all captures that were taken up. A request counts under several evaluators, and under recall
    with a pair for each needle: were all of these added up, long contexts would crowd out the rest. So a
    stratum has as many as its busiest evaluator. Of a closed conversation every request counts, or the few
    first turns of each would crowd out the many late ones.
    """
    crossed, taken = _traffic(connection, model), _taken(connection, model)
    traffic = {**crossed, **taken}
    evidence = _units_by_tenant(connection, model, places, taken)
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


def _traffic(connection: Connection, model: str) -> dict[str, int]:
    """Eligible requests by crossed stratum, from the mirror ledger."""
    prefix = ledger_key(Count.TRAFFIC, model, "-").removesuffix("-")
    seen = connection.execute(
        select(ledger_counters.c.counter, func.sum(ledger_counters.c.amount))
        .where(ledger_counters.c.counter.startswith(prefix, autoescape=True))
        .group_by(ledger_counters.c.counter)
    ).all()
    return {split_ledger_key(counter).detail: int(amount) for counter, amount in seen}


def _taken(connection: Connection, model: str) -> dict[str, int]:
    """Captures taken up, by what a worker tells of them; the smallest tenants as one."""
    of_tenant = takings.c.stratum.startswith(f"{TENANT}=", autoescape=True)
    columns = (takings.c.stratum, takings.c.amount)
    chosen = select(*columns).where(takings.c.model == model)
    found = {name: int(amount) for name, amount in connection.execute(chosen.where(~of_tenant)).all()}
    largest = chosen.where(of_tenant).order_by(takings.c.amount.desc(), takings.c.stratum)
    listed = connection.execute(largest.limit(MOST_TENANTS + 1)).all()
    tenants = {name: int(amount) for name, amount in listed[:MOST_TENANTS]}
    if len(listed) > MOST_TENANTS:
        every = select(func.sum(takings.c.amount)).where(takings.c.model == model, of_tenant)
        tenants[_OTHERS] = int(connection.execute(every).scalar_one()) - sum(tenants.values())
    return {**found, **tenants}


def _units_by_tenant(
    connection: Connection, model: str, places: Sequence[Place], taken: Mapping[str, int]
) -> dict[Place, dict[str, int]]:
    """What counts of each tenant in `taken`."""
    found: dict[Place, dict[str, int]] = {place: {} for place in places}
    named = [name.partition("=")[2] for name in taken if name.startswith(f"{TENANT}=") and name != _OTHERS]
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
    if _OTHERS in taken:
        for tier, arm, epoch, evaluator, number in connection.execute(_OF_ALL_TENANTS, asked):
            place = Place(tier, arm, epoch)
            rest = int(number) - by_evaluator[place, evaluator]
            if rest and place in found:
                found[place][_OTHERS] = max(found[place].get(_OTHERS, 0), rest)
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


def read_tenants(
    db: Database, model: str, tier: str, epoch: str, present: Versions = ANY_VERSION
) -> Partitioned:
    """The evidence on a candidate by evaluator and tenant, without what overtook."""
    place = Place(tier, Arm.CANDIDATE.value, epoch)
    with db.read() as connection:
        overtook = overtaking(connection, model, [place], present)
        return tenants_at(connection, model, [place], overtook, present)[place]


def tenants_at(
    connection: Connection,
    model: str,
    places: Sequence[Place],
    overtook: Conversations,
    present: Versions = ANY_VERSION,
) -> dict[Place, dict[str, dict[str, Tally]]]:
    """The same for a whole ladder."""
    counts: defaultdict[tuple[str, ...], list[TallyCount]] = defaultdict(list)
    rows = connection.execute(_TENANTS, at_places(model, places, present))
    for tier, arm, epoch, evaluator, tenant, *count in rows:
        counts[tier, arm, epoch, evaluator, tenant].append(TallyCount(*count))
    ahead = Counts()
    for parts in overtook:
        ahead.add_whole(parts, -1)
    for each, amount in ahead.tenants.items():
        taken = TallyCount(each.kind, each.reason, each.pairs, each.harm, each.benefit, amount)
        counts[each.tier, each.arm, each.epoch, each.evaluator, each.tenant].append(taken)
    found: dict[Place, dict[str, dict[str, Tally]]] = {place: {} for place in places}
    for (tier, arm, epoch, evaluator, tenant), listed in sorted(counts.items()):
        if (place := Place(tier, arm, epoch)) in found:
            found[place].setdefault(evaluator, {})[tenant] = tally_of(listed)
    return found


_TENANTS: Select[Any] = select(
    *(tenant_tallies.c[name] for name in (*Place._fields, "evaluator", "tenant", *TallyCount._fields))
).where(within(tenant_tallies))


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
    db: Database,
    model: str,
    tier: str,
    epoch: str,
    arm: str = Arm.CANDIDATE,
    present: Versions = ANY_VERSION,
) -> list[StratumStanding]:
    """Every stratum that was met, by evaluator, in the order of their names; without what overtook."""
    place = Place(tier, Arm(arm).value, epoch)
    with db.read() as connection:
        rows = connection.execute(
            select(stratum_sums).where(within(stratum_sums)), at_places(model, [place], present)
        ).mappings()
        found: dict[tuple[str, str], Sums] = {}
        for row in rows:
            key = (row["evaluator"], row["stratum"])
            sums = Sums(*(int(row[name]) for name in Sums._fields))
            found[key] = found.get(key, Sums()).plus(sums)
        ahead = Counts()
        for parts in overtaking(connection, model, [place], present):
            ahead.add_conversation(parts, -1)
        for each, sums in ahead.sums.items():
            key = (each.evaluator, each.stratum)
            found[key] = found.get(key, Sums()).plus(sums)
    return [
        StratumStanding(evaluator=evaluator, stratum=stratum, sums=sums)
        for (evaluator, stratum), sums in sorted(found.items())
    ]
