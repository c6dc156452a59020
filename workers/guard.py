"""Watching what serves: proxies follow the route in the database, and a tier shown to do harm goes back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from service.approval.backends import ask_health
from service.decision.ladder import next_lower_rung
from service.decision.policy import OnHarm
from service.decision.verdict import Decision
from service.fleet import Ladder, Route
from service.store.captures import Captures, Publication
from service.store.database import Database
from service.store.decisions import Entry, append, read
from service.store.routes import RouteMoved, set_route
from service.store.standing import Question, Rung, Standing, read_standing, route_of

log = logging.getLogger("tiergate.guard")

ACTOR = "guard"
"""Signs what is decided here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """What watching needs."""

    ladders: Mapping[str, Ladder]
    question: Question
    db: Database
    captures: Captures
    health_seconds: float = 2.0
    """How long a backend may take to say that it is up before a route moves to it."""
    told: set[tuple[str, str, str, str]] = field(default_factory=set)
    """(action, model, tier, epoch) known to be in the decision log."""


def publish_routes(guard: Guard) -> None:
    """Tell the proxies every route that Redis does not have, or no longer."""
    for ladder in guard.ladders.values():
        route, published = route_of(guard.db, ladder), _published(guard, ladder.model)
        if not route.version:
            continue
        if published is not None and published == route and published.issued_at == route.issued_at:
            continue
        match guard.captures.publish_route(route):
            case Publication.TOLD:
                log.info("route of %s published: %s", ladder.model, dict(route.weights))
            case Publication.OLDER:
                log.error(
                    "Redis holds a route of %s that was issued later than the database's, until the next "
                    "change: does another database speak to it, or was this one restored from a backup?",
                    ladder.model,
                )
            case Publication.FUTURE:
                log.error(
                    "the route of %s was issued minutes after what Redis' clock says: set the clocks",
                    ladder.model,
                )


def _published(guard: Guard, model: str) -> Route | None:
    try:
        return guard.captures.read_route(model)
    except ValueError as error:
        log.error("%s", error)
        return None


def watch_serving(guard: Guard, *, now: float) -> None:
    """Roll back a tier that serves clients and is shown to do harm; if the policy says ask, say so once."""
    for ladder in guard.ladders.values():
        if route_of(guard.db, ladder).weights.get(ladder.baseline.name) == 100:
            continue
        standing = read_standing(guard.db, ladder, guard.question, now=now)
        # From the top: what is rolled back may land on a rung that is looked at next time.
        harmful = next((rung for rung in reversed(standing.rungs) if rung.weight and does_harm(rung)), None)
        if harmful is None:
            continue
        if guard.question.policy.on_harm is OnHarm.ASK:
            _tell_once(guard, "harm", ladder.model, harmful, now, {})
        else:
            _roll_back(guard, standing, harmful, now)


def does_harm(rung: Rung) -> bool:
    """Whether it is rejected for quality, and nobody approved it in full knowledge of that.

    A lost SLO is for a person: moving everybody to a slower rung in a traffic spike completes the outage.
    """
    verdict = rung.verdict
    if verdict is None or verdict.decision is not Decision.REJECT:
        return False
    if not any(finding.decision is Decision.REJECT for finding in verdict.findings):
        return False
    approval = rung.approval
    return not (
        approval is not None
        and not rung.expired
        and approval.override
        and approval.epoch == verdict.epoch
        and approval.verdict.get("decision") == Decision.REJECT.value
    )


def _roll_back(guard: Guard, standing: Standing, rung: Rung, now: float) -> None:
    """Give the rung's share to the nearest lower one that may serve and is up."""
    model = standing.ladder.model
    names = [each.tier.name for each in standing.rungs]
    usable = {each.tier.name for each in standing.rungs[: rung.position] if _may_serve(each)}
    down: dict[str, str] = {}
    while (target := next_lower_rung(names, rung.tier.name, usable)) is not None:
        health = asyncio.run(ask_health(standing.rung(target).tier, timeout_seconds=guard.health_seconds))
        if health.can_serve:
            break
        down[target] = health.complaint
        usable.discard(target)
    if target is None:
        log.error("%s: %s does harm, and no lower rung is up: %s", model, rung.tier.name, down)
        _tell_once(guard, "roll_back_refused", model, rung, now, {"down": down})
        return
    weights = dict(standing.route.weights)
    weights[target] = weights.get(target, 0) + weights.pop(rung.tier.name)
    try:
        placed = set_route(
            guard.db,
            Route(model=model, weights=weights),
            at=now,
            actor=ACTOR,
            action="roll_back",
            tier=target,
            detail={"because": "harm", "from": rung.tier.name, "down": down, **_shown(rung)},
            expect=standing.route.version,
        )
    except RouteMoved:
        return  # somebody was faster; what serves now is looked at next time
    log.warning("%s: %s does harm, rolled back to %s", model, rung.tier.name, target)
    guard.captures.publish_route(placed)


def _may_serve(rung: Rung) -> bool:
    """The baseline always; another rung while it is approved and does no harm itself."""
    if rung.verdict is None:
        return True
    return rung.approval is not None and not rung.expired and not does_harm(rung)


def _tell_once(
    guard: Guard, action: str, model: str, rung: Rung, now: float, detail: Mapping[str, object]
) -> None:
    """One row in the decision log for each tier and epoch, across restarts."""
    shown = _shown(rung)
    mark = (action, model, rung.tier.name, str(shown["epoch"]))
    if mark in guard.told:
        return
    if not any(
        (entry.action, entry.tier, entry.detail.get("epoch")) == (action, rung.tier.name, shown["epoch"])
        for entry in _entries(guard.db, model)
    ):
        log.warning("%s: %s serves clients and does harm: %s", model, rung.tier.name, shown["reasons"])
        append(
            guard.db,
            at=now,
            actor=ACTOR,
            action=action,
            model=model,
            tier=rung.tier.name,
            detail={**shown, **detail},
        )
    guard.told.add(mark)


def _shown(rung: Rung) -> dict[str, object]:
    assert rung.verdict is not None, "only a rung with a verdict does harm"
    return {"reasons": list(rung.verdict.reasons), "epoch": rung.verdict.epoch}


def _entries(db: Database, model: str) -> Iterator[Entry]:
    after = 0
    while rows := read(db, model, after=after, limit=1000):
        yield from rows
        after = rows[-1].seq
