"""Reading evidence: tallies for the verdicts of a ladder, and the pairs behind them.

Evidence counts in the order in which its captures were taken, whatever was recorded first. Failures tend to
be slow (an answer that runs away, a replay that is tried again): counted as they finish, the clean pairs
would come first, and whoever looks at that moment would accept far more often than alpha allows. So what
overtook a capture that is still being replayed is taken off again, from every count.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, String, Table, and_, bindparam, or_, select

from service.decision.tally import Tally, Triple
from service.store.scored.counting import Counts, Part
from service.store.scored.leases import MOST_AWAITED as MOST_AWAITED
from service.store.scored.leases import oldest_awaited
from service.store.scored.own_strata import own_parts
from service.store.scored.units import Arm, Kind, PairOutcome, PairRow
from service.store.sql.database import Database
from service.store.sql.schema import pairs, units
from service.store.sql.tally_tables import tallies


class Place(NamedTuple):
    """Whose evidence, against what, and in which epoch."""

    tier: str
    arm: str
    """An Arm."""
    epoch: str


Versions = Mapping[str, str]
"""Of evaluators whose version is in no epoch, because they are only shown: the one that is read. Two versions
are two instruments, and their counts do not add up."""
ANY_VERSION: Versions = MappingProxyType({})

TalliesAt = Mapping[Place, Mapping[str, Tally]]
"""By place and evaluator."""


def read_tallies(db: Database, *, model: str, tier: str, arm: str, epoch: str) -> dict[str, Tally]:
    """The evidence of one arm by evaluator; as cheap for a million pairs as for ten."""
    place = Place(tier, Arm(arm).value, epoch)
    with db.read() as connection:
        overtook = overtaking(connection, model, [place])
        return dict(tallies_at(connection, model, [place], overtook)[place])


Conversations = Sequence[Sequence[Part]]
"""Each with what counts of it under one evaluator, on one tier, in one epoch."""


def tallies_at(
    connection: Connection,
    model: str,
    places: Collection[Place],
    overtook: Conversations,
    present: Versions = ANY_VERSION,
) -> TalliesAt:
    """The evidence of whole ladders by evaluator, in one query, without what overtook."""
    rows = connection.execute(_TALLIES, at_places(model, places, present)).all()
    counts: defaultdict[Place, defaultdict[str, list[TallyCount]]] = defaultdict(lambda: defaultdict(list))
    for tier, arm, epoch, evaluator, *count in rows:
        counts[Place(tier, arm, epoch)][evaluator].append(TallyCount(*count))
    ahead = Counts()
    for parts in overtook:
        ahead.add_whole(parts, -1)
    for key, amount in ahead.tallies.items():
        found = TallyCount(key.kind, key.reason, key.pairs, key.harm, key.benefit, amount)
        counts[Place(key.tier, key.arm, key.epoch)][key.evaluator].append(found)
    return {
        place: {name: tally_of(found) for name, found in sorted(counts[place].items())} for place in places
    }


def overtaking(
    connection: Connection, model: str, places: Collection[Place], present: Versions = ANY_VERSION
) -> Conversations:
    """Conversations that are counted already and do not count yet."""
    return overtaking_since(connection, model, places, oldest_awaited(connection, model), present)


def overtaking_since(
    connection: Connection,
    model: str,
    places: Collection[Place],
    oldest: float | None,
    present: Versions = ANY_VERSION,
) -> Conversations:
    """The same, where it is known when the oldest capture that is still being replayed was taken."""
    if oldest is None:
        return ()
    judged: defaultdict[tuple[str, ...], list[tuple[bool, bool]]] = defaultdict(list)
    owned: defaultdict[tuple[str, ...], list[tuple[str, bool, bool]]] = defaultdict(list)
    rows = connection.execute(_OVERTAKING, {"model": model, "oldest": oldest}).all()
    for baseline, candidate, own, *unit in rows:
        judged[tuple(unit)].append((baseline, candidate))
        if own:
            owned[tuple(unit)].append((own, baseline, candidate))
    wanted = set(places)
    conversations: defaultdict[tuple[str, ...], list[Part]] = defaultdict(list)
    for of_unit, outcomes in judged.items():
        _, conversation, *scope, stratum, marginals, tenant = of_unit
        tier, arm, epoch, evaluator, version = scope
        if Place(tier, arm, epoch) not in wanted or present.get(evaluator, version) != version:
            continue
        part = Part(
            *(model, tier, arm, epoch, evaluator, version),
            (stratum, *marginals.split()),
            tenant,
            len(outcomes),
            outcomes.count((True, False)),
            outcomes.count((False, True)),
            outcomes.count((False, False)),
            own_parts(owned.get(of_unit, ())),
        )
        conversations[(conversation, *part[:6])].append(part)
    return list(conversations.values())


def within(table: Table) -> ColumnElement[bool]:
    """Rows at these places and perhaps at others, found by the beginning of the key, of versions that are
    present; ask with `at_places`.
    """
    return and_(
        table.c.model == bindparam("model", type_=String),
        *(table.c[name].in_(bindparam(f"{name}s", expanding=True)) for name in Place._fields),
        or_(
            table.c.evaluator.not_in(bindparam("versioned", expanding=True)),
            (table.c.evaluator + " " + table.c.version).in_(bindparam("present", expanding=True)),
        ),
    )


def at_places(model: str, places: Collection[Place], present: Versions = ANY_VERSION) -> dict[str, Any]:
    """What `within` is asked with."""
    parts = {f"{name}s": sorted({getattr(place, name) for place in places}) for name in Place._fields}
    versions = [f"{name} {version}" for name, version in present.items()]
    return {"model": model, **parts, "versioned": list(present), "present": versions}


class TallyCount(NamedTuple):
    """One row of a tally, apart from where it belongs."""

    kind: str
    reason: str
    pairs: int
    harm: int
    benefit: int
    amount: int


_UNIT = Kind.UNIT.value


def tally_of(counts: Iterable[TallyCount]) -> Tally:
    """All rows of one evaluator as a Tally, made at once: a row alone need not be one."""
    # Thousands of rows at every verdict: a Counter would ask Python for each that it lacks.
    counted: dict[Triple, int] = {}
    unscored: Counter[str] = Counter()
    both_failed = not_counted = 0
    for kind, reason, n, harm, benefit, amount in counts:
        if kind == _UNIT:
            triple = Triple(n, harm, benefit)
            counted[triple] = counted.get(triple, 0) + amount
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
    db: Database,
    model: str,
    tier: str,
    discordant_only: bool = False,
    limit: int = 50,
    evaluators: Collection[str] = (),
) -> list[RecentPair]:
    """The latest pairs of a candidate, newest first; discordant ones are those whose arms differ. Of some
    evaluators, or of all where none is named."""
    if limit < 1:
        raise ValueError(f"limit must be at least 1, got {limit}")
    wanted = (units.c.model == model) & (units.c.tier == tier) & (units.c.arm == Arm.CANDIDATE.value)
    if discordant_only:
        wanted &= units.c.discordant & (pairs.c.baseline_passed != pairs.c.candidate_passed)
    if evaluators:
        wanted &= units.c.evaluator.in_(sorted(evaluators))
    return latest_pairs(db, wanted, limit)


def latest_pairs(db: Database, wanted: ColumnElement[bool], limit: int) -> list[RecentPair]:
    """The latest pairs of which a condition on `units` and `pairs` holds, newest first."""
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


_TALLIES: Select[Any] = select(
    *(tallies.c[name] for name in (*Place._fields, "evaluator", *TallyCount._fields))
).where(within(tallies))
_OVERTAKING: Select[Any] = (
    select(
        pairs.c.baseline_passed,
        pairs.c.candidate_passed,
        pairs.c.own_stratum,
        units.c.unit_id,
        *(units.c[name] for name in ("conversation", *Place._fields, "evaluator", "version")),
        *(units.c[name] for name in ("stratum", "marginals", "tenant")),
    )
    .join(pairs, pairs.c.unit_id == units.c.unit_id)
    .where(
        units.c.model == bindparam("model", type_=String),
        units.c.taken_at >= bindparam("oldest"),
        units.c.counted,
        pairs.c.outcome == PairOutcome.SCORED.value,
    )
)
# Made once: making a statement costs more than asking it.
