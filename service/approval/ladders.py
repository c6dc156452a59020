"""`GET /models` and `GET .../ladder`."""

from __future__ import annotations

from fastapi import APIRouter

from service.approval.answers import ladder_out, model_out
from service.approval.desk import Desk
from service.approval.schemas import IssuedRouteOut, LadderOut, ModelsOut, RoutesOut
from service.store.decided.routes import current_routes
from service.store.verdicts.standing import route_of


def ladder_routes(desk: Desk) -> APIRouter:
    """What there is, and who serves."""
    router = APIRouter(tags=["models"])

    @router.get("/models", summary="Every model")
    def models() -> ModelsOut:
        """With its tiers and the one that serves now."""
        ladders = desk.config.ladders.values()
        return ModelsOut(models=[model_out(ladder, route_of(desk.db, ladder)) for ladder in ladders])

    @router.get("/routes", summary="Every route in force")
    def routes() -> RoutesOut:
        """Those that were ever changed, for proxies that ask while Redis is gone; from the database alone."""
        return RoutesOut(
            now=desk.now(),
            routes=[
                IssuedRouteOut(
                    model=route.model,
                    weights=dict(route.weights),
                    version=route.version,
                    issued_at=route.issued_at,
                )
                for route in current_routes(desk.db)
            ],
        )

    @router.get("/models/{model:path}/ladder", summary="A model's tiers and their states")
    def ladder(model: str) -> LadderOut:
        """Least to most aggressive; a model's name may have slashes, encoded or not."""
        return ladder_out(desk.standing(model))

    return router
