"""The API's answers as frozen values. Each keeps the JSON `document` it was read from.

Reading is strict about what it needs (a missing or mistyped field raises `AnswerUnreadable`) and blind to
what it does not know, so that a newer API may say more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from service.client.errors import AnswerUnreadable
from service.decision.policy import BaselineAfterApproval, Gate, Role
from service.decision.verdict import (
    Correction,
    Decision,
    Finding,
    GateState,
    Interval,
    LogE,
    StratumHarm,
    Verdict,
)

Document = Mapping[str, Any]
"""A parsed JSON object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionAsked:
    """One criterion as a policy puts it, and what is still missing under that policy."""

    criterion: str
    margin: float
    min_pairs: int
    decision: Decision | None = None
    """None where the policy has not been applied."""
    more_pairs: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldTo:
    """What the e-values of a verdict are compared with (logarithms), and where its epoch ends."""

    accept: float | None = None
    """None when no error rate is left."""
    harm: float
    strata: float
    max_pairs: Mapping[str, int]
    """N_max by criterion, once it is fixed."""
    age_seconds: float | None = None
    """Of the epoch, since its first counted pair."""
    restored: str | None = None
    """By whom, when and why earlier epochs are no attempts any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictReading:
    """A verdict, the policy it rests on, and what production's policy would say of the same evidence."""

    verdict: Verdict
    criteria: tuple[CriterionAsked, ...]
    production: tuple[CriterionAsked, ...]
    """Empty when the policy in force is production's."""
    evaluated_at: str
    """RFC 3339."""
    held_to: HeldTo
    document: Document


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteReading:
    """Which tiers answer clients, by weight in per cent."""

    version: int
    serving: str
    weights: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RungReading:
    """One tier of a ladder."""

    tier: str
    rung: int
    state: str
    weight: int
    summary: str
    decision: Decision | None
    """None for the baseline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderReading:
    """A model's tiers with their states and the route."""

    model: str
    route: RouteReading
    rungs: tuple[RungReading, ...]
    document: Document


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteChange:
    """What an approval, a revocation or a rollback did."""

    model: str
    tier: str
    """The tier asked about; of a rollback, the one that serves now."""
    changed: bool
    """False when everything was so already."""
    route: RouteReading
    published: bool
    """Whether the proxies have been told; if not, the guard tells them when Redis answers again."""
    warnings: tuple[str, ...]
    document: Document


def read_verdict(document: Document) -> VerdictReading:
    """The body of `GET .../verdict`."""
    return _reading(_verdict_reading, document)


def read_ladder(document: Document) -> LadderReading:
    """The body of `GET .../ladder`."""
    return _reading(_ladder, document)


def read_route_change(document: Document) -> RouteChange:
    """The body of `PUT` or `DELETE .../approval`, or of `POST .../rollback`."""
    return _reading(_route_change, document)


_T = TypeVar("_T")


def _reading(read: Callable[[Document], _T], document: Document) -> _T:
    try:
        return read(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise AnswerUnreadable(
            f"the answer is not what this version expects: {type(error).__name__}: {error}",
            "is the URL that of a Tiergate API, and of the same version as this command?",
        ) from error


def _verdict_reading(document: Document) -> VerdictReading:
    verdict = Verdict(
        model=str(document["model"]),
        tier=str(document["tier"]),
        decision=Decision(document["decision"]),
        reasons=tuple(str(reason) for reason in document["reasons"]),
        findings=tuple(_finding(finding) for finding in document["findings"]),
        gates={Gate(name): GateState(state) for name, state in document["gates"].items()},
        epoch=str(document["epoch"]),
        attempt=int(document["attempt"]),
        alpha_accept=float(document["alpha"]),
        not_shown=bool(document["not_shown"]),
        baseline_after_approval=BaselineAfterApproval(document["baseline_after_approval"]),
    )
    production = document["production"]
    return VerdictReading(
        verdict=verdict,
        criteria=tuple(_asked(criterion) for criterion in document["policy"]["criteria"]),
        production=()
        if production["in_force"]
        else tuple(_asked(criterion) for criterion in production["criteria"]),
        evaluated_at=str(document["evaluated_at"]),
        held_to=_held_to(document),
        document=document,
    )


def _held_to(document: Document) -> HeldTo:
    limits = document["thresholds"]
    return HeldTo(
        accept=_maybe(limits["accept"]),
        harm=float(limits["harm"]),
        strata=float(limits["strata"]),
        max_pairs={
            str(finding["criterion"]): int(finding["max_pairs"])
            for finding in document["findings"]
            if finding["max_pairs"] is not None
        },
        age_seconds=_maybe(document["age_seconds"]),
        restored=document.get("alpha_restored"),
    )


def _maybe(number: Any) -> float | None:
    return None if number is None else float(number)


def _stratum(document: Document) -> StratumHarm:
    return StratumHarm(
        stratum=str(document["stratum"]),
        n=int(document["n"]),
        conversations=int(document["conversations"]),
        harm=int(document["harm"]),
        benefit=int(document["benefit"]),
        estimate=float(document["estimate"]),
        log_e_harm=float(document["log_e_harm"]),
    )


def _finding(document: Document) -> Finding:
    interval, log_e = document["interval"], document["log_e"]
    more_pairs = document["more_pairs"]
    return Finding(
        criterion=str(document["criterion"]),
        decision=Decision(document["decision"]),
        reason=str(document["reason"]),
        n=int(document["n"]),
        conversations=int(document["conversations"]),
        harm=int(document["harm"]),
        benefit=int(document["benefit"]),
        estimate=_maybe(document["estimate"]),
        interval=_interval(interval),
        margin=float(document["margin"]),
        log_e=LogE(
            noninferiority=float(log_e["noninferiority"]),
            harm=float(log_e["harm"]),
            warn=float(log_e["warn"]),
        ),
        warn=bool(document["warn"]),
        more_pairs=None if more_pairs is None else int(more_pairs),
        role=Role(document["role"]),
        not_shown=bool(document["not_shown"]),
        worst_strata=tuple(_stratum(each) for each in document["worst_strata"]),
        log_e_holm=_maybe(document["log_e_holm"]),
        correction=_correction(document.get("correction")),
    )


def _interval(document: Document) -> Interval:
    return Interval(
        lower=float(document["lower"]),
        upper=float(document["upper"]),
        level=float(document["level"]),
        method=str(document["method"]),
    )


def _correction(document: Document | None) -> Correction | None:
    if document is None:
        return None
    return Correction(
        labels=int(document["labels"]),
        undecided=int(document["undecided"]),
        estimate=float(document["estimate"]),
        interval=_interval(document["interval"]),
        raw_estimate=float(document["raw_estimate"]),
        raw_interval=_interval(document["raw_interval"]),
        suffices=bool(document["suffices"]),
        missing=str(document["missing"]),
    )


def _asked(document: Document) -> CriterionAsked:
    decision, more_pairs = document.get("decision"), document.get("more_pairs")
    return CriterionAsked(
        criterion=str(document["criterion"]),
        margin=float(document["margin"]),
        min_pairs=int(document["min_pairs"]),
        decision=None if decision is None else Decision(decision),
        more_pairs=None if more_pairs is None else int(more_pairs),
    )


def _route(document: Document) -> RouteReading:
    return RouteReading(
        version=int(document["version"]),
        serving=str(document["serving"]),
        weights={str(tier): int(weight) for tier, weight in document["weights"].items()},
    )


def _ladder(document: Document) -> LadderReading:
    return LadderReading(
        model=str(document["model"]),
        route=_route(document["route"]),
        rungs=tuple(
            RungReading(
                tier=str(rung["tier"]),
                rung=int(rung["rung"]),
                state=str(rung["state"]),
                weight=int(rung["weight"]),
                summary=str(rung["summary"]),
                decision=None if rung["decision"] is None else Decision(rung["decision"]),
            )
            for rung in document["rungs"]
        ),
        document=document,
    )


def _route_change(document: Document) -> RouteChange:
    return RouteChange(
        model=str(document["model"]),
        tier=str(document["tier"]),
        changed=bool(document["changed"]),
        route=_route(document["route"]),
        published=bool(document["published"]),
        warnings=tuple(str(warning) for warning in document["warnings"]),
        document=document,
    )
