"""`PUT` and `DELETE .../approval`, `POST .../rollback`: read where the ladder stands, decide, then change.

The route that the decision was made on is named again when it is changed (`expect`): if somebody else was
faster, everything is read and decided anew.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool

from service.approval.access import Caller, Scope, require
from service.approval.answers import approval_out, policy_digest, verdict_out
from service.approval.backends import ask_health
from service.approval.capacity import in_the_way
from service.approval.desk import CallerOf, Desk
from service.approval.errors import Problem
from service.approval.names import find_candidate, find_tier
from service.approval.promotion import (
    artifact_of,
    check_verdict,
    highest,
    is_same,
    lasts,
    placed,
    rollback_target,
    without,
)
from service.approval.promotion import below as next_below
from service.approval.publishing import publish
from service.approval.schemas import ApprovalBody, ChangeOut, RollbackBody
from service.fleet import Route
from service.store import approvals as stored
from service.store.routes import RouteMoved, set_route
from service.store.standing import Standing, tiers_gone

ATTEMPTS = 4
"""How often a change is decided anew because another one came first."""
NONE = RollbackBody()


def approval_routes(desk: Desk) -> APIRouter:
    """The routes that change something."""
    router = APIRouter(tags=["decisions of people and pipelines"])

    @router.put("/models/{model:path}/tiers/{tier:path}/approval", summary="Let a tier serve")
    async def approve(model: str, tier: str, caller: CallerOf, body: ApprovalBody | None = None) -> ChangeOut:
        """Refused with 409 and the reasons unless the verdict is `accept`. Repeating it changes nothing."""
        asked = body or ApprovalBody()
        if asked.override:
            require(caller, Scope.ADMIN, "approving against the verdict")
            if asked.reason is None:
                raise Problem(422, "reason_required", "an override needs a reason", hint='add "reason"')
        return await _settle(lambda: _approve(desk, model, tier, asked, caller))

    @router.delete("/models/{model:path}/tiers/{tier:path}/approval", summary="Take an approval back")
    async def revoke(
        model: str,
        tier: str,
        caller: CallerOf,
        reason: Annotated[str | None, Query(max_length=2000)] = None,
        force: Annotated[bool, Query(description="Do not ask whether the next tier is up.")] = False,
    ) -> ChangeOut:
        """If the tier serves, the next lower approved one takes over. Repeating it changes nothing."""
        return await _settle(lambda: _revoke(desk, model, tier, caller, reason=reason, force=force))

    @router.post("/models/{model:path}/rollback", summary="Route a model to a lower rung")
    async def rollback(model: str, caller: CallerOf, body: RollbackBody | None = None) -> ChangeOut:
        """Needs no evidence. The approval of the tier that served stays: revoke it if it may not return.

        Name `to` or `if_serving` in a call that may be repeated, or it goes down one rung each time.
        """
        return await _settle(lambda: _roll_back(desk, model, caller, body or NONE))

    return router


async def _settle(change: Callable[[], Awaitable[ChangeOut]]) -> ChangeOut:
    for _ in range(ATTEMPTS):
        try:
            return await change()
        except RouteMoved:
            continue
    raise Problem(
        409, "route_moved", "others keep changing this route", hint="look at the decision log, then try again"
    )


async def _approve(desk: Desk, model: str, tier: str, body: ApprovalBody, caller: Caller) -> ChangeOut:
    standing = await run_in_threadpool(desk.standing, model)
    candidate = find_candidate(standing.ladder, tier)
    rung = standing.rung(tier)
    override = check_verdict(rung, body)
    now, seconds = desk.now(), lasts(body.expires_in)
    verdict = verdict_out(standing, rung, desk.config.policy, now=now)
    approval = stored.Approval(
        model=model,
        tier=tier,
        actor=caller.name,
        at=now,
        expires_at=None if seconds is None else now + seconds,
        artifact=artifact_of(candidate, body.artifact),
        override=override,
        reason=body.reason,
        epoch=verdict.epoch,
        policy_digest=policy_digest(desk.config.policy),
        evaluators=dict(desk.config.evaluators),
        verdict=verdict.model_dump(mode="json"),
    )
    route = placed(standing, tier, desk.config.promotion)
    known = rung.approval if is_same(rung.approval, approval, now) else None
    changed = known is None or route is not None or bool(rung.frozen)
    warnings: tuple[str, ...] = ()
    if route is not None:
        warnings = await _check_room(desk, standing, route, tier)
    if changed:
        await run_in_threadpool(
            stored.put_approval,
            desk.db,
            approval,
            route=route,
            expect=standing.route.version,
        )
    published = await run_in_threadpool(publish, desk, standing.ladder)
    shown = approval_out(approval if changed else known or approval, now=now)
    return published.answer(tier, changed=changed, approval=shown, warnings=warnings)


async def _revoke(
    desk: Desk, model: str, tier: str, caller: Caller, *, reason: str | None, force: bool
) -> ChangeOut:
    standing = await run_in_threadpool(desk.standing, model)
    find_candidate(standing.ladder, tier)
    rung, route = standing.rung(tier), None
    warnings: tuple[str, ...] = ()
    if rung.weight:
        target = next_below(standing, tier)
        route = without(standing.route, tier, target)
        warnings = await _check_room(desk, standing, route, target, force=force)
    changed = await run_in_threadpool(
        stored.revoke,
        desk.db,
        model,
        tier,
        at=desk.now(),
        actor=caller.name,
        reason=reason,
        route=route,
        expect=standing.route.version,
    )
    if not changed and route is not None:
        # It serves without an approval in force: the route goes back all the same.
        await _move(desk, standing, route, caller, reason=reason, because="revoked")
        changed = True
    published = await run_in_threadpool(publish, desk, standing.ladder)
    return published.answer(tier, changed=changed, warnings=warnings)


async def _roll_back(desk: Desk, model: str, caller: Caller, body: RollbackBody) -> ChangeOut:
    standing = await run_in_threadpool(desk.standing, model)
    serving = highest(standing)
    gone = await run_in_threadpool(tiers_gone, desk.db, standing.ladder)
    if gone and (body.if_serving is None or body.if_serving in gone):
        return await _let_go(desk, standing, caller, body, gone)
    if body.if_serving is None or find_tier(standing.ladder, body.if_serving).name == serving:
        target = rollback_target(standing, body.to)
    else:
        target = serving  # somebody was faster: nothing is left to do
    warnings: tuple[str, ...] = ()
    # Rolling back to the highest serving tier leaves a split route as it is: anything else would promote it.
    changed = target != serving
    if changed:
        route = Route.only(model, target)
        warnings = await _check_room(desk, standing, route, target, force=body.force)
        await _move(
            desk,
            standing,
            route,
            caller,
            reason=body.reason,
            because=f"rolled back from {serving}",
        )
    published = await run_in_threadpool(publish, desk, standing.ladder)
    return published.answer(target, changed=changed, warnings=warnings)


async def _let_go(
    desk: Desk, standing: Standing, caller: Caller, body: RollbackBody, gone: Sequence[str]
) -> ChangeOut:
    """Issue a route to the baseline, which serves alone while the one in force names tiers that are gone."""
    baseline = standing.ladder.baseline.name
    if body.to is not None:
        rollback_target(standing, body.to)
    route = Route.only(standing.ladder.model, baseline)
    warnings = await _check_room(desk, standing, route, baseline, force=body.force)
    because = f"no longer configured: {', '.join(gone)}"
    await _move(desk, standing, route, caller, reason=body.reason, because=because)
    published = await run_in_threadpool(publish, desk, standing.ladder)
    return published.answer(baseline, changed=True, warnings=warnings)


async def _move(
    desk: Desk, standing: Standing, route: Route, caller: Caller, *, reason: str | None, because: str
) -> None:
    await run_in_threadpool(
        set_route,
        desk.db,
        route,
        at=desk.now(),
        actor=caller.name,
        action="roll_back",
        tier=route.serving,
        detail={"because": because, "reason": reason},
        expect=standing.route.version,
    )


async def _check_room(
    desk: Desk, standing: Standing, route: Route, target: str, *, force: bool = False
) -> tuple[str, ...]:
    """Warnings about backends that are down; 409 when the target has no room for its share of the new route,
    unless a person insists.
    """
    tier = standing.ladder.tier(target)
    health = await ask_health(tier, timeout_seconds=desk.config.probe_seconds)
    problem = in_the_way(standing.ladder, health, standing.route, route)
    if problem is not None and not force:
        raise Problem(
            409,
            "target_no_room" if health.can_serve else "target_unhealthy",
            f"{problem}: the route stays",
            hint="start backends or choose another tier; a rollback or revocation can be forced",
        )
    return tuple(f"a backend of {target!r} is down: {url}: {why}" for url, why in health.down.items())
