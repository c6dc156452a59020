"""`/healthz`, `/readyz`: for kubelets and load balancers; they tell nothing of the models."""

from __future__ import annotations

from fastapi import APIRouter
from redis import RedisError
from starlette.responses import JSONResponse, Response

from service.approval.desk import Desk
from service.approval.schemas import HealthOut, ReadyOut
from service.store.decided.routes import current_routes
from service.store.sql.database import StoreUnusable

PATHS = ("/healthz", "/readyz")


def probe_routes(desk: Desk) -> APIRouter:
    """Is the process alive; can it answer questions."""
    router = APIRouter(tags=["health"])

    @router.get("/healthz", summary="Is the process alive")
    async def healthz() -> HealthOut:
        """Touches no store."""
        return HealthOut(status="ok")

    @router.get(
        "/readyz", summary="Can it answer", response_model=ReadyOut, responses={503: {"model": ReadyOut}}
    )
    def readyz() -> Response:
        """503 without its database. Redis is told of and not needed: verdicts and approvals rest on SQL."""
        database = redis = "ok"
        try:
            current_routes(desk.db)
        except StoreUnusable:
            database = "unusable"
        try:
            desk.captures.ping()
        except RedisError:
            redis = "unreachable"
        ready = database == "ok"
        answer = ReadyOut(status="ready" if ready else "not ready", database=database, redis=redis)
        return JSONResponse(answer.model_dump(), status_code=200 if ready else 503)

    return router
