"""Failures of any criterion, one pair a request: what a failure rate costs is counted once a request (A9).

The union over criteria, by conversation: a request whose JSON broke and whose answer was a refusal failed
once. Counted from the pairs in one query, seconds at a million of them: once a load run, not at every look.
As in a verdict, what overtook a capture that is still being replayed does not count yet (`evidence`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, func, or_, select

from service.decision.tally import Tally, Triple
from service.store.scored.leases import oldest_awaited
from service.store.scored.units import Arm, PairOutcome
from service.store.sql.database import Database
from service.store.sql.schema import pairs, units

ANY: Mapping[str, str] = MappingProxyType({})


def read_failures(
    db: Database,
    model: str,
    tier: str,
    epoch: str,
    evaluators: Collection[str],
    *,
    versions: Mapping[str, str] = ANY,
) -> Tally:
    """Requests of the epoch that count under any of these evaluators, by who failed any of them.

    `versions`: of evaluators of which only one version is meant.
    """
    if not evaluators:
        return Tally()
    with db.read() as connection:
        oldest = oldest_awaited(connection, model)
        named = or_(*(_evaluator(name, versions) for name in sorted(evaluators)))
        rows = connection.execute(_counted(_requests(model, tier, epoch, named, oldest))).all()
    return Tally(
        units={Triple(int(n), int(harm), int(benefit)): int(amount) for n, harm, benefit, amount, _ in rows},
        both_failed=sum(int(both) for *_, both in rows),
    )


def _requests(
    model: str, tier: str, epoch: str, named: ColumnElement[bool], oldest: float | None
) -> Select[Any]:
    """Requests with their conversation, and 1 for each arm that failed any criterion."""
    requests = (
        select(
            units.c.conversation,
            func.max(case((pairs.c.baseline_passed.is_(False), 1), else_=0)).label("baseline"),
            func.max(case((pairs.c.candidate_passed.is_(False), 1), else_=0)).label("candidate"),
        )
        .join(pairs, pairs.c.unit_id == units.c.unit_id)
        .where(
            units.c.model == model,
            units.c.tier == tier,
            units.c.arm == Arm.CANDIDATE.value,
            units.c.epoch == epoch,
            units.c.counted,
            pairs.c.outcome == PairOutcome.SCORED.value,
            named,
        )
        .group_by(units.c.conversation, units.c.capture_id)
    )
    return requests if oldest is None else requests.where(units.c.taken_at < oldest)


def _counted(requests: Select[Any]) -> Select[Any]:
    """Conversations by triple, with their pairs that failed in both arms."""
    of = requests.subquery()
    conversations = (
        select(
            func.count().label("pairs"),
            func.sum(of.c.candidate * (1 - of.c.baseline)).label("harm"),
            func.sum(of.c.baseline * (1 - of.c.candidate)).label("benefit"),
            func.sum(of.c.baseline * of.c.candidate).label("both"),
        )
        .group_by(of.c.conversation)
        .subquery()
    )
    triple = [conversations.c[name] for name in Triple._fields]
    return select(*triple, func.count(), func.sum(conversations.c.both)).group_by(*triple)


def _evaluator(name: str, versions: Mapping[str, str]) -> ColumnElement[bool]:
    named = units.c.evaluator == name
    return and_(named, units.c.version == versions[name]) if name in versions else named
