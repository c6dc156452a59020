"""Taking out of service what does harm: one rung down, once, to where there is healthy capacity."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from service.decision.decide import WITHHOLDING
from service.decision.ladder import next_lower_rung
from service.decision.policy import Gate
from service.decision.ramp import handed_over
from service.decision.verdict import Decision, GateState
from service.fleet import Route
from service.store.decided.holds import HoldKind, roll_back
from service.store.decided.routes import RouteMoved
from service.store.verdicts.detectors import Place, feed, stop_others
from service.store.verdicts.rung import Rung
from service.store.verdicts.standing import Standing
from workers.watching import ACTOR, Guard, lacks_room, publish, tell_once

log = logging.getLogger("tiergate.guard")


@dataclass(frozen=True, slots=True, kw_only=True)
class Harm:
    """Why a rung must not serve."""

    because: str
    """`harm`: the verdict; `alarm`: the e-detector."""
    reasons: tuple[str, ...]
    withheld: bool = False
    """Whether the instrument, or the stack, may be at fault: then it is told, and nobody is moved."""


def harm_of(guard: Guard, standing: Standing, *, now: float) -> dict[str, Harm]:
    """The tiers that serve and do harm; feeds the detectors of all that serve, for a while.

    One that has much to catch up with keeps no verdict waiting.
    """
    found: dict[str, Harm] = {}
    serving = [rung for rung in standing.rungs if rung.weight and rung.verdict is not None]
    places = {rung.tier.name: _place(standing, rung) for rung in serving}
    serves = {(each.tier, each.epoch) for each in places.values()}
    stop_others(guard.db, standing.ladder.model, serves, at=standing.route.issued_at)
    more = guard.begin()
    for rung in serving:
        alarms = _alarms(guard, standing, places[rung.tier.name], now, more)
        assert rung.verdict is not None
        if does_harm(rung):
            found[rung.tier.name] = Harm(because="harm", reasons=(*rung.verdict.reasons, *alarms))
        elif alarms and not _is_approved_against_harm(rung):
            withheld = is_withheld(rung)
            reasons = (*alarms, *rung.verdict.reasons) if withheld else alarms
            found[rung.tier.name] = Harm(because="alarm", reasons=reasons, withheld=withheld)
    return found


def does_harm(rung: Rung) -> bool:
    """Whether it is rejected for quality, and nobody approved it in full knowledge of that.

    A lost SLO is for a person: moving everybody to a slower rung in a traffic spike completes the outage.
    """
    verdict = rung.verdict
    if verdict is None or verdict.decision is not Decision.REJECT:
        return False
    return verdict.gates[Gate.QUALITY] is GateState.FAILED and not _is_approved_against_harm(rung)


def is_withheld(rung: Rung) -> bool:
    """Whether a gate withholds acceptance and rejection alike."""
    verdict = rung.verdict
    return verdict is not None and any(verdict.gates[gate] is GateState.UNDECIDED for gate in WITHHOLDING)


def _is_approved_against_harm(rung: Rung) -> bool:
    """Whether its approval overrides a rejection, or a rollback by the guard, in this epoch."""
    approval, verdict = rung.approval, rung.verdict
    if approval is None or verdict is None or rung.expired or not approval.override:
        return False
    if approval.epoch != verdict.epoch:
        return False
    return approval.verdict.get("decision") == Decision.REJECT.value or any(
        hold.kind is HoldKind.ROLLED_BACK and hold.at <= approval.at for hold in rung.holds
    )


def _alarms(
    guard: Guard, standing: Standing, place: Place, now: float, more: Callable[[], bool]
) -> tuple[str, ...]:
    watches = [
        feed(guard.db, place, criterion, promoted_at=standing.route.issued_at, now=now, more=more)
        for criterion in guard.question.policy.decisive
    ]
    return tuple(watch.reason for watch in watches if watch.alarm)


def _place(standing: Standing, rung: Rung) -> Place:
    assert rung.verdict is not None, "the baseline is not watched"
    return Place(model=standing.ladder.model, tier=rung.tier.name, epoch=rung.verdict.epoch)


def roll_back_harm(
    guard: Guard, standing: Standing, rung: Rung, harm: Harm, *, harmful: Collection[str], now: float
) -> bool:
    """Give the rung's share to the nearest lower one that may serve and has room; tell once if none has.

    Whether the route is another now. `harmful`: tiers found to do harm, which take over from nobody.
    """
    names = [each.tier.name for each in standing.rungs]
    usable = {each.tier.name for each in standing.rungs[: rung.position] if may_serve(each)}
    usable -= set(harmful)
    detail: dict[str, object] = {"because": harm.because, "reasons": list(harm.reasons)}
    down: dict[str, str] = {}
    while (target := next_lower_rung(names, rung.tier.name, usable)) is not None:
        problem = problem_of(guard, standing, rung, target, now=now)
        if problem is None:
            move(
                guard,
                standing,
                rung,
                target,
                kind=HoldKind.ROLLED_BACK,
                reason="; ".join(harm.reasons),
                detail={**detail, "down": down},
                now=now,
            )
            return True
        down[target] = problem
        usable.discard(target)
    tell_once(guard, "roll_back_refused", standing.ladder.model, rung, now, {**detail, "down": down})
    return False


def may_serve(rung: Rung) -> bool:
    """The baseline always; another rung while it is approved, held by nothing, and does no harm itself."""
    return rung.verdict is None or (rung.approved and not does_harm(rung))


def problem_of(guard: Guard, standing: Standing, rung: Rung, target: str, *, now: float) -> str | None:
    """Why the target cannot take over from the rung, None when it can."""
    return lacks_room(guard, standing, _route_without(standing, rung, target), target, now=now)


def move(
    guard: Guard,
    standing: Standing,
    rung: Rung,
    target: str,
    *,
    kind: HoldKind | None,
    reason: str,
    detail: Mapping[str, object],
    now: float,
) -> None:
    """Roll the rung back to the target, unless somebody changed the route since it was read."""
    model = standing.ladder.model
    assert rung.verdict is not None, "the baseline is never rolled back"
    try:
        placed = roll_back(
            guard.db,
            _route_without(standing, rung, target),
            tier=rung.tier.name,
            target=target,
            epoch=rung.verdict.epoch,
            kind=kind,
            reason=reason,
            at=now,
            actor=ACTOR,
            detail=detail,
            expect=standing.route.version,
        )
    except RouteMoved:
        return  # what serves now is looked at next time
    guard.acted["roll_back", model] += 1
    log.error("%s: %s rolled back to %s: %s", model, rung.tier.name, target, reason)
    publish(guard, placed)


def _route_without(standing: Standing, rung: Rung, target: str) -> Route:
    weights = handed_over(standing.route.weights, rung.tier.name, target)
    return Route(model=standing.ladder.model, weights=weights)
