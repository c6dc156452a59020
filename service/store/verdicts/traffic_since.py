"""The traffic since an epoch began, which is what its evidence has to cover.

Ledger and takings count for ever. What is gone would be asked for for ever, and what is new not before it has
a share of all that ever came; so what they said is noted when an epoch begins, and taken off.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from sqlalchemy import ColumnElement, Connection, func, insert, literal, select, tuple_

from service.decision.covering import dimension_of
from service.store.redis.counters import Count, ledger_key, split_ledger_key
from service.store.scored.evidence import Place
from service.store.sql.database import Database
from service.store.sql.schema import ledger_counters
from service.store.sql.tally_tables import takings, traffic_before
from service.strata import TENANT

OTHERS = f"{TENANT}=(others)"
"""All tenants beyond those that are told apart, as one."""
LEAST = 0.5
"""As much traffic for each request that counts; with less, an epoch has barely begun, or its evidence is of
requests that came before: then all traffic is compared."""

_OF_TENANT = traffic_before.c.stratum.startswith(f"{TENANT}=", autoescape=True)


def note_traffic(db: Database, connection: Connection, model: str, tier: str, epoch: str) -> None:
    """Note what the traffic of the model was when this epoch of the tier began; once."""
    place = {"model": model, "tier": tier, "epoch": epoch}
    taken = select(*map(literal, place.values()), takings.c.stratum, takings.c.amount)
    connection.execute(
        insert(traffic_before).from_select(
            [*place, "stratum", "amount"], taken.where(takings.c.model == model)
        )
    )
    prefix = ledger_key(Count.TRAFFIC, model, "-").removesuffix("-")
    counter, amount = ledger_counters.c.counter, func.sum(ledger_counters.c.amount)
    seen = connection.execute(
        select(counter, amount.label("amount"))
        .where(counter.startswith(prefix, autoescape=True))
        .group_by(counter)
    ).all()
    rows = [
        {**place, "stratum": split_ledger_key(row.counter).detail, "amount": int(row.amount)} for row in seen
    ]
    if rows:
        connection.execute(db.insert(traffic_before).on_conflict_do_nothing(), rows)


def since_began(
    connection: Connection,
    model: str,
    places: Sequence[Place],
    traffic: Mapping[str, int],
    evidence: Mapping[Place, Mapping[str, int]],
) -> dict[Place, dict[str, int]]:
    """`traffic`, that ever came, without what came before the epoch of each place.

    Dimension by dimension; in one in which too little came since, all of it.
    """
    before = _before(connection, model, places, traffic)
    return {place: _since(traffic, before.get(place, {}), evidence[place]) for place in places}


def _since(
    traffic: Mapping[str, int], before: Mapping[str, int], evidence: Mapping[str, int]
) -> dict[str, int]:
    since = {name: max(0, number - before.get(name, 0)) for name, number in traffic.items()}
    came, counts = _by_dimension(since), _by_dimension(evidence)
    enough = {name for name, number in came.items() if number and number >= LEAST * counts[name]}
    return {name: since[name] if dimension_of(name) in enough else number for name, number in traffic.items()}


def _by_dimension(counts: Mapping[str, int]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for stratum, requests in counts.items():
        sums[dimension_of(stratum)] += requests
    return sums


def _before(
    connection: Connection, model: str, places: Sequence[Place], traffic: Mapping[str, int]
) -> dict[Place, dict[str, int]]:
    """What was noted of the strata that are asked about; the rest of the tenants as `OTHERS`."""
    by_epoch = {(place.tier, place.epoch): place for place in places}
    of = traffic_before.c
    mine: ColumnElement[bool] = (of.model == model) & tuple_(of.tier, of.epoch).in_(sorted(by_epoch))
    found: dict[Place, dict[str, int]] = {place: {} for place in places}
    named = select(of.tier, of.epoch, of.stratum, of.amount).where(mine, of.stratum.in_(sorted(traffic)))
    for tier, epoch, stratum, amount in connection.execute(named):
        found[by_epoch[tier, epoch]][stratum] = int(amount)
    if OTHERS in traffic:
        every = select(of.tier, of.epoch, func.sum(of.amount)).where(mine, _OF_TENANT)
        for tier, epoch, amount in connection.execute(every.group_by(of.tier, of.epoch)):
            known = found[by_epoch[tier, epoch]]
            told = sum(number for name, number in known.items() if dimension_of(name) == TENANT)
            known[OTHERS] = int(amount) - told
    return found
