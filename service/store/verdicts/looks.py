"""Looks at tiers, kept: what a confidence sequence was when, and what each criterion said then.

A verdict is computed at every reading and nothing of it is kept, so how it came about would be lost. The
guard looks every minute; of its looks one is kept whenever the pairs have grown by a twentieth since the last
that is, or by a hundredth where the decision is another. So their number grows with the logarithm of the
pairs (some 280 from one to a million), and none has to be thinned out later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, and_, func, select, tuple_

from service.decision.verdict import Decision, Finding, Verdict
from service.store.sql.database import Database
from service.store.sql.look_tables import looks_taken

GROWTH = 1.05
"""How many times the pairs of the last look that is kept make another worth keeping."""
GROWTH_WHEN_DECIDED = 1.01
"""The same where the decision changed; not 1, or a criterion on its threshold would be kept every minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookTaken:
    """One criterion of one tier as it stood at a look; shares, positive is worse."""

    criterion: str
    at: float
    """Unix seconds."""
    pairs: int
    conversations: int
    harm: int
    benefit: int
    estimate: float
    lower: float
    upper: float
    level: float
    """Coverage of both limits together, such as .9."""
    margin: float
    decision: Decision


def keep_looks(db: Database, verdicts: Iterable[Verdict], *, at: float) -> int:
    """Keep what these verdicts, read at that time, say of criteria that have grown; how many were kept.

    Writes only when something is to be kept.
    """
    told = list(verdicts)
    if not told:
        return 0
    with db.read() as connection:
        last = _last(connection, told)
    rows = [row for verdict in told for row in _due(verdict, last, at=at)]
    if not rows:
        return 0
    with db.write() as connection:
        # Two guards may look at the same pairs: the first of them has written what they saw.
        connection.execute(db.insert(looks_taken).on_conflict_do_nothing(), rows)
    return len(rows)


def read_looks(db: Database, model: str, tier: str, epoch: str) -> list[LookTaken]:
    """Every look that is kept of a tier in an epoch, by criterion and in the order of their pairs."""
    of = looks_taken.c
    with db.read() as connection:
        rows = connection.execute(
            select(looks_taken)
            .where(of.model == model, of.tier == tier, of.epoch == epoch)
            .order_by(of.criterion, of.pairs)
        ).all()
    return [_look(row) for row in rows]


def _last(connection: Connection, verdicts: Iterable[Verdict]) -> dict[tuple[str, ...], tuple[int, str]]:
    """Pairs and decision of the last look that is kept, by model, tier, epoch and criterion."""
    of = looks_taken.c
    key = (of.model, of.tier, of.epoch, of.criterion)
    wanted = sorted({(each.model, each.tier, each.epoch) for each in verdicts})
    most = (
        select(*key, func.max(of.pairs).label("pairs"))
        .where(tuple_(of.model, of.tier, of.epoch).in_(wanted))
        .group_by(*key)
        .subquery()
    )
    same = and_(*(of[name] == most.c[name] for name in ("model", "tier", "epoch", "criterion", "pairs")))
    rows = connection.execute(select(*key, of.pairs, of.decision).join(most, same))
    return {tuple(row[:4]): (int(row[4]), str(row[5])) for row in rows}


def _due(
    verdict: Verdict, last: dict[tuple[str, ...], tuple[int, str]], *, at: float
) -> Iterator[dict[str, Any]]:
    for finding in verdict.findings:
        pairs, decision = last.get((verdict.model, verdict.tier, verdict.epoch, finding.criterion), (0, ""))
        least = pairs * (GROWTH if finding.decision == decision else GROWTH_WHEN_DECIDED)
        if finding.n > pairs and finding.n >= least:
            yield _row(verdict, finding, at=at)


def _row(verdict: Verdict, finding: Finding, *, at: float) -> dict[str, Any]:
    assert finding.estimate is not None, "a finding with pairs has an estimate"
    return {
        "model": verdict.model,
        "tier": verdict.tier,
        "epoch": verdict.epoch,
        "criterion": finding.criterion,
        "pairs": finding.n,
        "at": at,
        "conversations": finding.conversations,
        "harm": finding.harm,
        "benefit": finding.benefit,
        "estimate": finding.estimate,
        "lower": finding.interval.lower,
        "upper": finding.interval.upper,
        "level": finding.interval.level,
        "margin": finding.margin,
        "decision": finding.decision.value,
    }


def _look(row: Row[Any]) -> LookTaken:
    told: dict[str, Any] = {name: getattr(row, name) for name in LookTaken.__dataclass_fields__}
    return LookTaken(**{**told, "decision": Decision(row.decision)})
