"""Argo Rollouts, provider `web`: always 200 with a state, since it takes any other status for an error.

More than `consecutiveErrorLimit` errors abort a rollout; what is no JSON it takes for a success before 1.10.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from service.approval.desk import Desk
from service.approval.dialects.asking import judgement_of
from service.approval.dialects.gate_schemas import ArgoJudgementOut, ArgoOut, GateQuery
from service.approval.dialects.judgement import State
from service.moments import moment


def argo_routes(desk: Desk) -> APIRouter:
    """What a web metric asks for."""
    router = APIRouter()

    @router.get("/argo/models/{model:path}/tiers/{tier:path}", summary="Argo Rollouts: web metric")
    def argo(model: str, tier: str, asked: Annotated[GateQuery, Query()]) -> ArgoOut:
        """Success is `result.verdict == "approved"`, failure is `result.verdict == "rejected"`."""
        found = judgement_of(desk, model, tier, artifact=asked.artifact, basis=asked.basis)
        return ArgoOut(
            data=ArgoJudgementOut(
                verdict=found.state,
                ok=found.state is State.APPROVED,
                score=found.score,
                reason=found.reason,
                evaluation_id=found.evaluation_id,
                n_pairs=found.n_pairs,
                expires_at=None if found.expires_at is None else moment(found.expires_at),
                evidence_age=None if found.evidence_age is None else int(found.evidence_age),
            )
        )

    return router
