"""How far a criterion is: pairs so far, still needed, at most asked for, and by when at the present rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from service.decision.evidence import Evidence
from service.decision.policy import Role
from service.decision.verdict import Decision, Finding, Verdict
from service.report.writing import NONE
from service.store.verdicts.looks import LookTaken

DAY = 86_400.0
RATE_DAYS = 3.0
"""The rate is that of the pairs since the last look that is at least so old."""
LEAST_SPAN = 600.0
"""Seconds of an epoch that tell a rate."""
FARTHEST_DAYS = 3 * 365.0
"""A date beyond is no date."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One criterion on its way to a decision."""

    criterion: str
    role: Role
    decision: Decision
    pairs: int
    conversations: int
    more: int | None
    """Pairs still expected, at the present discordance; None when decided, or out of sight."""
    most: int | None
    """N_max: where the epoch stops asking for more; None before it is fixed."""
    ended: bool
    """Undecided with all the pairs or all the time that it may ask for."""
    per_day: float | None
    """Pairs a day lately; None where nothing tells."""
    expected_at: float | None
    """Unix seconds; None when decided, out of sight, or without pairs coming in."""

    @property
    def rate(self) -> str:
        """`per_day` to three digits, so that a page does not change with every second."""
        if self.per_day is None:
            return NONE
        told = float(f"{self.per_day:.3g}")
        return f"{told:,.0f}" if told >= 100 else f"{told:g}"

    @property
    def share(self) -> float:
        """Of the pairs that are expected to be needed, those that are there."""
        if self.decision is not Decision.UNDECIDED:
            return 1.0
        whole = self.pairs + (self.more or 0)
        return self.pairs / whole if whole and self.more is not None else 0.0


def progress(
    verdict: Verdict, evidence: Evidence, looks: Sequence[LookTaken], *, now: float
) -> list[Progress]:
    """Every criterion of the verdict, in its order."""
    return [
        _progress(
            finding,
            evidence.max_pairs.get(finding.criterion),
            _per_day(
                finding.n, [each for each in looks if each.criterion == finding.criterion], evidence, now=now
            ),
            now=now,
        )
        for finding in verdict.findings
    ]


def expected(steps: Sequence[Progress]) -> float | None:
    """When the last criterion that decides has its pairs; None when none lacks any, or one has no date."""
    open_ones = [each for each in steps if each.role is Role.DECISIVE and each.decision is Decision.UNDECIDED]
    dates = [each.expected_at for each in open_ones]
    known = [date for date in dates if date is not None]
    return max(known) if known and len(known) == len(dates) else None


def _progress(finding: Finding, most: int | None, per_day: float | None, *, now: float) -> Progress:
    days = finding.more_pairs / per_day if finding.more_pairs is not None and per_day else None
    return Progress(
        criterion=finding.criterion,
        role=finding.role,
        decision=finding.decision,
        pairs=finding.n,
        conversations=finding.conversations,
        more=finding.more_pairs,
        most=most,
        ended=finding.not_shown,
        per_day=per_day,
        expected_at=None if days is None or days > FARTHEST_DAYS else now + days * DAY,
    )


def _per_day(pairs: int, looks: Sequence[LookTaken], evidence: Evidence, *, now: float) -> float | None:
    """Since the last look that is old enough, or else since the epoch's first pair."""
    before = [look for look in looks if now - look.at >= RATE_DAYS * DAY and look.pairs <= pairs]
    if before:
        base = max(before, key=lambda look: look.at)
        return (pairs - base.pairs) * DAY / (now - base.at)
    age = evidence.age_seconds
    return pairs * DAY / age if age is not None and age >= LEAST_SPAN else None
