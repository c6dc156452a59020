"""`PUT` and `DELETE .../approval`, `POST .../reject` and `.../rollback`: plan, then change.

The route that the plan was made on is named again when it is changed (`expect`): if somebody else was faster,
everything is read and decided anew. Pages call the same functions as the routes; `confirmed` is the mark of
the plan that a person was shown.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool

from service.approval.access import Caller, Scope, require
from service.approval.answers import approval_out
from service.approval.desk import CallerOf, Desk
from service.approval.errors import Problem
from service.approval.plans import (
    Plan,
    plan_approval,
    plan_rejection,
    plan_revocation,
    plan_rollback,
)
from service.approval.publishing import publish
from service.approval.schemas import ApprovalBody, ChangeOut, RejectionBody, RollbackBody
from service.fleet import Route
from service.store.decided import approvals as stored
from service.store.decided.holds import reject as hold_rejected
from service.store.decided.routes import RouteMoved, set_route

ATTEMPTS = 4
"""How often a change is decided anew because another one came first."""
NONE = RollbackBody()


def approval_routes(desk: Desk) -> APIRouter:
    """The routes that change something."""
    router = APIRouter(tags=["decisions of people and pipelines"])

    @router.put("/models/{model:path}/tiers/{tier:path}/approval", summary="Let a tier serve")
    async def put_approval(
        model: str, tier: str, caller: CallerOf, body: ApprovalBody | None = None
    ) -> ChangeOut:
        """Refused with 409 and the reasons unless the verdict is `accept`. Repeating it changes nothing."""
        return await approve(desk, model, tier, body or ApprovalBody(), caller)

    @router.delete("/models/{model:path}/tiers/{tier:path}/approval", summary="Take an approval back")
    async def delete_approval(
        model: str,
        tier: str,
        caller: CallerOf,
        reason: Annotated[str | None, Query(max_length=2000)] = None,
        force: Annotated[bool, Query(description="Do not ask whether the next tier is up.")] = False,
    ) -> ChangeOut:
        """If the tier serves, the next lower approved one takes over. Repeating it changes nothing."""
        return await revoke(desk, model, tier, caller, reason=reason, force=force)

    @router.post("/models/{model:path}/tiers/{tier:path}/reject", summary="Keep a tier out of service")
    async def post_rejection(model: str, tier: str, caller: CallerOf, body: RejectionBody) -> ChangeOut:
        """Takes its approval and its clients away, and holds it in this epoch whatever the verdict says.

        Another epoch ends it, and so does an approval with `override`. Repeating it changes nothing.
        """
        return await reject(desk, model, tier, body, caller)

    @router.post("/models/{model:path}/rollback", summary="Route a model to a lower rung")
    async def post_rollback(model: str, caller: CallerOf, body: RollbackBody | None = None) -> ChangeOut:
        """Needs no evidence. The approval of the tier that served stays: revoke it if it may not return.

        Name `to` or `if_serving` in a call that may be repeated, or it goes down one rung each time.
        """
        return await roll_back(desk, model, body or NONE, caller)

    return router


async def approve(
    desk: Desk, model: str, tier: str, body: ApprovalBody, caller: Caller, *, confirmed: str | None = None
) -> ChangeOut:
    """Let a tier serve; Problem with what is in the way."""
    if body.override:
        require(caller, Scope.ADMIN, "approving against the verdict")
        if body.reason is None:
            raise Problem(422, "reason_required", "an override needs a reason", hint='add "reason"')

    async def change() -> ChangeOut:
        plan = await plan_approval(desk, model, tier, body, actor=caller.name)
        warnings = plan.check(confirmed=confirmed)
        assert plan.approval is not None, "an approval is planned with it"
        if plan.changed:
            await run_in_threadpool(
                stored.put_approval,
                desk.db,
                plan.approval,
                route=plan.route,
                expect=plan.standing.route.version,
            )
        published = await run_in_threadpool(publish, desk, plan.standing.ladder)
        shown = approval_out(plan.approval, now=desk.now())
        return published.answer(tier, changed=plan.changed, approval=shown, warnings=warnings)

    return await _settle(change)


async def revoke(
    desk: Desk,
    model: str,
    tier: str,
    caller: Caller,
    *,
    reason: str | None,
    force: bool = False,
    confirmed: str | None = None,
) -> ChangeOut:
    """Take an approval back; Problem with what is in the way."""

    async def change() -> ChangeOut:
        plan = await plan_revocation(desk, model, tier)
        warnings = plan.check(force=force, confirmed=confirmed)
        changed = await run_in_threadpool(
            stored.revoke,
            desk.db,
            model,
            tier,
            at=desk.now(),
            actor=caller.name,
            reason=reason,
            route=plan.route,
            expect=plan.standing.route.version,
        )
        if not changed and plan.route is not None:
            # It serves without an approval in force: the route goes back all the same.
            await _move(desk, plan, plan.route, caller, reason=reason)
            changed = True
        published = await run_in_threadpool(publish, desk, plan.standing.ladder)
        return published.answer(tier, changed=changed, warnings=warnings)

    return await _settle(change)


async def reject(
    desk: Desk, model: str, tier: str, body: RejectionBody, caller: Caller, *, confirmed: str | None = None
) -> ChangeOut:
    """Keep a tier out of service in this epoch; Problem with what is in the way."""

    async def change() -> ChangeOut:
        plan = await plan_rejection(desk, model, tier)
        warnings = plan.check(force=body.force, confirmed=confirmed)
        evidence = plan.rung.evidence
        assert evidence is not None, "a candidate has evidence"
        changed = plan.changed and await run_in_threadpool(
            hold_rejected,
            desk.db,
            model=model,
            tier=tier,
            epoch=evidence.epoch,
            reason=body.reason,
            at=desk.now(),
            actor=caller.name,
            route=plan.route,
            expect=plan.standing.route.version,
        )
        published = await run_in_threadpool(publish, desk, plan.standing.ladder)
        return published.answer(tier, changed=changed, warnings=warnings)

    return await _settle(change)


async def roll_back(
    desk: Desk, model: str, body: RollbackBody, caller: Caller, *, confirmed: str | None = None
) -> ChangeOut:
    """Route a model to a lower rung; Problem with what is in the way."""

    async def change() -> ChangeOut:
        plan = await plan_rollback(desk, model, body)
        warnings = plan.check(force=body.force, confirmed=confirmed)
        if plan.route is not None:
            await _move(desk, plan, plan.route, caller, reason=body.reason)
        published = await run_in_threadpool(publish, desk, plan.standing.ladder)
        return published.answer(plan.tier, changed=plan.changed, warnings=warnings)

    return await _settle(change)


async def _settle(change: Callable[[], Awaitable[ChangeOut]]) -> ChangeOut:
    for _ in range(ATTEMPTS):
        try:
            return await change()
        except RouteMoved:
            continue
    raise Problem(
        409, "route_moved", "others keep changing this route", hint="look at the decision log, then try again"
    )


async def _move(desk: Desk, plan: Plan, route: Route, caller: Caller, *, reason: str | None) -> None:
    await run_in_threadpool(
        set_route,
        desk.db,
        route,
        at=desk.now(),
        actor=caller.name,
        action="roll_back",
        tier=route.serving,
        detail={"because": plan.because, "reason": reason},
        expect=plan.standing.route.version,
    )
