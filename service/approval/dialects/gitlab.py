"""GitLab's external status check: a signed request comes in, the answer is owed through the outbox.

GitLab fails a check that is pending for two minutes; what is still inconclusive is answered before.
"""

from __future__ import annotations

import re

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool

from service.approval.desk import Desk
from service.approval.dialects.signed import Reader, signed_object
from service.approval.errors import Problem, echo
from service.approval.gate_hook_schemas import ANY_OBJECT, NotedOut
from service.store.outgoing.callbacks import Asked, CallbackState, ask
from service.store.outgoing.gate_terms import GITLAB_CHECK, GitlabTerms

SIGNATURE = "X-Gitlab-Signature"
SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
ENDED = frozenset(CallbackState) - {CallbackState.WAITING}
"""Somebody pressed `retry`: GitLab sends the same request and expects an answer once more."""


def gitlab_routes(desk: Desk) -> APIRouter:
    """Where the `external_url` of status checks points."""
    router = APIRouter()

    @router.post(
        "/gitlab/status-check",
        summary="GitLab: external status check",
        status_code=202,
        openapi_extra=ANY_OBJECT,
    )
    async def status_check(request: Request) -> NotedOut:
        """Signed with the check's shared secret; the check is answered within seconds, from the outbox."""
        raw = await request.body()
        return await run_in_threadpool(_noted, desk, raw, request.headers.get(SIGNATURE))

    return router


def _noted(desk: Desk, raw: bytes, signature: str | None) -> NotedOut:
    terms = desk.config.gates.gitlab
    if terms is None or terms.secret is None:
        raise Problem(
            404, "not_configured", "no status check is configured", hint="set `pipelines.gitlab.checks`"
        )
    payload = signed_object(raw, secret=terms.secret, signature=signature, header=SIGNATURE)
    return NotedOut(noted=_owe(desk, terms, Reader(payload)).value)


def _owe(desk: Desk, terms: GitlabTerms, payload: Reader) -> Asked:
    project = payload.text("project", "path_with_namespace", longest=1000)
    check = payload.text("external_approval_rule", "name")
    sha = payload.text("object_attributes", "last_commit", "id")
    if SHA.fullmatch(sha) is None:
        raise Problem(422, "invalid_request", "object_attributes.last_commit.id: a commit is expected")
    target = terms.checks.get((project.lower(), check))
    if target is None:
        raise Problem(
            422,
            "not_configured",
            f"the status check {echo(check)} of {echo(project)} is no gate of ours",
            hint="name it under `pipelines.gitlab.checks`",
        )
    place = {
        "project": payload.number("project", "id"),
        "merge_request": payload.number("object_attributes", "iid"),
        "check": payload.number("external_approval_rule", "id"),
        "sha": sha,
    }
    return ask(
        desk.db,
        tool=GITLAB_CHECK,
        key=tuple(str(place[name]) for name in ("project", "merge_request", "check", "sha")),
        delivery="",
        model=target.model,
        tier=target.tier,
        basis=target.basis,
        place=place,
        now=desk.now(),
        reopens=ENDED,
    )
