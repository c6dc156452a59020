"""Room for so many clients: whoever has waited longest for a request gives way to who comes.

Whoever has begun one stays. When all have, the next client is told to come again.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import TYPE_CHECKING, Protocol, cast

from service.proxy.http.errors import refusal_bytes, unavailable

if TYPE_CHECKING:
    from service.proxy.traffic.plane import DataPlane

LOOK_SECONDS = 1e-5
"""For each client, from a look that found nobody idle to the next; a look takes a twentieth of it."""
MOST_TOLD = 16
"""Clients that are being turned away with words at once; more just see the end of the connection."""
TELL_SECONDS = 1.0
"""For a client to take the answer that turns it away."""


class Seated(Protocol):
    """Who has a seat."""

    def idle_since(self) -> float | None:
        """Monotonic: since when it has had no request; None when it has, or is about to end."""

    def make_way(self) -> None:
        """End it now."""


class Seats:
    """`make_room` for each client that comes."""

    def __init__(self, seated: Callable[[], Iterable[Seated]]) -> None:
        self._seated = seated
        self._idle: list[tuple[float, Seated]] = []
        """Some of those that were idle at the last look, the longest of them last."""
        self._look_from = float("-inf")
        """Monotonic: when to look again."""

    def make_room(self) -> bool:
        """End the longest idle; whether anybody is."""
        leaving = self._longest_idle()
        if leaving is not None:
            leaving.make_way()
        return leaving is not None

    def _longest_idle(self) -> Seated | None:
        """Who became idle after the last look has been so for less long than whoever was by then."""
        while True:
            while self._idle:
                since, seated = self._idle.pop()
                if seated.idle_since() == since:
                    return seated
            now = time.monotonic()
            if now < self._look_from:
                return None
            since_when = [(each.idle_since(), each) for each in self._seated()]
            idle = [(since, each) for since, each in since_when if since is not None]
            if not idle:
                self._look_from = now + LOOK_SECONDS * len(since_when)
                return None
            # Some at once, so that a crowd of many is not looked through for each who comes.
            self._idle = heapq.nsmallest(max(64, len(idle) // 8), idle, key=itemgetter(0))
            self._idle.reverse()


class TurnedAway(asyncio.Protocol):
    """A client for whom there was no room, and who is told so if it can be."""

    told = 0
    """How many are being told just now, in the whole process."""

    def __init__(self, plane: DataPlane, *, in_clear: bool) -> None:
        self._plane = plane
        self._in_clear = in_clear
        self._is_told = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if not self._in_clear or TurnedAway.told >= MOST_TOLD:
            self._transport.abort()
            return
        TurnedAway.told += 1
        self._is_told = True
        refusal = unavailable("too_many_connections", "The proxy has as many connections as it takes.")
        self._plane.refused(refusal)
        request_id = self._plane.answers_itself(None, refusal)
        self._transport.write(refusal_bytes(refusal, keep_alive=False, request_id=request_id))
        # What it has sent is taken until it ends, too: a reset would overtake the answer.
        if self._transport.can_write_eof():
            self._transport.write_eof()
        asyncio.get_running_loop().call_later(TELL_SECONDS, self._transport.abort)

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:
        if self._is_told:
            TurnedAway.told -= 1
