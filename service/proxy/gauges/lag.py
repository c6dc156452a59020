"""How long an event waits for the event loop, measured by events that are due at known times.

The kernel's timer descriptor says when: the loop's own timers are due at whole milliseconds, ten times what a
loop that is not busy takes.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
import time
from collections.abc import Callable

EVERY_SECONDS = 0.05
MOST_AT_ONCE = 1000
"""Events that are told after a standstill, each with the wait it would have had."""
_CLOCK_MONOTONIC = 1
_ABSOLUTE = 1


class _Moment(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))

    @classmethod
    def at(cls, seconds: float) -> _Moment:
        return cls(int(seconds), int(seconds % 1.0 * 1e9))


class _Timer(ctypes.Structure):
    _fields_ = (("interval", _Moment), ("first", _Moment))


class LoopLag:
    """Tells `observe` every wait, in seconds, from `start` to `close`. On Linux; nothing elsewhere."""

    def __init__(self, observe: Callable[[float], None]) -> None:
        self._observe = observe
        self._due = 0.0
        """Monotonic time of the next event."""
        self._timer = -1

    def start(self) -> None:
        if not sys.platform.startswith("linux"):
            return
        libc = ctypes.CDLL(None, use_errno=True)
        self._timer = libc.timerfd_create(_CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._timer < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._due = time.monotonic() + EVERY_SECONDS
        due = _Timer(_Moment.at(EVERY_SECONDS), _Moment.at(self._due))
        if libc.timerfd_settime(self._timer, _ABSOLUTE, ctypes.byref(due), None) < 0:
            raise OSError(ctypes.get_errno(), "timerfd_settime")
        asyncio.get_running_loop().add_reader(self._timer, self._elapsed)

    def close(self) -> None:
        if self._timer >= 0:
            asyncio.get_running_loop().remove_reader(self._timer)
            os.close(self._timer)
            self._timer = -1

    def _elapsed(self) -> None:
        now = time.monotonic()
        try:
            events = int.from_bytes(os.read(self._timer, 8), sys.byteorder)
        except BlockingIOError:
            return
        for number in range(min(events, MOST_AT_ONCE)):
            self._observe(max(0.0, now - self._due - number * EVERY_SECONDS))
        self._due += events * EVERY_SECONDS
