"""Flagger's webhooks: 200 lets a canary go on, 403 and 409 stop it with one line, 204 would be a failure.

Flagger sends no header of its own, so the token stands in `metadata.token` (or, as anywhere at the gates, in
the URL as `https://any:TOKEN@HOST/...`); neither is ever logged or echoed here. 5xx is asked again and its
body thrown away. `rollback` means the opposite of the others: 200 rolls back, so it has a path of its own and
every hook says in `metadata.hook` what it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import PlainTextResponse

from service.approval.access import Caller, Scope, require
from service.approval.desk import CallerOf, Desk
from service.approval.dialects.asking import judgement_of
from service.approval.dialects.gate_schemas import GateQuery
from service.approval.dialects.judgement import Basis, Judgement, State, one_sentence
from service.approval.errors import Problem, echo
from service.approval.failures import Failures
from service.approval.front import FindCaller
from service.approval.gate_hook_schemas import FlaggerHook

STOPPED = {State.APPROVED: 200, State.REJECTED: 403, State.INCONCLUSIVE: 409}
ROLLED_BACK = {State.APPROVED: 403, State.REJECTED: 200, State.INCONCLUSIVE: 409}
"""Only what is known to do harm, or was taken back, is rolled back; what is not known goes on."""
GOES_ON = frozenset(
    {"confirm-rollout", "pre-rollout", "rollout", "confirm-traffic-increase", "confirm-promotion"}
)
NOTED = frozenset({"post-rollout", "event"})
ROLLBACK = "rollback"
HOOKS = (*sorted(GOES_ON | NOTED), ROLLBACK)
SAYS = frozenset({"hook", "token", "artifact", "basis", "model", "tier"})
"""What `metadata` may say; with a key of another name something would stay unbound that was meant to bind."""
LINES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Go on; of `rollback`: roll back now.",
        "content": {"text/plain": {"example": "approved: tier w8a8 was approved."}},
    },
    403: {"description": "Rejected, or a token that may not ask; of `rollback`: approved, carry on."},
    409: {"description": "Inconclusive, or `metadata.hook` names another hook than the path."},
    412: {"description": "`metadata` lacks `hook`, or says what no gate knows."},
}
Posted = Annotated[GateQuery, Query()]


def flagger_routes(desk: Desk, find_caller: FindCaller, failures: Failures) -> APIRouter:
    """Every kind of hook, and the gate paths of Flagger's own load tester."""
    router = APIRouter()

    def answered(
        answer: Callable[[], PlainTextResponse], request: Request, caller: Caller, hook: FlaggerHook
    ) -> PlainTextResponse:
        """One line whatever happens: Flagger shows the body of a refusal."""
        peer = request.client.host if request.client else ""

        def find(secret: str) -> Caller | None:
            return failures.looked_up(peer, secret, find_caller)

        try:
            _admit(caller, hook, find)
            return answer()
        except Problem as problem:
            return line(problem.status, f"{problem.message}. {problem.hint}".rstrip(" ."))

    @router.post(
        "/flagger/models/{model:path}/tiers/{tier:path}/{kind}",
        summary="Flagger: a webhook of a canary",
        response_class=PlainTextResponse,
        responses=LINES,
    )
    def flagger(
        model: str,
        tier: str,
        kind: str,
        hook: FlaggerHook,
        asked: Posted,
        caller: CallerOf,
        request: Request,
    ) -> PlainTextResponse:
        """`kind` is the webhook's type; 200 goes on, and of `rollback` alone rolls back."""

        def answer() -> PlainTextResponse:
            _check_kind(kind, hook)
            if kind in NOTED:
                return line(200, f"noted: {kind} changes nothing here.")
            found = _judged(desk, model, tier, hook, asked)
            return _rolled_back(found) if kind == ROLLBACK else line(STOPPED[found.state], found.line)

        return answered(answer, request, caller, hook)

    @router.post(
        "/flagger/gate/{act}",
        summary="Flagger: stock gate",
        response_class=PlainTextResponse,
        responses=LINES,
    )
    def flagger_gate(
        act: str, hook: FlaggerHook, asked: Posted, caller: CallerOf, request: Request
    ) -> PlainTextResponse:
        """As the load tester's: `approve` is always open, `halt` always closed, `check` is the judgement."""

        def answer() -> PlainTextResponse:
            if act == "approve":
                return line(200, "OK")
            if act == "halt":
                return line(403, "Forbidden")
            if act == "check":
                found = _judged(desk, *_named(hook), hook, asked)
                return line(200 if found.state is State.APPROVED else 403, found.line)
            return _by_hand(act, opens="tiergate approve MODEL TIER", closes="tiergate revoke MODEL TIER")

        return answered(answer, request, caller, hook)

    @router.post(
        "/flagger/rollback/{act}",
        summary="Flagger: stock rollback gate",
        response_class=PlainTextResponse,
        responses=LINES,
    )
    def flagger_rollback(
        act: str, hook: FlaggerHook, asked: Posted, caller: CallerOf, request: Request
    ) -> PlainTextResponse:
        """`check`: 200 rolls back, and is said of a rejected tier alone."""

        def answer() -> PlainTextResponse:
            if act == "check":
                return _rolled_back(_judged(desk, *_named(hook), hook, asked))
            return _by_hand(act, opens="tiergate revoke MODEL TIER", closes="tiergate approve MODEL TIER")

        return answered(answer, request, caller, hook)

    return router


def line(status: int, text: str) -> PlainTextResponse:
    """One line of text under a status; never empty."""
    return PlainTextResponse(f"{' '.join(text.split())}\n", status_code=status)


def _admit(caller: Caller, hook: FlaggerHook, find_caller: FindCaller) -> None:
    """401 or 403 unless the request, or its metadata, shows a token that may read."""
    shown = (hook.metadata or {}).get("token")
    if caller.scope is None and shown is not None:
        found = find_caller(shown) if shown.isascii() and len(shown) <= 1024 else None
        if found is None:
            raise Problem(401, "unauthorized", "metadata.token is unknown, revoked or expired")
        caller = found
    if caller.scope is None:
        raise Problem(401, "unauthorized", "metadata.token is missing: a token with scope `read` is needed")
    require(caller, Scope.READ, "asking a gate")


def _check_kind(kind: str, hook: FlaggerHook) -> None:
    """A path and a `metadata.hook` that agree: a URL copied to another hook would mean the opposite."""
    if kind not in HOOKS:
        raise Problem(404, "not_found", f"{echo(kind)} is no kind of hook; there are {', '.join(HOOKS)}")
    said = (hook.metadata or {}).get("hook")
    if said is None:
        raise Problem(412, "hook_unsaid", f"metadata.hook is missing: write `hook: {kind}` in this webhook")
    if said != kind:
        raise Problem(
            409, "hook_disagrees", f"metadata.hook is {echo(said)}, and this is the path of {kind} hooks"
        )


def _named(hook: FlaggerHook) -> tuple[str, str]:
    said = hook.metadata or {}
    missing = [name for name in ("model", "tier") if not said.get(name)]
    if missing:
        raise Problem(412, "tier_unsaid", f"metadata.{missing[0]} is missing: whose gate is this?")
    return said["model"], said["tier"]


def _judged(desk: Desk, model: str, tier: str, hook: FlaggerHook, asked: GateQuery) -> Judgement:
    said = hook.metadata or {}
    if unknown := sorted(set(said) - SAYS):
        raise Problem(
            412,
            "metadata_unknown",
            f"metadata.{echo(unknown[0])} means nothing here; known are {', '.join(sorted(SAYS))}",
        )
    basis = said.get("basis", asked.basis.value)
    if basis not in set(Basis):
        raise Problem(412, "metadata_unknown", f"metadata.basis is approval or verdict, not {echo(basis)}")
    artifact = said.get("artifact", asked.artifact)
    return judgement_of(desk, model, tier, artifact=artifact, basis=Basis(basis))


def _rolled_back(found: Judgement) -> PlainTextResponse:
    says = "roll back" if found.state is State.REJECTED else "carry on"
    return line(ROLLED_BACK[found.state], f"{says}: {one_sentence(found.line)}")


def _by_hand(act: str, *, opens: str, closes: str) -> PlainTextResponse:
    """The load tester's gates open for whoever posts to them; here a person's decision does that."""
    commands = {"open": opens, "close": closes}
    if act not in commands:
        return line(404, f"{echo(act)} is nothing that a gate can do")
    return line(403, f"not by a webhook: `{commands[act]}` does that, and the decision log keeps who and why")
