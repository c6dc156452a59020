"""The pairs that speak against a tier: how many, how the answers differ, where they are, some of them.

Labels and one-sentence reasons only. No prompt is in the store, and `retention` takes the reasons away.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import islice

from sqlalchemy import ColumnElement, func, or_, select

from service.store.scored.evidence import RecentPair, latest_pairs
from service.store.scored.units import Arm, PairOutcome
from service.store.sql.database import Database
from service.store.sql.schema import pairs, units

MOST_STRATA = 5
"""From which examples are taken, the worst first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstPairs:
    """Counted pairs of one evaluator in which an arm failed and the other did not."""

    evaluator: str
    pairs: int
    labels: Mapping[tuple[str, str], int]
    """By the baseline's and the candidate's label, the most frequent first."""
    strata: Mapping[str, int]
    """By crossed stratum, the most frequent first."""
    examples: tuple[RecentPair, ...]
    """The latest of each of the worst strata."""


def worst_pairs(
    db: Database,
    *,
    model: str,
    tier: str,
    epoch: str,
    evaluator: str,
    both_ways: bool = False,
    limit: int = 10,
) -> WorstPairs:
    """Pairs that only the candidate failed; `both_ways`, those that only the baseline failed as well.

    `limit` is of examples, at least 1.
    """
    if limit < 1:
        raise ValueError(f"limit must be at least 1, got {limit}")
    passed, did = pairs.c.baseline_passed, pairs.c.candidate_passed
    against = or_(passed & ~did, ~passed & did) if both_ways else passed & ~did
    wanted = (
        (units.c.model == model)
        & (units.c.tier == tier)
        & (units.c.arm == Arm.CANDIDATE.value)
        & units.c.discordant
        & (units.c.epoch == epoch)
        & (units.c.evaluator == evaluator)
        & units.c.counted
        & (pairs.c.outcome == PairOutcome.SCORED)
        & against
    )
    labels = _counted(db, wanted, (pairs.c.baseline_label, pairs.c.candidate_label))
    strata = {names[0]: amount for names, amount in _counted(db, wanted, (units.c.stratum,)).items()}
    each = -(-limit // max(1, min(len(strata), MOST_STRATA)))
    examples = [
        example
        for stratum in islice(strata, MOST_STRATA)
        for example in latest_pairs(db, wanted & (units.c.stratum == stratum), each)
    ]
    return WorstPairs(
        evaluator=evaluator,
        pairs=sum(strata.values()),
        labels={(baseline, candidate): amount for (baseline, candidate), amount in labels.items()},
        strata=strata,
        examples=tuple(examples[:limit]),
    )


def _counted(
    db: Database, wanted: ColumnElement[bool], names: Collection[ColumnElement[str]]
) -> dict[tuple[str, ...], int]:
    amount = func.count().label("amount")
    with db.read() as connection:
        rows = connection.execute(
            select(*names, amount)
            .select_from(units.join(pairs, pairs.c.unit_id == units.c.unit_id))
            .where(wanted)
            .group_by(*names)
            .order_by(amount.desc(), *names)
        ).all()
    return {tuple(str(name) for name in row[:-1]): int(row[-1]) for row in rows}
