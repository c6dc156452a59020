"""Putting an approved tier in service step by step, and stopping where something speaks against it.

A step is taken after its hold time when the approval is in force, nothing holds the tier, and it has room. A
warning or a lost SLO freezes the ramp where it stands, and it stays so when the warning goes away again: only
a new approval, given by somebody who saw it, sets the ramp going. A lost SLO also ends with a measurement
that shows the contrary, which is fresh evidence.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any

from service.decision.evidence import Shown
from service.decision.policy import Asked, Gate
from service.decision.ramp import OnSloLoss, with_share
from service.decision.verdict import Decision
from service.decision.wording import compared_e_values
from service.fleet import Route
from service.store.decided.holds import HoldKind, begin_hold, end_hold
from service.store.decided.routes import RouteMoved, set_route
from service.store.verdicts.measurements import Measurement, latest_measurement
from service.store.verdicts.rung import Rung
from service.store.verdicts.standing import Standing
from workers.rollback import is_withheld, may_serve, move, problem_of
from workers.watching import ACTOR, Guard, lacks_room, publish

log = logging.getLogger("tiergate.guard")

SAME_TIME_SECONDS = 900.0
"""Two measurements no further apart are of the same load."""


def follow_slo(guard: Guard, standing: Standing, *, now: float) -> bool:
    """Hold tiers that serve and are shown to lose their SLO, and page; let go those shown to keep it.

    Whether anything was done: then the standing is out of date.
    """
    if guard.question.policy.gates[Gate.SLO] is Asked.OFF:
        return False
    done = False
    for rung in reversed(standing.rungs):
        if rung.verdict is None:
            continue
        measured = _slo(guard, standing, rung, now)
        if measured is None or _was_known(rung, measured):
            continue
        if measured.shown is Shown.FAILED and rung.weight:
            done |= _hold(guard, measured, now)
            if guard.promotion.on_slo_loss is OnSloLoss.ROLL_BACK and _roll_back(
                guard, standing, rung, measured, now
            ):
                return True
        elif measured.shown is Shown.PASSED and any(hold.kind is HoldKind.SLO_LOST for hold in rung.held):
            done |= _let_go(guard, measured, now)
    return done


def _hold(guard: Guard, lost: Measurement, now: float) -> bool:
    reason = f"slo: {lost.reason}"
    if not begin_hold(guard.db, **_place(lost), kind=HoldKind.SLO_LOST, reason=reason, at=now, actor=ACTOR):
        return False
    log.error("%s: %s serves clients and loses its SLO: %s", lost.model, lost.tier, reason)
    guard.acted["slo_lost", lost.model] += 1
    return True


def _let_go(guard: Guard, kept: Measurement, now: float) -> bool:
    reason = f"slo: {kept.reason}"
    if not end_hold(guard.db, **_place(kept), kind=HoldKind.SLO_LOST, reason=reason, at=now, actor=ACTOR):
        return False
    log.warning("%s: %s keeps its SLO again: %s", kept.model, kept.tier, reason)
    guard.acted["slo_lost_ended", kept.model] += 1
    return True


def _place(measured: Measurement) -> dict[str, str]:
    return {"model": measured.model, "tier": measured.tier, "epoch": measured.epoch}


def _was_known(rung: Rung, measured: Measurement) -> bool:
    """Whether the tier was approved, or let go, after the measurement."""
    approval = rung.approval
    approved = approval is not None and approval.override and approval.at >= measured.at
    ended = any(
        hold.kind is HoldKind.SLO_LOST and hold.ended_at is not None and hold.ended_at >= measured.at
        for hold in rung.holds
    )
    return approved or (ended and measured.shown is Shown.FAILED)


def _roll_back(guard: Guard, standing: Standing, rung: Rung, lost: Measurement, now: float) -> bool:
    """Roll back if the rung below that serves now keeps its SLO under the same load; whether it was done.

    In a traffic spike every tier loses it, and moving everybody to a slower one completes the outage.
    """
    below = next((each for each in reversed(standing.rungs[: rung.position]) if each.weight), None)
    if below is None or not may_serve(below):
        return False
    kept = _slo(guard, standing, below, now)
    if kept is None or kept.shown is not Shown.PASSED or abs(kept.at - lost.at) > SAME_TIME_SECONDS:
        return False
    if problem_of(guard, standing, rung, below.tier.name, now=now) is not None:
        return False
    reasons = [f"slo: {lost.reason}", f"slo of {below.tier.name!r}: {kept.reason}"]
    move(
        guard,
        standing,
        rung,
        below.tier.name,
        kind=HoldKind.SLO_LOST,
        reason=reasons[0],
        detail={"because": "slo_lost", "reasons": reasons},
        now=now,
    )
    return True


def climb(guard: Guard, standing: Standing, *, now: float) -> None:
    """Freeze the ramp of the highest tier that serves, or take its next step when that is due."""
    model = standing.ladder.model
    rung = next((each for each in reversed(standing.rungs) if each.weight), None)
    if rung is None or rung.verdict is None:
        return
    step = guard.promotion.after(rung.weight)
    if step is None or rung.approval is None or not rung.approved:
        return
    approval, verdict = rung.approval, rung.verdict
    if approval.epoch != verdict.epoch or rung.frozen:
        return
    if warnings := _unknown_warnings(guard, rung, approval.verdict):
        _freeze(guard, model, rung, f"at {rung.weight} %: a rise is shown: {'; '.join(warnings)}", now)
        return
    if is_withheld(rung) or (verdict.decision is Decision.REJECT and not approval.override):
        return
    if now < _since(standing, rung) + guard.promotion.hold_seconds:
        return
    route = Route(model=model, weights=with_share(standing.route.weights, rung.tier.name, step))
    if lacks_room(guard, standing, route, rung.tier.name, now=now) is not None:
        return
    try:
        placed = set_route(
            guard.db,
            route,
            at=now,
            actor=ACTOR,
            action="promote",
            tier=rung.tier.name,
            detail={"because": "ramp", "epoch": verdict.epoch, "from": rung.weight, "to": step},
            expect=standing.route.version,
        )
    except RouteMoved:
        return
    log.info("%s: %s serves %d %% now", model, rung.tier.name, step)
    guard.acted["promote", model] += 1
    publish(guard, placed)


def _freeze(guard: Guard, model: str, rung: Rung, reason: str, now: float) -> None:
    assert rung.verdict is not None
    begun = begin_hold(
        guard.db,
        model=model,
        tier=rung.tier.name,
        epoch=rung.verdict.epoch,
        kind=HoldKind.FROZEN,
        reason=reason,
        at=now,
        actor=ACTOR,
    )
    if begun:
        log.error("%s: the ramp of %s is frozen %s", model, rung.tier.name, reason)
        guard.acted["frozen", model] += 1


def _since(standing: Standing, rung: Rung) -> float:
    """Since when nothing has changed about the step."""
    assert rung.approval is not None
    ends = [hold.ended_at for hold in rung.holds if hold.ended_at is not None]
    return max(standing.route.issued_at, rung.approval.at, *ends)


def _unknown_warnings(guard: Guard, rung: Rung, approved: Mapping[str, Any]) -> list[str]:
    """Criteria that decide and warn, without those that did when the tier was approved."""
    assert rung.verdict is not None
    known = {finding["criterion"] for finding in approved.get("findings", ()) if finding.get("warn")}
    threshold = -math.log(guard.question.policy.alpha_warn)
    return [
        "{}: e-value {} >= {}".format(finding.criterion, *compared_e_values(finding.log_e.warn, threshold))
        for finding in rung.verdict.decisive
        if finding.warn and finding.criterion not in known
    ]


def _slo(guard: Guard, standing: Standing, rung: Rung, now: float) -> Measurement | None:
    """The tier's latest measurement that counts; the baseline has some as well."""
    model, tier = standing.ladder.model, rung.tier.name
    epoch = guard.question.epoch_of(model, tier)
    since = now - guard.question.measured_seconds
    return latest_measurement(guard.db, model, tier, Gate.SLO, epoch, since=since)
