"""What changed since the run before: figures that are compared, and what else was different.

A change is told as one only where the limits of both figures leave no number in common; otherwise it may be
chance. (Two 95 % intervals that do not touch are a difference at well below 5 %; that they touch shows
nothing.) A figure without limits is told and not judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from service.decision.verdict import Decision
from service.leaves import apart, short_text_of
from service.report.document import Earlier, Report, TierReport
from service.report.measured import Figure, Metric


def _of_load(metric: Metric, share: str) -> Callable[[TierReport], Figure | None]:
    def figure(tier: TierReport) -> Figure | None:
        latency = None if tier.load is None else tier.load.latency(metric)
        return None if latency is None else latency.quantiles.get(share)

    return figure


KEY_FIGURES: Mapping[str, Callable[[TierReport], Figure | None]] = {
    "pass_rate": lambda tier: tier.load.pass_rate if tier.load else None,
    "ttft_p95": _of_load(Metric.TTFT, "0.95"),
    "tpot_p95": _of_load(Metric.TPOT, "0.95"),
    "goodput": lambda tier: tier.money.tokens_per_second if tier.money else None,
    "unit_cost": lambda tier: tier.money.unit_cost if tier.money else None,
    "net_benefit": lambda tier: tier.money.net_benefit if tier.money else None,
    "failure_rise": lambda tier: tier.money.failure_rise if tier.money else None,
}
"""What is compared, in the order in which it is told."""
BETTER_UP = {"pass_rate", "goodput", "net_benefit"}


class Change(StrEnum):
    """Which way a figure went, as far as the limits show."""

    BETTER = "better"
    WORSE = "worse"
    WITHIN = "within"
    """The limits have numbers in common."""
    TOLD = "told"
    """A side has no limits."""
    NEW = "new"
    GONE = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureChange:
    """One figure of one tier, then and now."""

    tier: str
    figure: str
    before: Figure | None
    now: Figure | None
    change: Change


def key_figures(tier: TierReport) -> dict[str, Figure]:
    """Those that a tier has."""
    found = {name: read(tier) for name, read in KEY_FIGURES.items()}
    return {name: figure for name, figure in found.items() if figure is not None}


def as_earlier(report: Report) -> Earlier:
    """What a later report compares itself with."""
    ended = report.run.ended_at
    return Earlier(
        id=report.run.id,
        ended_at=report.made_at if ended is None else ended,
        decisions={each.name: each.verdict.decision for each in report.tiers if each.verdict is not None},
        figures={each.name: key_figures(each) for each in report.tiers},
        manifest=report.manifest,
    )


def figure_changes(report: Report, earlier: Earlier) -> tuple[FigureChange, ...]:
    """All figures that either run has, by tier along the ladder; tiers that are gone last."""
    now = {each.name: key_figures(each) for each in report.tiers}
    names = [*now, *(name for name in earlier.figures if name not in now)]
    return tuple(
        FigureChange(
            tier=tier,
            figure=figure,
            before=before,
            now=after,
            change=judged(figure, before, after),
        )
        for tier in names
        for figure in KEY_FIGURES
        for before in [earlier.figures.get(tier, {}).get(figure)]
        for after in [now.get(tier, {}).get(figure)]
        if before is not None or after is not None
    )


def judged(figure: str, before: Figure | None, now: Figure | None) -> Change:
    """Which way it went."""
    if before is None:
        return Change.NEW
    if now is None:
        return Change.GONE
    if before.lower is None or before.upper is None or now.lower is None or now.upper is None:
        return Change.TOLD
    if now.lower > before.upper:
        return Change.BETTER if figure in BETTER_UP else Change.WORSE
    if now.upper < before.lower:
        return Change.WORSE if figure in BETTER_UP else Change.BETTER
    return Change.WITHIN


def decision_changes(
    report: Report, earlier: Earlier
) -> tuple[tuple[str, Decision | None, Decision | None], ...]:
    """Tiers whose verdict is another one now: (tier, before, now)."""
    now = {each.name: each.verdict.decision for each in report.tiers if each.verdict is not None}
    names = [*now, *(name for name in earlier.decisions if name not in now)]
    found = [(name, earlier.decisions.get(name), now.get(name)) for name in names]
    return tuple(each for each in found if each[1] is not each[2])


def manifest_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[tuple[str, str, str], ...]:
    """Where two manifests differ: (place, before, now), each as a short text."""
    return tuple(
        (place, "–" if was is None else was, "–" if new is None else new)
        for place, was, new in apart(before, now, shown=short_text_of)
    )
