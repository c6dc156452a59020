"""Has a tier room for the clients that a change of route gives it? One rule, for people and for the guard.

By their declared `max_concurrency`, its healthy backends must take the new route's share of all requests that
the model's clients have at once: `limits.concurrency` where it is declared, else what the tier with the most
weight is declared to take, since that one bears most of the load. What is not declared is not known; then it
is enough that a backend is up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from service.approval.backends import Health
from service.fleet import Backend, Ladder, Route


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What a tier can take, and what a new route would give it."""

    health: Health
    share: int
    """Per cent of clients under the new route."""
    takes: int | None
    """Requests at once that its healthy backends take; None where they do not say."""
    needs: int | None
    """Requests at once that its share may be; None where nothing tells."""

    @property
    def lack(self) -> str | None:
        """Why it cannot take its share; None when it can."""
        tier = self.health.tier
        if not self.health.can_serve:
            return f"no backend of {tier!r} is up: {self.health.complaint or 'none configured'}"
        if self.takes is None or self.needs is None or self.needs <= self.takes:
            return None
        return (
            f"healthy backends of {tier!r} take {self.takes} requests at once (max_concurrency) < "
            f"{self.needs}, "
            f"which {self.share} % of the clients may have"
        )


def declared(backends: Iterable[Backend]) -> int | None:
    """Requests that these take at once together; None unless all of them say so."""
    rooms = [backend.max_concurrency for backend in backends]
    if not rooms or None in rooms:
        return None
    return sum(room for room in rooms if room is not None)


def needed(ladder: Ladder, before: Route, after: Route, tier: str) -> int | None:
    """Requests that the tier gets at once, at most, under the new route; None where nothing tells."""
    load = ladder.limits.concurrency
    if load is None and before.serving != tier:
        load = declared(ladder.tier(before.serving).backends)
    return None if load is None else math.ceil(load * after.weights[tier] / 100)


def room_of(ladder: Ladder, health: Health, before: Route, after: Route) -> Room:
    """The room of the tier whose health this is, under a new route that gives it a share."""
    tier = ladder.tier(health.tier)
    return Room(
        health=health,
        share=after.weights[tier.name],
        takes=declared(backend for backend in tier.backends if backend.url in health.up),
        needs=needed(ladder, before, after, tier.name),
    )


def in_the_way(ladder: Ladder, health: Health, before: Route, after: Route) -> str | None:
    """Why the tier whose health this is cannot take its share of the new route, None when it can."""
    return room_of(ladder, health, before, after).lack
