"""Reading evidence: tallies for the verdicts of a ladder, and the pairs behind them.

Evidence counts in the order in which its captures were taken, whatever was recorded first. Failures tend to
be slow (an answer that runs away, a replay that is tried again): counted as they finish, the clean pairs
would come first, and whoever looks at that moment would accept far more often than alpha allows. So what
overtook a capture that is still being replayed is taken off again, from every count.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, Table, and_, case, func, or_, select

from service.decision.tally import Tally, Triple
from service.store.counting import Counts, Part
from service.store.database import Database
from service.store.leases import MOST_AWAITED as MOST_AWAITED
from service.store.leases import oldest_awaited
from service.store.schema import pairs, units
from service.store.tally_tables import tallies
from service.store.units import Arm, Kind, PairOutcome, PairRow


class Place(NamedTuple):
    """Whose evidence, against what, and in which epoch."""

    tier: str
    arm: str
    """An Arm."""
    epoch: str


TalliesAt = Mapping[Place, Mapping[str, Tally]]
"""By place and evaluator."""


def read_tallies(db: Database, *, model: str, tier: str, arm: str, epoch: str) -> dict[str, Tally]:
    """The evidence of one arm by evaluator; as cheap for a million pairs as for ten."""
    place = Place(tier, Arm(arm).value, epoch)
    with db.read() as connection:
        ahead = overtaking(connection, model, [place])
        return dict(tallies_at(connection, model, [place], ahead)[place])


def tallies_at(connection: Connection, model: str, places: Collection[Place], ahead: Counts) -> TalliesAt:
    """The evidence of whole ladders by evaluator, in one query, without what overtook."""
    rows = connection.execute(
        select(*(tallies.c[name] for name in (*Place._fields, "evaluator", *TallyCount._fields))).where(
            tallies.c.model == model, within(tallies, places)
        )
    ).all()
    counts: defaultdict[Place, defaultdict[str, list[TallyCount]]] = defaultdict(lambda: defaultdict(list))
    for tier, arm, epoch, evaluator, *count in rows:
        counts[Place(tier, arm, epoch)][evaluator].append(TallyCount(*count))
    for key, amount in ahead.tallies.items():
        found = TallyCount(key.kind, key.reason, key.pairs, key.harm, key.benefit, amount)
        counts[Place(key.tier, key.arm, key.epoch)][key.evaluator].append(found)
    return {
        place: {name: tally_of(found) for name, found in sorted(counts[place].items())} for place in places
    }


def within(table: Table, places: Collection[Place]) -> ColumnElement[bool]:
    """Rows of these places, found by the beginning of the key."""
    return or_(
        False,
        *(
            and_(table.c.tier == place.tier, table.c.arm == place.arm, table.c.epoch == place.epoch)
            for place in places
        ),
    )


def overtaking(connection: Connection, model: str, places: Collection[Place]) -> Counts:
    """What to add so that only what counts by now is left: negative amounts."""
    counts = Counts()
    oldest = oldest_awaited(connection, model)
    if oldest is None or not places:
        return counts
    passed, did = pairs.c.baseline_passed, pairs.c.candidate_passed
    rows = connection.execute(
        select(
            *(units.c[name] for name in ("conversation", *Place._fields, "evaluator", "version")),
            *(units.c[name] for name in ("stratum", "marginals", "tenant")),
            func.count().label("pairs"),
            _amount_of(passed & ~did).label("harm"),
            _amount_of(~passed & did).label("benefit"),
            _amount_of(~passed & ~did).label("both_failed"),
        )
        .join(pairs, pairs.c.unit_id == units.c.unit_id)
        .where(
            units.c.model == model,
            within(units, places),
            units.c.taken_at >= oldest,
            units.c.counted,
            pairs.c.outcome == PairOutcome.SCORED,
        )
        .group_by(units.c.unit_id)
    )
    conversations: defaultdict[tuple[str, ...], list[Part]] = defaultdict(list)
    for row in rows:
        place = (model, row.tier, row.arm, row.epoch, row.evaluator, row.version)
        part = Part(
            *place,
            (row.stratum, *row.marginals.split()),
            row.tenant,
            int(row.pairs),
            int(row.harm),
            int(row.benefit),
            int(row.both_failed),
        )
        conversations[(row.conversation, *place)].append(part)
    for parts in conversations.values():
        counts.add_conversation(parts, sign=-1)
    return counts


def _amount_of(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.sum(case((condition, 1), else_=0))


class TallyCount(NamedTuple):
    """One row of a tally, apart from where it belongs."""

    kind: str
    reason: str
    pairs: int
    harm: int
    benefit: int
    amount: int


def tally_of(counts: Iterable[TallyCount]) -> Tally:
    """All rows of one evaluator as a Tally, made at once: a row alone need not be one."""
    counted: Counter[Triple] = Counter()
    unscored: Counter[str] = Counter()
    both_failed = not_counted = 0
    for kind, reason, n, harm, benefit, amount in counts:
        if kind == Kind.UNIT:
            counted[Triple(n, harm, benefit)] += amount
        elif kind == Kind.BOTH_FAILED:
            both_failed += amount
        elif kind == Kind.NOT_COUNTED:
            not_counted += amount
        elif Kind(kind) is Kind.UNSCORED:
            unscored[reason] += amount
    return Tally(
        units={triple: amount for triple, amount in counted.items() if amount},
        unscored=dict(unscored),
        both_failed=both_failed,
        not_counted=not_counted,
    )


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
