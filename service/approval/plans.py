"""What a change of who serves would do, worked out where the ladder stands and before anything is done.

A call that changes and a page that asks a person to confirm are made of the same plan, so that what is shown
is what is done. `mark` is what a confirmation is about: with another plan in its place nothing is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from starlette.concurrency import run_in_threadpool

from service.approval.answers import policy_digest, verdict_out
from service.approval.backends import ask_health
from service.approval.capacity import Room, room_of
from service.approval.desk import Desk
from service.approval.errors import Problem
from service.approval.names import find_candidate, find_tier
from service.approval.promotion import (
    artifact_of,
    below,
    check_verdict,
    highest,
    is_same,
    lasts,
    placed,
    rollback_target,
    without,
)
from service.approval.schemas import ApprovalBody, RollbackBody
from service.fleet import Route
from service.store.decided.approvals import Approval
from service.store.decided.chain import canonical
from service.store.decided.holds import HoldKind
from service.store.verdicts.rung import Rung
from service.store.verdicts.standing import Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """A row that the decision log gets."""

    action: str
    tier: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One change, decided on under the route of `standing`."""

    standing: Standing
    tier: str
    """Asked about; of a rollback, where the clients go."""
    changed: bool
    """False when everything is so already."""
    route: Route | None = None
    """In force afterwards; None: the present one stays."""
    room: Room | None = None
    """Of the tier that gets clients; None where none gets any."""
    approval: Approval | None = None
    """Given by this, or in force already and the same."""
    log: tuple[LogLine, ...] = ()
    because: str = ""
    """Why the route changes, in the log's words."""

    @property
    def rung(self) -> Rung:
        return self.standing.rung(self.tier)

    @property
    def after(self) -> Route:
        """The route once this is done."""
        return self.route or self.standing.route

    @property
    def mark(self) -> str:
        """Hexadecimal; the same as long as the same would be done for the same reasons."""
        approval, verdict = self.approval, self.rung.verdict
        told = {
            "model": self.standing.ladder.model,
            "tier": self.tier,
            "changed": self.changed,
            "version": self.standing.route.version,
            "before": dict(self.standing.route.weights),
            "after": dict(self.after.weights),
            "log": [[line.action, line.tier] for line in self.log],
            "decision": None if verdict is None else verdict.decision.value,
            "epoch": None if self.rung.evidence is None else self.rung.evidence.epoch,
            "held": sorted(hold.kind.value for hold in self.rung.held),
            "override": approval is not None and approval.override,
        }
        return sha256(canonical(told).encode()).hexdigest()

    def check(self, *, force: bool = False, confirmed: str | None = None) -> tuple[str, ...]:
        """Warnings about backends that are down; 409 where it cannot be done, or is not what was confirmed.

        Without room only a person who insists may go on.
        """
        if confirmed is not None and confirmed != self.mark:
            raise Problem(
                409,
                "not_as_shown",
                "it would do something else by now than was shown",
                hint="look at what it would do now, then confirm that",
            )
        if self.room is None:
            return ()
        health, lack = self.room.health, self.room.lack
        if lack is not None and not force:
            raise Problem(
                409,
                "target_no_room" if health.can_serve else "target_unhealthy",
                f"{lack}: the route stays",
                hint="start backends or choose another tier; a rollback, rejection or revocation "
                "can be forced",
            )
        return tuple(
            f"a backend of {health.tier!r} is down: {url}: {why}" for url, why in health.down.items()
        )


async def plan_approval(desk: Desk, model: str, tier: str, body: ApprovalBody, *, actor: str) -> Plan:
    """Refused with 409 and the reasons unless the verdict is `accept`, or the body overrides it."""
    standing = await run_in_threadpool(desk.standing, model)
    candidate = find_candidate(standing.ladder, tier)
    rung = standing.rung(tier)
    override = check_verdict(rung, body)
    now, seconds = desk.now(), lasts(body.expires_in)
    verdict = verdict_out(standing, rung, desk.config.policy)
    approval = Approval(
        model=model,
        tier=tier,
        actor=actor,
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
    return Plan(
        standing=standing,
        tier=tier,
        changed=changed,
        route=route,
        room=await _room(desk, standing, route, tier),
        approval=approval if changed else known or approval,
        log=_lines(("approve", tier) if changed else None, ("promote", tier) if route else None),
        because="approved",
    )


async def plan_revocation(desk: Desk, model: str, tier: str) -> Plan:
    """If the tier serves, the next lower approved one takes over."""
    standing = await run_in_threadpool(desk.standing, model)
    find_candidate(standing.ladder, tier)
    approval = standing.rung(tier).approval
    target, route = _handed_down(standing, tier)
    return Plan(
        standing=standing,
        tier=tier,
        changed=approval is not None or route is not None,
        route=route,
        room=await _room(desk, standing, route, target),
        log=_lines(
            None if approval is None else ("revoke", tier),
            None if route is None else ("roll_back", route.serving),
        ),
        because="revoked",
    )


async def plan_rejection(desk: Desk, model: str, tier: str) -> Plan:
    """As a revocation, and the tier is held in this epoch."""
    standing = await run_in_threadpool(desk.standing, model)
    find_candidate(standing.ladder, tier)
    rung = standing.rung(tier)
    target, route = _handed_down(standing, tier)
    rejected = any(hold.kind is HoldKind.REJECTED for hold in rung.barred)
    changed = not rejected or rung.approval is not None or route is not None
    return Plan(
        standing=standing,
        tier=tier,
        changed=changed,
        route=route,
        room=await _room(desk, standing, route, target),
        log=_lines(
            ("reject", tier) if changed else None,
            None if route is None else ("roll_back", route.serving),
        ),
        because="rejected",
    )


async def plan_rollback(desk: Desk, model: str, body: RollbackBody) -> Plan:
    """To the tier asked for, or to the next lower approved one; to the baseline where the route is void.

    The highest serving tier as target leaves a split route as it is: anything else would promote it.
    """
    standing = await run_in_threadpool(desk.standing, model)
    serving = highest(standing)
    gone = standing.gone
    if gone and (body.if_serving is None or body.if_serving in gone):
        if body.to is not None:
            rollback_target(standing, body.to)
        target = standing.ladder.baseline.name
        return await _moved(desk, standing, target, f"no longer configured: {', '.join(gone)}")
    if body.if_serving is None or find_tier(standing.ladder, body.if_serving).name == serving:
        target = rollback_target(standing, body.to)
    else:
        target = serving  # somebody was faster: nothing is left to do
    if target == serving:
        return Plan(standing=standing, tier=target, changed=False)
    return await _moved(desk, standing, target, f"rolled back from {serving}")


async def _moved(desk: Desk, standing: Standing, target: str, because: str) -> Plan:
    route = Route.only(standing.ladder.model, target)
    return Plan(
        standing=standing,
        tier=target,
        changed=True,
        route=route,
        room=await _room(desk, standing, route, target),
        log=_lines(("roll_back", target)),
        because=because,
    )


def _handed_down(standing: Standing, tier: str) -> tuple[str, Route | None]:
    """Who takes over a tier's share, and the route then; None where it has none."""
    if not standing.rung(tier).weight:
        return tier, None
    target = below(standing, tier)
    return target, without(standing.route, tier, target)


async def _room(desk: Desk, standing: Standing, route: Route | None, target: str) -> Room | None:
    if route is None:
        return None
    health = await ask_health(standing.ladder.tier(target), timeout_seconds=desk.config.probe_seconds)
    return room_of(standing.ladder, health, standing.route, route)


def _lines(*rows: tuple[str, str] | None) -> tuple[LogLine, ...]:
    written: Sequence[tuple[str, str]] = [row for row in rows if row is not None]
    return tuple(LogLine(action=action, tier=tier) for action, tier in written)
