"""Sends a block's requests and notes what becomes of them; never waits for an answer before it sends.

In an open loop requests leave at times drawn beforehand, over as many connections as that takes. In a closed
loop the next one leaves when one has ended. The load goes on past the window until the last of its requests
has ended, so that these are not served by an emptying tier; then everything still under way is dropped.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from evaluators.exchange import FaultKind
from service.fleet import Backend
from service.load.alarm import Alarm
from service.load.arrivals import dues, picks
from service.load.flight import Flight
from service.load.output import Output
from service.load.plan import Arrivals, BlockPlan
from service.load.servers import Server
from service.load.timed import GIVEN_UP

TICK_SECONDS = 0.1
LONGEST_RAMP_SECONDS = 10.0
"""Over which a closed loop lets its first requests go."""

PAUSE_SECONDS = 0.2
"""After a failure, before a closed loop sends the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A request as it is sent."""

    path: str
    body: bytes
    output: Callable[[], Output]


class Driver:
    """One block."""

    def __init__(
        self,
        plan: BlockPlan,
        *,
        backends: Sequence[Backend],
        requests: Sequence[Prepared],
        trace: Sequence[float],
        request_seconds: float,
        hopeless_seconds: float = math.inf,
        silent_seconds: float = math.inf,
    ) -> None:
        """`request_seconds`: after which a request has failed.

        `hopeless_seconds`: after which one without any token is a miss. Once the window is over by as much,
        those of the window are not waited for; all of them have missed by then, so that no other gains.
        `silent_seconds`: without any token, first or next, after which one is not waited for once the window
        is over by as much; until then all that could still meet the SLO are served beside it.
        """
        if not backends:
            raise ValueError(f"tier {plan.tier!r} has no backend to load")
        self.start = 0.0
        """Monotonic time at which it began."""
        self.flights: list[Flight] = []
        """Everything taken up, in that order."""
        self.ticks: list[float] = []
        """By how much our own clock rang late, in seconds."""
        self.servers = [Server(backend, self._over) for backend in backends]
        self._plan = plan
        self._requests = requests
        self._request_seconds = request_seconds
        self._hopeless_seconds = hopeless_seconds
        self._silent_seconds = silent_seconds
        self._picks = picks(len(requests), plan.seed)
        self._paired = plan.arrivals is Arrivals.TRACE and len(requests) == len(trace)
        """A trace's times go with its own requests."""
        self._dues = dues(plan, trace) if plan.concurrency is None else _ramp(plan, plan.concurrency)
        """When requests are due, in seconds from the start, and their places in the trace."""
        self._next: tuple[float, int] | None = next(self._dues)
        self._last_offset = plan.seconds + plan.cool_down_seconds
        self._awaited = 0
        """Requests of the window under way."""
        self._under_way: dict[Flight, None] = {}
        self._turn = 0
        self._done = asyncio.Event()

    async def run(self, start: float) -> None:
        """From `start`, a monotonic time, until the last request of the window has ended, or was given up."""
        self.start = start
        ring, tick = Alarm(self._ring), Alarm(self._tick)
        self._alarm, self._clock = ring, tick
        self._tick_due = self.start + TICK_SECONDS
        try:
            self._arm()
            tick.set(self._tick_due)
            await self._done.wait()
        finally:
            self._done.set()
            ring.close()
            tick.close()

    def close(self) -> None:
        """Drop every connection, and what is under way."""
        for server in self.servers:
            server.close()
        for flight in self._under_way:
            if flight.stop is not None:
                flight.stop.abort()

    def _arm(self) -> None:
        if self._next is not None and self._next[0] < self._last_offset:
            self._alarm.set(self.start + self._next[0])

    def _ring(self) -> None:
        while self._next is not None and not self._done.is_set():
            offset, place = self._next
            now = time.monotonic()
            if self.start + offset > now or offset >= self._last_offset:
                break
            self._begin(offset, now, place)
            self._next = next(self._dues, None)
        if not self._done.is_set():
            self._arm()

    def _begin(self, offset: float, now: float, place: int) -> None:
        number = place if self._paired else next(self._picks)
        request = self._requests[number]
        flight = Flight(
            ordinal=len(self.flights),
            request=number,
            path=request.path,
            body=request.body,
            output=request.output(),
            scheduled=offset,
            begun=now,
        )
        self.flights.append(flight)
        self._under_way[flight] = None
        self._awaited += self._plan.counts(offset)
        self._turn += 1
        count = len(self.servers)
        flight.place = min(
            range(count), key=lambda each: (self.servers[each].outstanding, (each + self._turn) % count)
        )
        self.servers[flight.place].put(flight)

    def _over(self, flight: Flight) -> None:
        if flight not in self._under_way:
            return
        del self._under_way[flight]
        self._awaited -= self._plan.counts(flight.scheduled)
        if self._plan.concurrency is not None:
            # A backend that refuses at once would otherwise be asked as fast as we can.
            pause = PAUSE_SECONDS if flight.fault else 0.0
            asyncio.get_running_loop().call_later(pause, self._again)
        self._settle(time.monotonic())

    def _again(self) -> None:
        now = time.monotonic()
        if now - self.start < self._last_offset and not self._done.is_set():
            self._begin(now - self.start, now, 0)

    def _tick(self) -> None:
        now = time.monotonic()
        while self._tick_due <= now:
            self.ticks.append(now - self._tick_due)
            self._tick_due += TICK_SECONDS
        for flight, fault in self._lost_causes(now - self.start):
            self.servers[flight.place].give_up(flight, fault)
        for server in self.servers:
            server.prune(now)
        self._settle(now)
        if not self._done.is_set():
            self._clock.set(self._tick_due)

    def _lost_causes(self, elapsed: float) -> list[tuple[Flight, str]]:
        """Requests that nobody waits for any longer, and why."""
        found: list[tuple[Flight, str]] = []
        missed = elapsed >= self._plan.seconds + self._hopeless_seconds
        quiet = elapsed >= min(self._last_offset, self._plan.seconds + self._silent_seconds)
        for flight in self._under_way:  # in the order in which they were due
            if elapsed - flight.scheduled >= self._request_seconds:
                found.append((flight, FaultKind.TIMEOUT))
                continue
            if not missed and not quiet:
                break
            # The load beside the last answers stays as it is until they have ended.
            hopeless = missed and flight.first_token is None and flight.scheduled < self._plan.seconds
            if hopeless or (quiet and self._silence(flight, elapsed) > self._silent_seconds):
                found.append((flight, GIVEN_UP))
        return found

    def _silence(self, flight: Flight, elapsed: float) -> float:
        """Seconds for which it has shown no token."""
        last = flight.scheduled if flight.last_token is None else flight.last_token - self.start
        return elapsed - last

    def _settle(self, now: float) -> None:
        all_begun = self._next is None or self._next[0] >= self._plan.seconds
        if now - self.start >= self._plan.seconds and all_begun and not self._awaited:
            self._done.set()


def _ramp(plan: BlockPlan, concurrency: int) -> Iterator[tuple[float, int]]:
    """The first requests of a closed loop, spread over the beginning of the warm-up."""
    seconds = min(plan.warm_up_seconds / 2, LONGEST_RAMP_SECONDS)
    return ((number * seconds / concurrency, number) for number in range(concurrency))
