"""`GET .../differences`: where the answers of pairs differ, field by field, beside the control."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from service.approval.desk import Desk
from service.approval.detail_schemas import DetailsOut, NamedDetailOut
from service.approval.names import find_candidate, find_evaluator, find_ladder
from service.store.scored.details import read_details
from service.store.scored.evidence import Place
from service.store.scored.units import Arm

DEFAULT = "field_agreement"


def detail_routes(desk: Desk) -> APIRouter:
    """What comparisons saw."""
    router = APIRouter(tags=["verdicts"])

    @router.get("/models/{model:path}/tiers/{tier:path}/differences", summary="Where answers differ")
    def differences(
        model: str,
        tier: str,
        evaluator: Annotated[
            str,
            Query(description="What compares (field_agreement, side_by_side), or whose failures to count."),
        ] = DEFAULT,
    ) -> DetailsOut:
        """Every field of the requests' schemas with how often it agreed, and how it differed, in this epoch.

        Of evaluators that judge one answer: their classes, with the failed answers of each arm.
        """
        ladder = find_ladder(desk.config.ladders, model)
        find_candidate(ladder, tier)
        version = find_evaluator(desk.config.evaluators, evaluator)
        epoch, base = desk.config.epoch_of(model, tier), ladder.baseline.name
        found = read_details(
            desk.db,
            model,
            candidate=Place(tier, Arm.CANDIDATE.value, epoch),
            control=Place(base, Arm.CONTROL.value, desk.config.epoch_of(model, base)),
            evaluator=evaluator,
            version=version,
        )
        return DetailsOut(
            model=model,
            tier=tier,
            epoch=epoch,
            evaluator=evaluator,
            version=version,
            names=[
                NamedDetailOut(name=each.name, candidate=dict(each.candidate), control=dict(each.control))
                for each in found
            ],
        )

    return router
