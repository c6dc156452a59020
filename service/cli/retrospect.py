"""Stored evidence under another policy: both verdicts of every tier asked about, as one JSON document."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from service.decision.evidence import Evidence
from service.decision.ladder import decide_ladder
from service.decision.policy import Policy, Units
from service.decision.rejudge import evidence_under, side_by_side
from service.settings import Settings
from service.settings.nearest import nearest
from service.settings.policy_file import PolicyRead, read_policy
from service.settings.questions import question_of
from service.store.scored.evidence import Place
from service.store.scored.units import Arm
from service.store.sql.database import Database, StoreUnusable, open_database
from service.store.verdicts.ladder_counts import LadderCounts, read_counts
from service.store.verdicts.ladder_facts import read_facts
from service.store.verdicts.standing import Question, Standing, read_standing

if TYPE_CHECKING:
    from service.fleet import Ladder


class Unknown(ValueError):
    """A model or a tier that the configuration does not have, with the nearest that it has."""


class NoEvidence(Exception):
    """Nothing is stored, or it cannot be read."""


def retrospect(settings: Settings, other: PolicyRead, model: str | None, tier: str | None) -> dict[str, Any]:
    """What `tiergate policy diff` prints; raises `Unknown` and `NoEvidence`."""
    ladders = _ladders(settings.ladders, model, tier)
    try:
        db = open_database(settings.database_url, make=False)
    except StoreUnusable as error:
        raise NoEvidence(f"no evidence to judge again: {error}") from None
    try:
        question, now = question_of(settings, db), time.time()
        standings = [read_standing(db, ladder, question, now=now) for ladder in ladders]
        judged = [
            each
            for standing in standings
            for each in _rejudged(standing, other, _counts(db, standing, other.policy, question), tier)
        ]
    except StoreUnusable as error:
        raise NoEvidence(str(error)) from None
    finally:
        db.close()
    in_force = read_policy(settings.path)
    return {
        "retrospective": True,
        "in_force": str(settings.path),
        "other": str(other.path),
        "changes": in_force.changes_to(other),
        "new_epochs": not in_force.counts_alike(other),
        "tiers": judged,
        "notes": list(_notes(in_force.policy, other.policy, standings)),
    }


def _ladders(ladders: Mapping[str, Ladder], model: str | None, tier: str | None) -> list[Ladder]:
    if model is None:
        return list(ladders.values())
    if model not in ladders:
        raise Unknown(f"no model is called {model!r}; did you mean {nearest(model, ladders)!r}?")
    candidates = [each.name for each in ladders[model].candidates]
    if tier is not None and tier not in candidates:
        there_are = f"did you mean {nearest(tier, candidates)!r}?" if candidates else "it has none"
        raise Unknown(f"{model} has no candidate {tier!r}; {there_are}")
    return [ladders[model]]


def _counts(db: Database, standing: Standing, other: Policy, question: Question) -> LadderCounts:
    """What could speak against a tier at the other policy's margins."""
    model, baseline = standing.ladder.model, standing.ladder.baseline.name
    places = [_place(rung.evidence) for rung in standing.rungs if rung.evidence is not None]
    control = Place(baseline, Arm.CONTROL.value, question.epoch_of(model, baseline))
    with db.read() as connection:
        return read_counts(
            connection,
            model,
            places,
            control,
            read_facts(connection, model, [place.epoch for place in places]),
            policy=other,
            universe=question.universe,
            present=question.present,
        )


def _place(evidence: Evidence) -> Place:
    return Place(evidence.tier, Arm.CANDIDATE.value, evidence.epoch)


def _rejudged(
    standing: Standing, other: PolicyRead, counts: LadderCounts, tier: str | None
) -> Iterator[dict[str, Any]]:
    candidates = [rung for rung in standing.rungs if rung.evidence is not None and rung.verdict is not None]
    verdicts = decide_ladder(
        other.policy,
        [
            evidence_under(
                other.policy,
                replace(rung.evidence, measured_within=other.promotion.measured_seconds),
                strata=counts.strata[_place(rung.evidence)],
                tenants=counts.tenants[_place(rung.evidence)],
            )
            for rung in candidates
            if rung.evidence is not None
        ],
    )
    for rung, after in zip(candidates, verdicts, strict=True):
        before = rung.verdict
        if before is None or tier not in (None, rung.tier.name):
            continue
        yield {
            "model": before.model,
            "tier": before.tier,
            "epoch": before.epoch,
            "attempt": before.attempt,
            "decision_differs": before.decision is not after.decision,
            "side_by_side": [
                {**asdict(each), "why": list(each.why), "changed": each.changed}
                for each in side_by_side(before, after)
            ],
        }


def _notes(in_force: Policy, other: Policy, standings: list[Standing]) -> Iterator[str]:
    """What this comparison cannot tell."""
    if in_force.units is not other.units or (
        in_force.units is Units.CLOSED_CONVERSATIONS and in_force.idle_seconds != other.idle_seconds
    ):
        yield (
            f"pairs were counted by units {in_force.units.value}; under the other policy others would have "
            "counted, which this cannot show"
        )
    stored = {
        name
        for standing in standings
        for rung in standing.rungs
        if rung.evidence is not None
        for name in rung.evidence.tallies
    }
    for criterion in other.visible:
        if criterion.evaluator not in stored:
            yield f"nothing is stored of {criterion.evaluator} in these epochs"
