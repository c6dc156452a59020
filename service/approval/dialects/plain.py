"""Plain HTTP for anything that knows status codes: 200, 403 or 409, and one line of text."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import PlainTextResponse

from service.approval.desk import Desk
from service.approval.dialects.asking import judgement_of
from service.approval.dialects.gate_schemas import GateQuery
from service.approval.dialects.judgement import State

STATUSES = {State.APPROVED: 200, State.REJECTED: 403, State.INCONCLUSIVE: 409}
STATE_HEADER = "Tiergate-State"
"""Only judgements have it: a refusal of the door or of a gateway between is none, whatever its status."""
LINES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Approved.",
        "content": {"text/plain": {"example": "approved: tier w8a8 was approved."}},
    },
    403: {"description": "Rejected, in one line of text; as JSON: the caller may not ask."},
    409: {"description": "Inconclusive, in one line of text; as JSON: the baseline, which has no verdict."},
}


def plain_routes(desk: Desk) -> APIRouter:
    """For curl and whatever is built of it."""
    router = APIRouter()

    @router.get(
        "/plain/models/{model:path}/tiers/{tier:path}",
        summary="Anything: a status and a line",
        response_class=PlainTextResponse,
        responses=LINES,
    )
    def plain(model: str, tier: str, asked: Annotated[GateQuery, Query()]) -> PlainTextResponse:
        """200 approved, 403 rejected, 409 inconclusive; the header `Tiergate-State` says the same."""
        found = judgement_of(desk, model, tier, artifact=asked.artifact, basis=asked.basis)
        return PlainTextResponse(
            f"{found.line}\n", status_code=STATUSES[found.state], headers={STATE_HEADER: found.state.value}
        )

    return router
