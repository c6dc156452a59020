"""Watching what serves: proxies follow the route in the database, and a tier shown to do harm goes back."""

from __future__ import annotations

import logging

from service.decision.policy import OnHarm
from service.fleet import Ladder, Route
from service.store.redis.captures import Publication
from service.store.verdicts.detectors import stop_others
from service.store.verdicts.standing import issued_route, read_standing, route_of
from workers.ramp import climb, follow_slo
from workers.rollback import harm_of, roll_back_harm
from workers.watching import Guard, of_each_model, tell_once

log = logging.getLogger("tiergate.guard")


def publish_routes(guard: Guard) -> None:
    """Tell the proxies every route that Redis does not have, or no longer."""
    for ladder in guard.ladders.values():
        route, published = issued_route(guard.db, ladder), _published(guard, ladder.model)
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
    """Roll back a tier that serves clients and does harm; if the policy says ask, say so once.

    Where none does: follow the SLO of what serves, and take the next step of a ramp. Raises as
    `of_each_model` does.
    """
    of_each_model(guard, lambda ladder: _watch(guard, ladder, now=now), done="watched")


def _watch(guard: Guard, ladder: Ladder, *, now: float) -> None:
    route = route_of(guard.db, ladder)
    if route.weights.get(ladder.baseline.name) == 100:
        stop_others(guard.db, ladder.model, set(), at=route.issued_at)
        return
    standing = read_standing(guard.db, ladder, guard.question, now=now)
    found = harm_of(guard, standing, now=now)
    if not found:
        if not follow_slo(guard, standing, now=now):
            climb(guard, standing, now=now)
        return
    # From the top, and all of them: one that waits for a person, or for room, keeps none below it in service.
    for rung in reversed(standing.rungs):
        harm = found.get(rung.tier.name)
        if harm is None:
            continue
        if harm.withheld or guard.question.policy.on_harm is OnHarm.ASK:
            tell_once(guard, harm.because, ladder.model, rung, now, {"reasons": list(harm.reasons)})
        elif roll_back_harm(guard, standing, rung, harm, harmful=found, now=now):
            return  # the others are looked at under the route that there is now
    follow_slo(guard, standing, now=now)
