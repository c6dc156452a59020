"""`GET .../epochs`: what a tier's engines are, and every epoch that it ever had with all that it was."""

from __future__ import annotations

from fastapi import APIRouter

from service.approval.desk import Desk
from service.approval.names import find_ladder, find_tier
from service.approval.schemas import EpochOut, EpochsOut
from service.engines.settling import Settlement
from service.moments import moment
from service.store.verdicts.current_epochs import known_epochs
from service.store.verdicts.observations import read_settlements


def epoch_routes(desk: Desk) -> APIRouter:
    """What evidence belongs to."""
    router = APIRouter(tags=["verdicts"])

    @router.get("/models/{model:path}/tiers/{tier:path}/epochs", summary="What evidence belongs to")
    def epochs(model: str, tier: str) -> EpochsOut:
        """The tier's epochs, the latest first, each with all that its hash is made of."""
        find_tier(find_ladder(desk.config.ladders, model), tier)
        current = desk.config.epoch_of(model, tier)
        settlement = read_settlements(desk.db).get((model, tier), Settlement())
        return EpochsOut(
            model=model,
            tier=tier,
            epoch=current,
            unsettled=settlement.unsettled or None,
            epochs=[
                EpochOut(
                    epoch=known.epoch,
                    current=known.epoch == current,
                    attempt=known.attempt,
                    first_seen=moment(known.first_seen),
                    facts=dict(known.facts),
                )
                for known in known_epochs(desk.db, model, tier)
            ],
        )

    return router
