"""The traffic since an epoch began, which is what its evidence has to cover.

Ledger and takings count for ever. A stratum that is gone would be asked for for ever, and one that is new
would not be asked for before it has a share of all that ever came; so what they said is noted when an epoch
begins, and taken off.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from itertools import compress

from sqlalchemy import Connection, func, select

from service.decision.covering import dimension_of
from service.store.redis.counters import Count, ledger_key, split_ledger_key
from service.store.sql.database import Database
from service.store.sql.schema import ledger_counters
from service.store.sql.tally_tables import takings, traffic_before
from service.strata import TENANT

OTHERS = f"{TENANT}=(others)"
"""All tenants beyond those that are told apart, as one."""
NOTED_TENANTS = 1000
"""The largest, which are noted by name: what any other had before is less than a thousandth of all."""
LEAST = 0.5
"""As much traffic for each request that counts; with less, an epoch has barely begun, or its evidence is of
requests that came before: then all traffic is compared."""


def note_traffic(db: Database, connection: Connection, model: str, tier: str, epoch: str) -> None:
    """Note what the traffic of the model was when this epoch of the tier began; once."""
    prefix = ledger_key(Count.TRAFFIC, model, "-").removesuffix("-")
    counter, amount = ledger_counters.c.counter, func.sum(ledger_counters.c.amount)
    seen = select(counter, amount).where(counter.startswith(prefix, autoescape=True)).group_by(counter)
    amounts = {split_ledger_key(name).detail: int(number) for name, number in connection.execute(seen)}
    taken = select(takings.c.stratum, takings.c.amount).where(takings.c.model == model)
    tenants = []
    for stratum, number in connection.execute(taken):
        if dimension_of(stratum) == TENANT:
            tenants.append((-number, stratum))
        else:
            amounts[stratum] = number
    tenants.sort()
    amounts |= {stratum: -number for number, stratum in tenants[:NOTED_TENANTS]}
    if rest := -sum(number for number, _ in tenants[NOTED_TENANTS:]):
        amounts[OTHERS] = rest
    row = {"model": model, "tier": tier, "epoch": epoch, "amounts": json.dumps(amounts)}
    connection.execute(db.insert(traffic_before).on_conflict_do_nothing(), row)


def since_began(
    traffic: Mapping[str, int], before: Mapping[str, int], evidence: Mapping[str, int]
) -> dict[str, int]:
    """`traffic`, that ever came, without what was noted `before` the epoch of the evidence began.

    Dimension by dimension; in one in which too little came since, all of it.
    """
    if not before:
        return dict(traffic)
    if OTHERS in traffic:
        untold = (name == OTHERS or (name not in traffic and dimension_of(name) == TENANT) for name in before)
        before = {**before, OTHERS: sum(compress(before.values(), untold))}
    # Hundreds of strata for each tier at every verdict: each is looked at once.
    since, came = {}, Counter[str]()
    for name, number in traffic.items():
        since[name] = left = max(0, number - before.get(name, 0))
        came[dimension_of(name)] += left
    counts = _by_dimension(evidence)
    behind = {name for name, number in came.items() if not number or number < LEAST * counts[name]}
    if behind:
        since |= {name: number for name, number in traffic.items() if dimension_of(name) in behind}
    return since


def _by_dimension(counts: Mapping[str, int]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for stratum, requests in counts.items():
        sums[dimension_of(stratum)] += requests
    return sums
