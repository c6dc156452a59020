"""Every request has a number, and numbers are set aside in the ledger before they are given out.

A process that is killed takes along what it saw since it last wrote its ledger. The ledger says up to which
number it may have given one out, so it can have seen no more than that: the account has a bound and needs no
guess. Whenever half of what was set aside is used, more is, without waiting for the next regular write.

The bound holds while the store confirms a write before the other half is used up, at a thousand connections
and full speed some tenth of a second. While the store is away requests are served and numbered all the same.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

LEAST_AHEAD = 4096
"""Numbers set aside at least: a burst uses up some before a write can go out."""
SECONDS_AHEAD = 2.0
"""So long the numbers last at the rate of the moment; longer than one call of the store may take."""


class Numbers:
    """One per process."""

    __slots__ = ("_clock", "_low", "_noted", "_noted_at", "_running_low", "last")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.last = 0
        """The highest given out: as many requests have been seen."""
        self._clock = clock
        self._low = 0
        self._running_low = asyncio.Event()
        self._noted, self._noted_at = 0, clock()

    def take(self) -> int:
        """The next request's number, from 1."""
        self.last += 1
        if self.last > self._low:
            self._running_low.set()
        return self.last

    def ahead(self) -> int:
        """Up to which number to set aside now."""
        now = self._clock()
        rate = (self.last - self._noted) / max(now - self._noted_at, 0.01)
        self._noted, self._noted_at = self.last, now
        return self.last + max(LEAST_AHEAD, int(rate * SECONDS_AHEAD))

    def confirmed(self, reserved: int) -> None:
        """The ledger says so: numbers up to `reserved` may be given out."""
        self._low = self.last + max(0, reserved - self.last) // 2
        if reserved > self.last:
            self._running_low.clear()

    async def until_low(self, seconds: float) -> None:
        """Wait until half of what was set aside is used, at most so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._running_low.wait()
