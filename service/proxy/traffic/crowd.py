"""Who is under way at the backends of a model with limits, and who waits for a place there.

A request waits when its model has as many at backends as its limit allows, or when every backend that it
could go to is full; never because a tier is down. Whenever a request ends, and by the clock, those go on who
now can: in the order in which they came, but tenants of one model in turn, and short prompts first where the
limits say so (`line`). What time they waited is nobody's delay: no backend's timeout counts it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from service.fleet import Ladder, Limits
from service.proxy.entry.guards import exceeds
from service.proxy.http.errors import too_many_requests
from service.proxy.traffic.access_lines import has_failed
from service.proxy.traffic.line import Line
from service.proxy.traffic.passage import Phase
from service.proxy.traffic.shares import Share
from service.store.redis.counters import Skipped

if TYPE_CHECKING:
    from service.proxy.traffic.plane import DataPlane
    from service.proxy.traffic.pool import Server
    from service.proxy.traffic.relay import Relay

Key = tuple[str, frozenset["Server"]]
"""What a request waits for: a tier's name, without the backends that have failed it."""


@dataclass(slots=True)
class Floor:
    """One model's requests."""

    limits: Limits
    most: float = math.inf
    """At backends at once, of this process."""
    queue: int = 0
    """Of those that wait, in this process; one more is refused."""
    under_way: set[Relay] = field(default_factory=set)
    lines: dict[Key, Line[Relay]] = field(default_factory=dict)
    """None of them empty."""

    @property
    def waiting(self) -> int:
        return sum(len(line) for line in self.lines.values())


class Place(NamedTuple):
    """Where a request waits, and since when (monotonic)."""

    floor: Floor
    key: Key
    since: float


class Crowd:
    """One per process; asked only where something is limited."""

    def __init__(self, plane: DataPlane, share: Share) -> None:
        self._plane = plane
        self._share = share
        self._floors: dict[str, Floor] = {}
        self._places: dict[Relay, Place] = {}
        self._is_calling = False

    def adopt(self, ladders: Mapping[str, Ladder]) -> Crowd | None:
        """Keep to these ladders' limits from now on; None when they have none.

        Whoever is under way goes on, also above a new limit, and whoever waits keeps its place.
        """
        before, self._floors = self._floors, {}
        for model, ladder in ladders.items():
            limits = ladder.limits
            floor = self._floors[model] = before.pop(model) if model in before else Floor(limits)
            floor.limits = limits
            floor.most = math.inf if limits.concurrency is None else self._share.part(limits.concurrency)
            floor.queue = self._share.part(limits.queue) if limits.queue else 0
            floor.under_way.clear()
            if has_limits(ladder):
                self._begin_at_zero(model)
        for model, floor in before.items():
            if floor.lines:  # of a model that is gone: they go on, and are told so
                floor.most = math.inf
                self._floors[model] = floor
        for relay in self._plane.relays:
            known = self._floors.get(relay.admission.ladder.model)
            if known is not None and is_bounded(relay) and relay not in self._places:
                known.under_way.add(relay)
        for name in ("queued", "limited_in_flight", "concurrency_limit"):
            for series in [key for key in self._plane.meters.gauges if key[0] == name]:
                del self._plane.meters.gauges[series]
        self.call()
        return self if self._places or any(map(has_limits, ladders.values())) else None

    # -- relays and the plane ask these ------------------------------------------------------------

    def enter(self, relay: Relay) -> bool:
        """Whether a new request may go to a backend now; if not, it waits, or is refused already."""
        floor = self._floors.get(relay.admission.ladder.model)
        if floor is None or not is_bounded(relay):
            return True
        key = (relay.wanted.name, relay.failed)
        if len(floor.under_way) < floor.most and key not in floor.lines:
            floor.under_way.add(relay)
            return True
        self._join(relay, floor, key)
        return False

    def wait(self, relay: Relay) -> None:
        """Every backend that it could go to is full."""
        ladder = relay.admission.ladder
        floor = self._floors.setdefault(ladder.model, Floor(ladder.limits))
        floor.under_way.discard(relay)
        self._join(relay, floor, (relay.wanted.name, relay.failed))

    def unserved(self, relay: Relay) -> None:
        """It was turned away, or its client left before its turn came: no backend has seen it."""
        plane, log, now = self._plane, self._plane.access_log, time.monotonic()
        relay.phase = Phase.OVER
        plane.relays.discard(relay)
        self.over(relay)
        if relay.recording is not None:
            relay.recording.discard()
            plane.meters.ledger.skipped(relay.recording.subject.model, Skipped.REFUSED)
            relay.recording, relay.admission.skipped = None, Skipped.REFUSED
        plane.meters.request_bytes += relay.inbound.size
        if log.is_on and (drawn := log.draw(failed=has_failed(relay))) is not None:
            log.write(plane.lines.of_relay(relay, now=now, wall=time.time(), drawn=drawn))

    def over(self, relay: Relay) -> None:
        """The request has ended, wherever it was."""
        place = self._places.get(relay)
        if place is not None:
            place.floor.lines[place.key].leave(relay, relay.inbound.head.credential)
            self._gone(relay, place, time.monotonic())
        elif (floor := self._floors.get(relay.admission.ladder.model)) is not None:
            floor.under_way.discard(relay)

    def call(self) -> None:
        """Let everybody go on who can."""
        if self._is_calling or not self._places:
            return
        self._is_calling = True  # what goes on may end at once, and then calls again
        try:
            while (relay := self._next()) is not None:
                now = time.monotonic()
                place = self._places[relay]
                place.floor.lines[place.key].take()
                self._gone(relay, place, now)
                place.floor.under_way.add(relay)
                relay.inbound.started += now - place.since
                relay.attempt()
        finally:
            self._is_calling = False

    def expire(self, now: float) -> None:
        """Send away who has waited for too long, then let go on who can."""
        for relay, place in tuple(self._places.items()):
            patience = place.floor.limits.queue_seconds
            if patience is not None and now - place.since > patience and relay in self._places:
                self._refuse(relay, "timeout", f"The request waited {patience:g} s for its turn")
        self.call()

    def close(self) -> None:
        """Let nobody go on any more: what waits is about to be given up."""
        self._is_calling = True

    @property
    def waiting(self) -> int:
        return len(self._places)

    @property
    def patiences(self) -> list[float]:
        """Seconds, by model, where they are bounded."""
        limits = [floor.limits.queue_seconds for floor in self._floors.values()]
        return [seconds for seconds in limits if seconds is not None]

    def gauge(self) -> None:
        """Write the gauges of limited models."""
        gauges = self._plane.meters.gauges
        for model, floor in self._floors.items():
            label = (("model", model),)
            gauges["queued", label] = floor.waiting
            gauges["limited_in_flight", label] = len(floor.under_way)
            if floor.most != math.inf:
                gauges["concurrency_limit", label] = floor.most

    def _begin_at_zero(self, model: str) -> None:
        """As `telling.begin_at_zero` says: a first refusal must show as one."""
        for reason in ("full", "timeout"):
            self._plane.meters.counters["queue_refusals", (("model", model), ("reason", reason))] += 0
        self._plane.meters.histograms["queue_seconds", (("model", model),)]

    # -- inside ------------------------------------------------------------------------------------

    def _next(self) -> Relay | None:
        """Of all that can go on, at the heads of their lines, the one that has waited longest."""
        now = time.monotonic()
        found: Relay | None = None
        for floor in self._floors.values():
            if len(floor.under_way) >= floor.most:
                continue
            for line in floor.lines.values():
                relay = line.first()
                if found is not None and self._places[found].since <= self._places[relay].since:
                    continue
                if not self._plane.servers.is_crowded(
                    relay.admission.ladder, relay.wanted, now=now, without=relay.failed
                ):
                    found = relay
        return found

    def _join(self, relay: Relay, floor: Floor, key: Key) -> None:
        # One that a backend has failed was let in before: it is not sent away to make room for others.
        if not relay.attempts and floor.waiting >= floor.queue:
            self._refuse(relay, "full", f"{floor.waiting} requests wait already")
            return
        line, priority, is_long = floor.lines.setdefault(key, Line()), floor.limits.priority, False
        if priority is not None:
            line.ahead = priority.ahead
            is_long = exceeds(relay.admission.plain, priority.short)
        line.join(relay, relay.inbound.head.credential, is_long=is_long)
        self._places[relay] = Place(floor, key, time.monotonic())
        relay.phase = Phase.QUEUE

    def _gone(self, relay: Relay, place: Place, now: float) -> None:
        """It waits no more."""
        del self._places[relay]
        if not place.floor.lines[place.key]:
            del place.floor.lines[place.key]
        model, waited = relay.admission.ladder.model, now - place.since
        relay.queued_seconds += waited
        self._plane.meters.histograms["queue_seconds", (("model", model),)].observe(waited)

    def _refuse(self, relay: Relay, reason: str, why: str) -> None:
        model = relay.admission.ladder.model
        self._plane.meters.count("queue_refusals", ("model", model), ("reason", reason))
        relay.turn_away(too_many_requests(f"{model} is busy. {why}; try again."), self)


def is_bounded(relay: Relay) -> bool:
    """Whether limits are about it: questions such as GET /health must not wait behind generations."""
    return relay.inbound.head.method == b"POST"


def has_limits(ladder: Ladder) -> bool:
    """Whether requests for it may have to wait."""
    limits = ladder.limits
    return (
        limits.concurrency is not None
        or limits.kv_guard is not None
        or any(backend.max_concurrency is not None for tier in ladder.tiers for backend in tier.backends)
    )
