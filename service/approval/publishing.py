"""Telling the proxies. SQL holds the route; what cannot be published now, the guard publishes later."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from redis import RedisError

from service.approval.answers import route_out
from service.approval.desk import Desk
from service.approval.schemas import ApprovalOut, ChangeOut
from service.fleet import Ladder, Route
from service.store.redis.captures import Publication
from service.store.verdicts.standing import issued_route

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The route in force, and whether the proxies have been told."""

    route: Route
    told: bool
    warnings: tuple[str, ...]

    def answer(
        self,
        tier: str,
        *,
        changed: bool,
        approval: ApprovalOut | None = None,
        warnings: tuple[str, ...] = (),
    ) -> ChangeOut:
        """What a change answers; `warnings` are what came up before it was published."""
        return ChangeOut(
            model=self.route.model,
            tier=tier,
            changed=changed,
            approval=approval,
            route=route_out(self.route),
            published=self.told,
            warnings=[*warnings, *self.warnings],
        )


def publish(desk: Desk, ladder: Ladder) -> Published:
    """Publish the route in force, whoever put it there; never an error of the change itself."""
    route = issued_route(desk.db, ladder)
    if route.version == 0:
        return Published(route=route, told=True, warnings=())
    try:
        told = desk.captures.publish_route(route)
    except RedisError as error:
        log.warning("route of %s not published: %s", ladder.model, error)
        warning = (
            f"Redis does not answer ({type(error).__name__}): proxies that do not ask this "
            "API (proxy.routes) keep their last route until the guard publishes this one"
        )
        return Published(route=route, told=False, warnings=(warning,))
    warning = ""
    if told is Publication.FUTURE:
        warning = (
            "the clock here is minutes ahead of Redis' clock, so proxies do not follow this change: set the "
            "clocks, and the guard publishes it once they agree"
        )
    elif told is Publication.OLDER and issued_route(desk.db, ladder).version == route.version:
        warning = (
            "Redis holds a route that was issued later than the database's, so proxies do not follow this "
            "change: does another database speak to the same Redis, or was this one restored from a backup?"
        )
    if warning:
        return Published(route=route, told=False, warnings=(warning,))
    return Published(route=route, told=True, warnings=())
