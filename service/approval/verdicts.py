"""`GET .../verdict` and `GET .../evidence`: computed from the tallies at every call."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from service.approval.answers import evidence_out, verdict_out
from service.approval.desk import Desk
from service.approval.names import find_candidate, find_ladder
from service.approval.schemas import EvidenceOut, VerdictOut
from service.store.evidence import recent_pairs

MOST_PAIRS = 200


def verdict_routes(desk: Desk) -> APIRouter:
    """What the evidence is and what it amounts to."""
    router = APIRouter(tags=["verdicts"])

    @router.get("/models/{model:path}/tiers/{tier:path}/verdict", summary="What the evidence amounts to")
    def verdict(model: str, tier: str) -> VerdictOut:
        """accept, undecided or reject, with the reasons and every number; valid however often it is read."""
        find_candidate(find_ladder(desk.config.ladders, model), tier)
        standing = desk.standing(model, up_to=tier)
        return verdict_out(standing, standing.rung(tier), desk.config.policy, now=desk.now())

    @router.get("/models/{model:path}/tiers/{tier:path}/evidence", summary="What a verdict rests on")
    def evidence(
        model: str,
        tier: str,
        pairs: Annotated[int, Query(ge=0, le=MOST_PAIRS, description="How many single pairs.")] = 20,
        discordant: Annotated[bool, Query(description="Only pairs whose arms differ.")] = True,
    ) -> EvidenceOut:
        """Tallies by evaluator, the control, coverage by stratum, and the latest pairs."""
        find_candidate(find_ladder(desk.config.ladders, model), tier)
        rung = desk.standing(model, up_to=tier).rung(tier)
        latest = recent_pairs(desk.db, model, tier, discordant_only=discordant, limit=pairs) if pairs else []
        return evidence_out(rung, latest)

    return router
