"""Spinnaker's webhook stage: POST to begin, GET of the same URL to poll; nothing is kept between them.

404 ends a stage at once, 429 and 5xx are asked again; a word that it does not know keeps it running. The URL
that is polled is the one that was asked, with the scheme of `api.public_url` under that name: behind a
gateway that ends TLS a request looks like http, and orca would send its token there in the clear.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from service.approval.desk import Desk
from service.approval.dialects.asking import judgement_of
from service.approval.dialects.gate_schemas import GateQuery, SpinnakerBody, SpinnakerOut
from service.approval.dialects.judgement import Judgement, State
from service.moments import moment

PATH = "/spinnaker/models/{model:path}/tiers/{tier:path}"
Word = Literal["running", "approved", "rejected", "inconclusive"]
WORDS: dict[State, Word] = {
    State.APPROVED: "approved",
    State.REJECTED: "rejected",
    State.INCONCLUSIVE: "inconclusive",
}


def spinnaker_routes(desk: Desk) -> APIRouter:
    """Both halves of the stage."""
    router = APIRouter()

    @router.get(PATH, summary="Spinnaker: poll a webhook stage")
    def spinnaker_poll(
        model: str, tier: str, asked: Annotated[GateQuery, Query()], request: Request
    ) -> SpinnakerOut:
        """`$.status`: running, approved, rejected or inconclusive; `$.progress`: why, as text."""
        found = judgement_of(desk, model, tier, artifact=asked.artifact, basis=asked.basis)
        return _spelled(found, _url(desk, request))

    @router.post(PATH, summary="Spinnaker: begin a webhook stage")
    def spinnaker_begin(
        model: str,
        tier: str,
        asked: Annotated[GateQuery, Query()],
        request: Request,
        response: Response,
        body: SpinnakerBody | None = None,
    ) -> SpinnakerOut:
        """The same answer at once, and where to poll, in the body and as `Location`. A payload is refused."""
        found = judgement_of(desk, model, tier, artifact=asked.artifact, basis=asked.basis)
        response.headers["Location"] = url = _url(desk, request)
        return _spelled(found, url)

    return router


def _url(desk: Desk, request: Request) -> str:
    scheme, _, authority = (desk.config.public_url or "").partition("://")
    ours = request.url.netloc.lower() == authority.lower()
    return str(request.url.replace(scheme=scheme) if scheme and ours else request.url)


def _spelled(found: Judgement, url: str) -> SpinnakerOut:
    return SpinnakerOut(
        status=WORDS[found.state] if found.settled else "running",
        progress=found.line,
        status_url=url,
        score=found.score,
        evaluation_id=found.evaluation_id,
        n_pairs=found.n_pairs,
        approved_at=None if found.approved_at is None else moment(found.approved_at),
        expires_at=None if found.expires_at is None else moment(found.expires_at),
        evidence_age=None if found.evidence_age is None else int(found.evidence_age),
    )
