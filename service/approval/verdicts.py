"""`GET .../verdict`, `.../verdict/why` and `.../evidence`: computed from the tallies of the moment."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from service.approval.answers import evidence_out, verdict_out
from service.approval.breakdowns import strata_out, tenants_out
from service.approval.desk import Desk
from service.approval.names import find_candidate, find_evaluator, find_ladder
from service.approval.reasons import why_out
from service.approval.tags import UNCHANGED, IfNoneMatch, Tagged
from service.approval.verdict_schemas import EvidenceOut, VerdictOut, WhyOut
from service.decision.policy import Hypothesis
from service.store.scored.breakdown import read_strata, read_tenants
from service.store.scored.evidence import recent_pairs
from service.store.scored.worst import worst_pairs
from service.store.verdicts.standing import Standing

MOST_PAIRS = 200
MOST_EXAMPLES = 50
ANY = "any"
"""As an evaluator: all of them."""


def _listed(desk: Desk, evaluator: str | None) -> tuple[str, ...]:
    """Whose pairs are listed: where two texts are compared most pairs differ, and left no room for others."""
    if evaluator is None:
        return tuple(criterion.evaluator for criterion in desk.config.policy.decisive)
    if evaluator == ANY:
        return ()
    find_evaluator(desk.config.evaluators, evaluator)
    return (evaluator,)


def verdict_routes(desk: Desk) -> APIRouter:
    """What the evidence is and what it amounts to."""
    router = APIRouter(tags=["verdicts"])
    told: dict[tuple[str, str], tuple[Standing, Tagged]] = {}

    @router.get(
        "/models/{model:path}/tiers/{tier:path}/verdict",
        summary="What the evidence amounts to",
        response_model=VerdictOut,
        responses=UNCHANGED,
    )
    def verdict(model: str, tier: str, known: IfNoneMatch = None) -> Response:
        """accept, undecided or reject, with the reasons and every number; valid however often it is read.

        `ETag` stays the same until anything but the clock has changed: ask again with `If-None-Match`.
        """
        find_candidate(find_ladder(desk.config.ladders, model), tier)
        standing = desk.standing(model)
        of, answer = told.get((model, tier), (None, None))
        if answer is None or of is not standing:
            answer = Tagged.of(verdict_out(standing, standing.rung(tier), desk.config.policy))
            told[model, tier] = standing, answer
        return answer.response(known)

    @router.get("/models/{model:path}/tiers/{tier:path}/evidence", summary="What a verdict rests on")
    def evidence(
        model: str,
        tier: str,
        pairs: Annotated[int, Query(ge=0, le=MOST_PAIRS, description="How many single pairs.")] = 20,
        discordant: Annotated[bool, Query(description="Only pairs whose arms differ.")] = True,
        evaluator: Annotated[
            str | None,
            Query(description="Pairs of this evaluator, or of `any`; by default of those that decide."),
        ] = None,
    ) -> EvidenceOut:
        """Tallies by evaluator, the control, coverage, strata, without each tenant, and the latest pairs."""
        find_candidate(find_ladder(desk.config.ladders, model), tier)
        rung, policy = desk.standing(model).rung(tier), desk.config.policy
        known, present = rung.evidence, desk.question.present
        assert known is not None, "a candidate has evidence"
        listed = _listed(desk, evaluator)
        latest = recent_pairs(desk.db, model, tier, discordant, pairs, listed) if pairs else []
        return evidence_out(
            rung,
            latest,
            strata=strata_out(policy, known, read_strata(desk.db, model, tier, known.epoch, present=present)),
            tenants=tenants_out(policy, known, read_tenants(desk.db, model, tier, known.epoch, present)),
        )

    @router.get("/models/{model:path}/tiers/{tier:path}/verdict/why", summary="Why it amounts to that")
    def why(
        model: str,
        tier: str,
        pairs: Annotated[
            int, Query(ge=1, le=MOST_EXAMPLES, description="How many examples of each criterion.")
        ] = 5,
    ) -> WhyOut:
        """The chain from counts to decision, step by step, with the worst pairs and how to check it."""
        find_candidate(find_ladder(desk.config.ladders, model), tier)
        standing, policy = desk.standing(model), desk.config.policy
        rung = standing.rung(tier)
        evidence, verdict = rung.evidence, rung.verdict
        assert evidence is not None, "a candidate has evidence"
        assert verdict is not None, "a candidate has a verdict"
        worst = [
            worst_pairs(
                desk.db,
                model=model,
                tier=tier,
                epoch=evidence.epoch,
                evaluator=criterion.evaluator,
                both_ways=criterion.hypothesis is Hypothesis.EQUIVALENT,
                limit=pairs,
            )
            for criterion in policy.visible
        ]
        return why_out(policy, evidence, verdict, worst, now=standing.at)

    return router
