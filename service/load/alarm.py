"""A timer as precise as the kernel's: those of event loops are rounded to a millisecond."""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
import time
from collections.abc import Callable

_MONOTONIC, _ABSOLUTE = 1, 1
_NANO = 1_000_000_000


class _Setting(ctypes.Structure):
    _fields_ = [(name, ctypes.c_long) for name in ("every_s", "every_ns", "first_s", "first_ns")]


class Alarm:
    """Rings once at each time it was set to, on the running loop. OSError when the kernel refuses a timer.

    Where there is no timerfd (it is Linux's), the loop's own timers ring.
    """

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._descriptor: int | None = None
        if sys.platform == "linux":
            self._libc = ctypes.CDLL(None, use_errno=True)
            made = self._libc.timerfd_create(_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
            if made < 0:
                raise OSError(ctypes.get_errno(), "timerfd_create")
            self._descriptor = made
            self._loop.add_reader(made, self._ready)

    def set(self, at: float) -> None:
        """Ring at a time of `time.monotonic`, at once if it has passed."""
        if self._descriptor is None:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_later(max(0.0, at - time.monotonic()), self._ring)
            return
        due = max(int(at * _NANO), time.monotonic_ns() + 1)
        setting = _Setting(0, 0, due // _NANO, due % _NANO)
        if self._libc.timerfd_settime(self._descriptor, _ABSOLUTE, ctypes.byref(setting), None):
            raise OSError(ctypes.get_errno(), "timerfd_settime")

    def close(self) -> None:
        """Never ring again."""
        if self._timer is not None:
            self._timer.cancel()
        if self._descriptor is not None:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None

    def _ready(self) -> None:
        assert self._descriptor is not None, "nothing is read of a closed timer"
        try:
            os.read(self._descriptor, 8)
        except BlockingIOError:
            return
        self._ring()
