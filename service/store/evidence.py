"""Reading evidence: tallies for a verdict, coverage, the epoch's attempt, the pairs behind them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from sqlalchemy import Connection, func, select

from service.decision.evidence import Coverage
from service.decision.tally import Tally, Triple
from service.store.capture import model_mark
from service.store.counters import Count, ledger_key, split_ledger_key
from service.store.database import Database
from service.store.leases import State
from service.store.schema import captures, epochs, ledger_counters, pairs, tallies, units
from service.store.units import Arm, Kind, PairOutcome, PairRow

MOST_AWAITED = 3
"""Times a capture may be taken and still be waited for: one that ends its workers must not hold up others."""


def read_tallies(db: Database, *, model: str, tier: str, arm: str, epoch: str) -> dict[str, Tally]:
    """The evidence of one arm by evaluator, strata summed; as cheap for a million pairs as for ten.

    Evidence counts in the order in which its captures were taken, whatever was recorded first. Failures tend
    to be slow (an answer that runs away, a replay that is tried again): counted as they finish, the clean
    pairs would come first, and whoever looks at that moment would accept far more often than alpha allows.
    """
    counts = (tallies.c.kind, tallies.c.reason, tallies.c.pairs, tallies.c.harm, tallies.c.benefit)
    with db.read() as connection:
        rows = connection.execute(
            select(tallies.c.evaluator, *counts, func.sum(tallies.c.amount).label("amount"))
            .where(
                tallies.c.model == model,
                tallies.c.tier == tier,
                tallies.c.arm == Arm(arm).value,
                tallies.c.epoch == epoch,
            )
            .group_by(tallies.c.evaluator, *counts)
        ).all()
        ahead = list(_ahead(connection, model=model, tier=tier, arm=Arm(arm).value, epoch=epoch))
    found: defaultdict[str, list[TallyCount]] = defaultdict(list)
    for evaluator, count in ahead:
        found[evaluator].append(count)
    for row in rows:
        triple = Triple(row.pairs, row.harm, row.benefit)
        found[row.evaluator].append(TallyCount(Kind(row.kind), row.reason, triple, int(row.amount)))
    return {name: tally_of(counts) for name, counts in sorted(found.items())}


def _ahead(
    connection: Connection, *, model: str, tier: str, arm: str, epoch: str
) -> Iterator[tuple[str, TallyCount]]:
    """What to take off again: units that count and overtook a capture which is still being replayed."""
    oldest = connection.execute(
        select(func.min(captures.c.taken_at)).where(
            captures.c.state == State.LEASED,
            captures.c.mark == model_mark(model),
            captures.c.leases <= MOST_AWAITED,
        )
    ).scalar()
    if oldest is None:
        return
    passed = pairs.c.baseline_passed, pairs.c.candidate_passed
    rows = connection.execute(
        select(units.c.unit_id, units.c.evaluator, *passed)
        .join(pairs, pairs.c.unit_id == units.c.unit_id)
        .where(
            units.c.model == model,
            units.c.tier == tier,
            units.c.arm == arm,
            units.c.taken_at >= oldest,
            units.c.epoch == epoch,
            units.c.counted,
            pairs.c.outcome == PairOutcome.SCORED,
        )
        .order_by(units.c.unit_id)
    )
    for (_, evaluator), group in groupby(rows, key=lambda row: (row.unit_id, row.evaluator)):
        judged = [(row.baseline_passed, row.candidate_passed) for row in group]
        triple = Triple(len(judged), judged.count((True, False)), judged.count((False, True)))
        yield evaluator, TallyCount(Kind.UNIT, "", triple, -1)
        yield evaluator, TallyCount(Kind.BOTH_FAILED, "", Triple(0, 0, 0), -judged.count((False, False)))


class TallyCount(NamedTuple):
    """One row of `tallies`, strata summed."""

    kind: Kind
    reason: str
    triple: Triple
    amount: int


def tally_of(counts: Iterable[TallyCount]) -> Tally:
    """All rows of one evaluator as a Tally, made at once: a row alone need not be one."""
    units: Counter[Triple] = Counter()
    unscored: Counter[str] = Counter()
    both_failed = not_counted = 0
    for count in counts:
        match count.kind:
            case Kind.UNIT:
                units[count.triple] += count.amount
            case Kind.BOTH_FAILED:
                both_failed += count.amount
            case Kind.NOT_COUNTED:
                not_counted += count.amount
            case Kind.UNSCORED:
                unscored[count.reason] += count.amount
    counted = {triple: amount for triple, amount in units.items() if amount}
    return Tally(units=counted, unscored=dict(unscored), both_failed=both_failed, not_counted=not_counted)


def read_coverage(db: Database, model: str, tier: str, epoch: str) -> Coverage:
    """Requests by stratum, as the proxies saw them and as they count.

    A request counts under several evaluators, and under recall with a pair for each needle: were all of these
    added up, long contexts would crowd out the rest. So a stratum has as many as its busiest evaluator.
    """
    prefix = ledger_key(Count.TRAFFIC, model, "-").removesuffix("-")
    with db.read() as connection:
        seen = connection.execute(
            select(ledger_counters.c.counter, func.sum(ledger_counters.c.amount).label("amount"))
            .where(ledger_counters.c.counter.startswith(prefix, autoescape=True))
            .group_by(ledger_counters.c.counter)
        ).all()
        counted = connection.execute(
            select(tallies.c.stratum, func.sum(tallies.c.amount).label("amount"))
            .where(
                tallies.c.model == model,
                tallies.c.tier == tier,
                tallies.c.arm == Arm.CANDIDATE.value,
                tallies.c.epoch == epoch,
                tallies.c.kind == Kind.UNIT.value,
            )
            .group_by(tallies.c.evaluator, tallies.c.stratum)
        ).all()
    evidence: defaultdict[str, int] = defaultdict(int)
    for row in counted:
        evidence[row.stratum] = max(evidence[row.stratum], int(row.amount))
    return Coverage(
        traffic={split_ledger_key(row.counter).detail: int(row.amount) for row in seen},
        evidence=dict(evidence),
    )


def epoch_attempt(db: Database, model: str, tier: str, epoch: str, min_pairs: int) -> int:
    """j of statistics A5: this is the j-th epoch of the tier to reach its minimum of pairs.

    An epoch takes its number at the first look after it got there and keeps it, so that no two ever share one
    and coming back to a hash resumes it; before that, the number that it would take now.
    """
    mine = (epochs.c.model == model) & (epochs.c.tier == tier)
    with db.read() as connection:
        taken = {
            str(row.epoch): int(row.attempt)
            for row in connection.execute(select(epochs.c.epoch, epochs.c.attempt).where(mine))
        }
    if epoch in taken:
        return taken[epoch]
    reached = any(
        tally.n >= min_pairs
        for tally in read_tallies(db, model=model, tier=tier, arm=Arm.CANDIDATE, epoch=epoch).values()
    )
    if not reached:
        return len(taken) + 1
    with db.write() as connection:
        db.lock(connection, f"epochs of {model} {tier}")
        found = connection.execute(select(epochs.c.attempt).where(mine, epochs.c.epoch == epoch)).scalar()
        if found is not None:
            return int(found)
        attempt = connection.execute(select(func.count()).select_from(epochs).where(mine)).scalar_one() + 1
        connection.execute(epochs.insert().values(model=model, tier=tier, epoch=epoch, attempt=attempt))
    return int(attempt)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentPair:
    """One pair with where it belongs, for people."""

    capture_id: str
    tier: str
    evaluator: str
    version: str
    epoch: str
    conversation: str
    stratum: str
    counted: bool
    at: float
    pair: PairRow


def recent_pairs(
    db: Database, model: str, tier: str, discordant_only: bool = False, limit: int = 50
) -> list[RecentPair]:
    """The latest pairs of a candidate, newest first; discordant ones are those whose arms differ."""
    if limit < 1:
        raise ValueError(f"limit must be at least 1, got {limit}")
    wanted = (units.c.model == model) & (units.c.tier == tier) & (units.c.arm == Arm.CANDIDATE.value)
    if discordant_only:
        wanted &= units.c.discordant & (pairs.c.baseline_passed != pairs.c.candidate_passed)
    of_unit = ("capture_id", "tier", "evaluator", "version", "epoch", "conversation", "stratum")
    of_pair = [column.name for column in pairs.columns if column.name != "unit_id"]
    with db.read() as connection:
        rows = connection.execute(
            select(units, pairs)
            .join(pairs, pairs.c.unit_id == units.c.unit_id)
            .where(wanted)
            .order_by(units.c.at.desc(), units.c.unit_id, pairs.c.item)
            .limit(limit)
        ).mappings()
        return [
            RecentPair(
                **{name: row[units.c[name]] for name in (*of_unit, "counted", "at")},
                pair=PairRow(**{name: row[pairs.c[name]] for name in of_pair}),
            )
            for row in rows
        ]
