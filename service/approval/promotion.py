"""Which route a change asks for, decided from where a ladder stands; and what is in its way. No I/O."""

from __future__ import annotations

from service.approval.errors import Problem, echo
from service.approval.names import find_tier
from service.approval.schemas import ApprovalBody
from service.decision.ladder import next_lower_rung
from service.decision.ramp import Promotion, handed_over, with_share
from service.decision.verdict import Decision
from service.engines.artifact import bare
from service.fleet import Route, Tier
from service.store.decided.approvals import Approval
from service.store.verdicts.rung import Rung
from service.store.verdicts.standing import Standing

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
LONGEST = 366 * 86400
"""Seconds an approval may last; one that should last longer is given without an end."""


def lasts(asked: int | str | None) -> int | None:
    """Seconds of `expires_in`, None = until revoked; 422 beyond a year."""
    if asked is None:
        return None
    seconds = asked if isinstance(asked, int) else int(asked[:-1]) * SECONDS[asked[-1]]
    if seconds > LONGEST:
        raise Problem(
            422,
            "invalid_request",
            f"expires_in: {echo(str(asked))} is more than a year",
            hint="leave it out for an approval that lasts until it is revoked",
        )
    return seconds


_OVERRIDE = "override with a reason and a token of scope `admin`"
_NOT_ACCEPTED = {
    Decision.UNDECIDED: f"see what each reason asks for (pairs, a gate, one criterion less), or {_OVERRIDE}",
    Decision.REJECT: f"the evidence shows harm or a failed gate: change the tier, or {_OVERRIDE}",
}


def check_verdict(rung: Rung, body: ApprovalBody) -> bool:
    """Whether this would be an override; 409 with the verdict's reasons unless it may be approved."""
    verdict = rung.verdict
    assert verdict is not None, "the baseline is approved from the start"
    if verdict.decision is Decision.ACCEPT and not rung.barred:
        return False
    if body.override:
        return True
    if verdict.decision is Decision.ACCEPT:
        raise Problem(
            409,
            "held",
            f"{rung.tier.name!r} is held in this epoch: {', '.join(hold.kind for hold in rung.barred)}",
            hint=f"change the tier or measure it anew, which is fresh evidence, or {_OVERRIDE}",
            reasons=[f"{hold.kind}: {hold.reason}" for hold in rung.barred],
            decision=verdict.decision.value,
        )
    raise Problem(
        409,
        "verdict_not_accept",
        f"the verdict on {rung.tier.name!r} is {verdict.decision}, not accept",
        hint=_NOT_ACCEPTED[verdict.decision],
        reasons=verdict.reasons,
        decision=verdict.decision.value,
    )


def artifact_of(tier: Tier, asked: str | None) -> str | None:
    """The digest an approval is bound to; 409 when it is not the one that was measured."""
    declared = tier.declares.get("artifact")
    if asked is None:
        return declared
    if declared is not None and bare(asked) != bare(declared):
        raise Problem(
            409,
            "artifact_mismatch",
            f"the evidence on {tier.name!r} is about artifact {declared}, not {asked}",
            hint="roll out what was measured, or declare the new artifact, which starts a new epoch",
        )
    return asked


def is_same(approval: Approval | None, asked: Approval, now: float) -> bool:
    """Whether an approval in force says already what is asked for; one with an end is renewed instead."""
    return (
        approval is not None
        and not approval.expired(now)
        and approval.expires_at is None
        and asked.expires_at is None
        and all(
            getattr(approval, name) == getattr(asked, name)
            for name in ("artifact", "override", "reason", "epoch", "policy_digest")
        )
    )


def placed(standing: Standing, tier: str, promotion: Promotion) -> Route | None:
    """The route that an approval asks for; None where the tier has its share already.

    The first step of the ramp, or the step where the tier stands. A tier below one that serves is no
    promotion: it gets everybody at once.
    """
    rung, route = standing.rung(tier), standing.route
    if rung.position < standing.ladder.rung(highest(standing)):
        return Route.only(route.model, tier)
    if rung.weight >= promotion.first:
        return None
    return Route(model=route.model, weights=with_share(route.weights, tier, promotion.first))


def highest(standing: Standing) -> str:
    """The most aggressive tier that serves anybody."""
    return next(rung.tier.name for rung in reversed(standing.rungs) if rung.weight)


def below(standing: Standing, tier: str) -> str:
    """The nearest lower rung that is approved, or the baseline."""
    names = [rung.tier.name for rung in standing.rungs]
    approved = {rung.tier.name for rung in standing.rungs if rung.approved}
    return next_lower_rung(names, tier, approved | {standing.ladder.baseline.name}) or names[0]


def rollback_target(standing: Standing, to: str | None) -> str:
    """Where a rollback goes; 409 where there is nothing lower, or where it would be a promotion."""
    serving = highest(standing)
    baseline = standing.ladder.baseline.name
    if to is None:
        if serving == baseline:
            raise Problem(
                409, "nothing_below", f"the baseline {baseline!r} serves: there is nothing to roll back to"
            )
        return below(standing, serving)
    target = find_tier(standing.ladder, to)
    rung = standing.rung(target.name)
    if rung.position > standing.ladder.rung(serving):
        raise Problem(
            409,
            "not_lower",
            f"{target.name!r} is above {serving!r}, which serves: that is a promotion",
            hint=f"approve {target.name!r} instead",
        )
    if rung.position and not rung.approved:
        raise Problem(
            409,
            "not_approved",
            f"{target.name!r} has no approval in force",
            hint=f"roll back to {below(standing, target.name)!r}, or approve {target.name!r}",
        )
    return target.name


def without(route: Route, tier: str, target: str) -> Route:
    """The route with the tier's share given to the target."""
    return Route(model=route.model, weights=handed_over(route.weights, tier, target), version=route.version)
