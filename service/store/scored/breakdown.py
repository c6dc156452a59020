"""Evidence by stratum and by tenant: what could be worse than the whole, and what is missing from it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, ColumnElement, Connection, Select, and_, bindparam, or_, select

from service.decision.grid import H5
from service.decision.policy import Hypothesis, Policy
from service.decision.tally import Tally
from service.store.scored.counting import DRIFT_UNIT, Counts, Sums
from service.store.scored.evidence import (
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
from service.store.scored.units import Arm, Kind
from service.store.sql.database import Database
from service.store.sql.tally_tables import stratum_sums, stratum_tallies, tenant_tallies
from service.strata import UNIVERSE

Partitioned = Mapping[str, Mapping[str, Tally]]
"""Tallies by evaluator, and within it by stratum or tenant."""
LEAST_EXCESS = 3.0
"""Units of harm beyond the margin with which a stratum is worth a look."""


def suspicious_strata(
    connection: Connection,
    model: str,
    places: Sequence[Place],
    policy: Policy,
    overtook: Conversations,
    universe: frozenset[str] = UNIVERSE,
    present: Versions = ANY_VERSION,
) -> dict[Place, dict[str, dict[str, Tally]]]:
    """Strata that could show harm, by their sums alone: no histogram of the others is read, nor of those
    whose units have one pair each.

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
    criteria = tuple((each.evaluator, each.margin, each.hypothesis) for each in policy.visible)
    bounds = {evaluator: (_per_unit(margin), hypothesis) for evaluator, margin, hypothesis in criteria}
    asked = {
        **at_places(model, places, present),
        "least": int((least - max(most.values(), default=0)) * DRIFT_UNIT),
    }
    counts: defaultdict[_Stratum, list[TallyCount]] = defaultdict(list)
    histograms: set[_Stratum] = set()
    rows = connection.execute(_suspicious(criteria), asked).all()
    for tier, arm, epoch, evaluator, stratum, *amounts in rows:
        # Here, since PostgreSQL would compare every row with a list of parameters, name by name.
        if stratum not in universe:
            continue
        key, sums = _Stratum(tier, arm, epoch, evaluator, stratum), Sums(*map(int, amounts))
        exact = int((least - most[stratum]) * DRIFT_UNIT)
        if not _exceeds(sums, *bounds[evaluator], exact):
            continue
        if sums.pairs == sums.units and not sums.unscored:
            counts[key] += _of_single_pairs(sums)
        else:
            histograms.add(key)
    for tier, arm, epoch, evaluator, stratum, *count in _histograms(connection, model, histograms, present):
        if (key := _Stratum(tier, arm, epoch, evaluator, stratum)) in histograms:
            counts[key].append(TallyCount(*count))
    ahead = Counts()
    for parts in overtook:
        for stratum in dict.fromkeys(name for part in parts for name in part.every_stratum):
            if (*parts[0][1:5], stratum) in counts:
                ahead.add_within(stratum, parts, -1)
    for each, amount in ahead.strata.items():
        taken = TallyCount(each.kind, each.reason, each.pairs, each.harm, each.benefit, amount)
        counts[_Stratum(each.tier, each.arm, each.epoch, each.evaluator, each.stratum)].append(taken)
    strata: dict[Place, dict[str, dict[str, Tally]]] = {place: {} for place in places}
    for (tier, arm, epoch, evaluator, stratum), listed in counts.items():
        tally = tally_of(listed)
        if tally.due and (place := Place(tier, arm, epoch)) in strata:
            strata[place].setdefault(evaluator, {})[stratum] = tally
    return strata


class _Stratum(NamedTuple):
    """One stratum of one evaluator at one place."""

    tier: str
    arm: str
    epoch: str
    evaluator: str
    stratum: str


def _of_single_pairs(sums: Sums) -> list[TallyCount]:
    """What `stratum_tallies` holds of units that have one pair each: their sums say it all."""
    unit = Kind.UNIT.value
    counts = [
        TallyCount(unit, "", 1, 1, 0, sums.harm),
        TallyCount(unit, "", 1, 0, 1, sums.benefit),
        TallyCount(unit, "", 1, 0, 0, sums.pairs - sums.harm - sums.benefit),
        TallyCount(Kind.BOTH_FAILED.value, "", 0, 0, 0, sums.both_failed),
        TallyCount(Kind.NOT_COUNTED.value, "", 0, 0, 0, sums.not_counted),
    ]
    return [each for each in counts if each.amount]


def _histograms(
    connection: Connection, model: str, wanted: Collection[_Stratum], present: Versions
) -> Sequence[Any]:
    """The rows of these strata, and of a few that are named by their parts alone."""
    if not wanted:
        return ()
    places = {Place(each.tier, each.arm, each.epoch) for each in wanted}
    names = {name: sorted({getattr(each, name) for each in wanted}) for name in ("evaluator", "stratum")}
    asked = {
        **at_places(model, places, present),
        "evaluators": names["evaluator"],
        "strata": names["stratum"],
    }
    return connection.execute(_HISTOGRAMS, asked).all()


_HISTOGRAMS: Select[Any] = select(
    *(stratum_tallies.c[name] for name in (*_Stratum._fields, *TallyCount._fields))
).where(
    within(stratum_tallies),
    stratum_tallies.c.evaluator.in_(bindparam("evaluators", expanding=True)),
    stratum_tallies.c.stratum.in_(bindparam("strata", expanding=True)),
)


@lru_cache(maxsize=8)
def _suspicious(criteria: tuple[tuple[str, float, Hypothesis], ...]) -> Select[Any]:
    """The sums of strata whose units exceed the margin by `least` in sum, 2^-32; made once."""
    sums, least = stratum_sums, bindparam("least", type_=BigInteger)
    return select(*(sums.c[name] for name in (*_Stratum._fields, *Sums._fields))).where(
        within(sums), _beyond(criteria, least)
    )


def _per_unit(margin: float) -> int:
    """The margin in 2^-32, less what rounding may take from the drift of each unit."""
    return int(margin * DRIFT_UNIT) - 1


def _exceeds(sums: Sums, per_unit: int, hypothesis: Hypothesis, least: int) -> bool:
    """What `_beyond` says, of one row."""
    allowed = sums.units * per_unit
    upward = sums.drift - allowed >= least
    return upward or (hypothesis is Hypothesis.EQUIVALENT and -sums.drift - allowed >= least)


def _beyond(
    criteria: Iterable[tuple[str, float, Hypothesis]], least: ColumnElement[int]
) -> ColumnElement[bool]:
    """Whether a stratum exceeds the margin so far; either way, if either is harm."""
    conditions = []
    for evaluator, margin, hypothesis in criteria:
        allowed = stratum_sums.c.units * _per_unit(margin)
        beyond = stratum_sums.c.drift - allowed >= least
        if hypothesis is Hypothesis.EQUIVALENT:
            beyond = or_(beyond, -stratum_sums.c.drift - allowed >= least)
        conditions.append(and_(stratum_sums.c.evaluator == evaluator, beyond))
    return or_(*conditions)


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
