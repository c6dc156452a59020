"""What a decision would do, told before it is made, by the plan that it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from anyio.from_thread import run as in_loop

from service.approval.desk import Desk
from service.approval.errors import Problem
from service.approval.interventions import (
    Foreseen,
    Intervention,
    check_skip,
    foresee,
    standing_of,
)
from service.approval.plans import (
    LogLine,
    Plan,
    plan_approval,
    plan_rejection,
    plan_revocation,
    plan_rollback,
)
from service.approval.promotion import highest
from service.approval.schemas import ApprovalBody, RollbackBody
from service.dashboard.acting.offers import Act
from service.fleet import Backend
from service.store.decided.chain import canonical
from service.store.verdicts.rung import Rung
from service.store.verdicts.standing import Standing

_STILL_TO_COME = "still to be written"
"""Stands for the reason while somebody is asked for it; a decision is never made with it."""
_INTERVENTIONS = {
    Act.SKIP: Intervention.SKIP,
    Act.UNSKIP: Intervention.UNSKIP,
    Act.RESTORE_ALPHA: Intervention.RESTORE_ALPHA,
}
_ROWS = {Act.SKIP: "skip", Act.UNSKIP: "skip_undone", Act.RESTORE_ALPHA: "restore_alpha"}
"""What the decision log calls it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Per cent of the clients of one tier."""

    tier: str
    before: int
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One backend that was asked whether it is up."""

    url: str
    takes: int | None
    """Requests at once, as declared."""
    down: str
    """Why it is taken to be down; empty when it is up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Foretold:
    """All that a page says before somebody confirms."""

    act: Act
    standing: Standing
    rung: Rung
    changed: bool
    mark: str
    """What is confirmed; another one means that something else would be done."""
    log: tuple[LogLine, ...]
    plan: Plan | None = None
    """Of what concerns the route; None of what concerns verdicts."""
    verdicts: Sequence[Foreseen] = ()
    targets: tuple[str, ...] = ()
    """Where a rollback can go, the lowest first."""
    steps: tuple[int, ...] = ()
    """Shares in per cent that the guard gives the tier later, one after the other."""

    @property
    def shares(self) -> tuple[Share, ...]:
        """Of every tier that has clients before or after; empty when the route stays."""
        if self.plan is None or self.plan.route is None:
            return ()
        before, after = self.standing.route.weights, self.plan.route.weights
        names = [tier.name for tier in self.standing.ladder.tiers]
        return tuple(
            Share(tier=name, before=before.get(name, 0), after=after.get(name, 0))
            for name in names
            if before.get(name) or after.get(name)
        )

    @property
    def asked(self) -> tuple[Asked, ...]:
        """The backends of the tier that gets clients."""
        room = None if self.plan is None else self.plan.room
        if room is None:
            return ()
        backends: Sequence[Backend] = self.standing.ladder.tier(room.health.tier).backends
        return tuple(
            Asked(url=each.url, takes=each.max_concurrency, down=room.health.down.get(each.url, ""))
            for each in backends
        )


def foretell(desk: Desk, act: Act, model: str, tier: str, *, actor: str, to: str | None = None) -> Foretold:
    """Asks the database, and backends whether they are up; called from a thread of the server.

    Problem where it cannot be done; `to` is where a rollback should go.
    """
    if act in _INTERVENTIONS:
        return _intervention(desk, act, model, tier)
    plan = _plan(desk, act, model, tier, actor=actor, to=to)
    standing = plan.standing
    return Foretold(
        act=act,
        standing=standing,
        rung=plan.rung if tier in standing.gone else standing.rung(tier),
        changed=plan.changed,
        mark=plan.mark,
        log=plan.log,
        plan=plan,
        targets=_targets(standing) if act is Act.ROLL_BACK and not standing.gone else (),
        steps=_steps(desk, plan, tier) if act in (Act.APPROVE, Act.OVERRIDE) else (),
    )


def _plan(desk: Desk, act: Act, model: str, tier: str, *, actor: str, to: str | None) -> Plan:
    match act:
        case Act.REJECT:
            return in_loop(plan_rejection, desk, model, tier)
        case Act.REVOKE:
            return in_loop(plan_revocation, desk, model, tier)
        case Act.ROLL_BACK:
            if tier not in desk.standing(model).gone:
                standing_of(desk, model, tier)
            return in_loop(plan_rollback, desk, model, RollbackBody(to=to, if_serving=tier))
        case _:
            override = act is Act.OVERRIDE
            body = ApprovalBody(override=override, reason=_STILL_TO_COME if override else None)

            async def planned() -> Plan:
                return await plan_approval(desk, model, tier, body, actor=actor)

            return in_loop(planned)


def _intervention(desk: Desk, act: Act, model: str, tier: str) -> Foretold:
    policy = desk.config.policy
    standing = standing_of(desk, model, tier)
    rung = standing.rung(tier)
    evidence = rung.evidence
    if evidence is None:
        raise Problem(409, "baseline", f"{tier!r} is the baseline: nothing about it is decided")
    if act is Act.SKIP:
        check_skip(standing, rung, policy)
        changed = evidence.skipped is None
    elif act is Act.UNSKIP:
        changed = evidence.skipped is not None
    else:
        changed = evidence.attempt > 1
    verdicts = foresee(policy, standing, tier, _INTERVENTIONS[act])
    told = {
        "act": act.value,
        "model": model,
        "tier": tier,
        "epoch": evidence.epoch,
        "changed": changed,
        "verdicts": [
            [each.tier, each.before.decision.value, each.after.decision.value, each.after.alpha_accept]
            for each in verdicts
        ],
    }
    return Foretold(
        act=act,
        standing=standing,
        rung=rung,
        changed=changed,
        mark=sha256(canonical(told).encode()).hexdigest(),
        log=(LogLine(action=_ROWS[act], tier=tier),) if changed else (),
        verdicts=[each for each in verdicts if each.changes],
    )


def _targets(standing: Standing) -> tuple[str, ...]:
    """The baseline, and every approved tier below the one that serves."""
    serving = standing.ladder.rung(highest(standing))
    return tuple(rung.tier.name for rung in standing.rungs[:serving] if not rung.position or rung.approved)


def _steps(desk: Desk, plan: Plan, tier: str) -> tuple[int, ...]:
    share = plan.after.weights.get(tier, 0)
    return tuple(step for step in desk.config.promotion.ramp if step > share)
