"""GitHub's deployment protection rule: a signed request comes in, the answer is owed through the outbox.

`deployment_callback_url` is compared with what the configuration allows and never called: of it only the
number of the run is kept (ADR 31).
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
from service.store.outgoing.gate_terms import GITHUB, GithubTerms

SIGNATURE, DELIVERY, EVENT = "X-Hub-Signature-256", "X-GitHub-Delivery", "X-GitHub-Event"
OURS = "deployment_protection_rule"
REPOSITORY = re.compile(r"[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}")


def github_routes(desk: Desk) -> APIRouter:
    """Where the App's webhook points."""
    router = APIRouter()

    @router.post(
        "/github",
        summary="GitHub: webhook of the App",
        status_code=202,
        openapi_extra=ANY_OBJECT,
    )
    async def github(request: Request) -> NotedOut:
        """Signed with the App's webhook secret; the run is answered later, from the outbox."""
        raw = await request.body()
        return await run_in_threadpool(_noted, desk, raw, dict(request.headers))

    return router


def _noted(desk: Desk, raw: bytes, headers: dict[str, str]) -> NotedOut:
    terms = desk.config.gates.github
    if terms is None:
        raise Problem(404, "not_configured", "no GitHub App is configured", hint="set `pipelines.github`")
    given = headers.get(SIGNATURE.lower(), "")
    payload = signed_object(
        raw,
        secret=terms.secret,
        signature=given.removeprefix("sha256=") if given.startswith("sha256=") else None,
        header=SIGNATURE,
    )
    event = headers.get(EVENT.lower(), "")
    if event != OURS or payload.get("action") != "requested":
        return NotedOut(noted="ignored")
    return NotedOut(noted=_owe(desk, terms, Reader(payload), headers.get(DELIVERY.lower(), "")[:100]).value)


def _owe(desk: Desk, terms: GithubTerms, payload: Reader, delivery: str) -> Asked:
    repository = payload.text("repository", "full_name")
    environment = payload.text("environment")
    run = run_of(payload.text("deployment_callback_url", longest=1000), terms.url, repository)
    target = terms.environments.get((repository.lower(), environment.lower()))
    if target is None:
        raise Problem(
            422,
            "not_configured",
            f"environment {echo(environment)} of {echo(repository)} is no gate of ours",
            hint="name it under `pipelines.github.environments`",
        )
    place = {
        "repository": repository,
        "run": run,
        "environment": environment,
        "installation": payload.number("installation", "id"),
    }
    return ask(
        desk.db,
        tool=GITHUB,
        # The delivery's id is no part of what is signed: whoever replays a request can write another.
        key=(repository.lower(), str(run), environment.lower(), str(payload.number("deployment", "id"))),
        delivery=delivery,
        model=target.model,
        tier=target.tier,
        basis=target.basis,
        place=place,
        now=desk.now(),
        reopens=frozenset({CallbackState.GIVEN_UP}),
    )


def run_of(callback_url: str, api: str, repository: str) -> int:
    """The number of the run in a callback URL of this API and repository; 422 for any other URL."""
    ours = re.fullmatch(
        rf"{re.escape(f'{api}/repos/{repository}')}/actions/runs/([0-9]{{1,18}})/deployment_protection_rule",
        callback_url,
        re.IGNORECASE,
    )
    if ours is None or not REPOSITORY.fullmatch(repository) or {".", ".."} & set(repository.split("/")):
        raise Problem(
            422,
            "foreign_callback",
            f"deployment_callback_url is not of {echo(repository)} below {api}",
            hint="`pipelines.github.url` names the API that this App belongs to",
        )
    return int(ours[1])
