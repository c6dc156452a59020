"""How long an event waits for the event loop, measured by timers that are due at known times.

The loop's timers are due at whole milliseconds, so that waits below one are not told apart.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

EVERY_SECONDS = 0.05
MOST_AT_ONCE = 1000
"""Events that are told after a standstill, each with the wait it would have had."""


class LoopLag:
    """Tells `observe` every wait, in seconds, from `start` to `close`."""

    def __init__(self, observe: Callable[[float], None]) -> None:
        self._observe = observe
        self._due = 0.0
        """Monotonic time of the next event."""
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._due = time.monotonic() + EVERY_SECONDS
        self._arm(EVERY_SECONDS)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._elapsed)

    def _elapsed(self) -> None:
        now = time.monotonic()
        told = 0
        while self._due <= now:
            if told < MOST_AT_ONCE:
                self._observe(now - self._due)
                told += 1
            self._due += EVERY_SECONDS
        self._arm(self._due - now)
