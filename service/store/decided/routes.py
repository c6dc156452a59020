"""The route in force: SQL is the truth, and `Captures.publish_route` tells the proxies.

A change and its row in the decision log are one transaction; the version grows by one with each, and so does
the moment of issue, by which proxies tell the latest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, select

from service.fleet import Route
from service.store.decided.decisions import append_within
from service.store.redis import redis_keys
from service.store.sql.database import Database
from service.store.sql.schema import routes


class RouteMoved(RuntimeError):
    """Somebody else changed the route since it was read; read it again and decide anew."""


def current_route(db: Database, model: str) -> Route | None:
    """The route in force, None before the first change."""
    with db.read() as connection:
        return _read(connection, model)


def current_routes(db: Database) -> list[Route]:
    """Every model's route that was ever changed, for publishing after Redis lost its memory."""
    with db.read() as connection:
        rows = connection.execute(select(routes).order_by(routes.c.model))
        return [_route(row) for row in rows]


def set_route(
    db: Database,
    route: Route,
    *,
    at: float,
    actor: str,
    action: str = "route",
    tier: str | None = None,
    detail: Mapping[str, Any] | None = None,
    expect: int | None = None,
) -> Route:
    """Put a route in force and log it; the route with its version.

    With `expect`, RouteMoved unless the route in force has that version (0 before the first change).
    """
    with db.write() as connection:
        return set_route_within(
            db,
            connection,
            route,
            at=at,
            actor=actor,
            action=action,
            tier=tier,
            detail=detail,
            expect=expect,
        )


def set_route_within(
    db: Database,
    connection: Connection,
    route: Route,
    *,
    at: float,
    actor: str,
    action: str,
    tier: str | None,
    detail: Mapping[str, Any] | None,
    expect: int | None,
) -> Route:
    """`set_route` as part of a transaction."""
    db.lock(connection, "decisions")  # before the version is read: two changes follow each other
    before = check_route_within(connection, route.model, expect)
    version = 0 if before is None else before.version
    placed = Route(
        model=route.model,
        weights=dict(route.weights),
        version=version + 1,
        issued_at=_issue(at, before),
    )
    insert = db.insert(routes).values(
        model=placed.model,
        weights=json.dumps(placed.weights),
        version=placed.version,
        issued_at=placed.issued_at,
    )
    connection.execute(
        insert.on_conflict_do_update(
            index_elements=[routes.c.model],
            set_={name: insert.excluded[name] for name in ("weights", "version", "issued_at")},
        )
    )
    append_within(
        db,
        connection,
        at=at,
        actor=actor,
        action=action,
        model=placed.model,
        tier=tier or placed.serving,
        detail={
            **(detail or {}),
            "weights": dict(placed.weights),
            "before": None if before is None else dict(before.weights),
            "route_version": placed.version,
        },
    )
    return placed


def check_route_within(connection: Connection, model: str, expect: int | None) -> Route | None:
    """The route in force, RouteMoved unless it has the version that was decided on; under the log's lock."""
    found = _read(connection, model)
    version = 0 if found is None else found.version
    if expect is not None and expect != version:
        raise RouteMoved(f"the route of {model!r} has version {version}, not {expect}")
    return found


def _read(connection: Connection, model: str) -> Route | None:
    row = connection.execute(select(routes).where(routes.c.model == model)).one_or_none()
    return None if row is None else _route(row)


def _route(row: Row[Any]) -> Route:
    return Route(
        model=row.model, weights=json.loads(row.weights), version=row.version, issued_at=row.issued_at
    )


def _issue(at: float, before: Route | None) -> float:
    """Later than the route before, though another machine's clock was ahead when it was issued.

    One from further ahead than proxies believe was never published: it must not keep later ones back.
    """
    if before is None or before.issued_at > at + redis_keys.FUTURE_SECONDS:
        return at
    return max(at, before.issued_at + 0.001)
