"""A timer as precise as the kernel's. The event loop's own are rounded to a millisecond."""

from __future__ import annotations

import asyncio
import ctypes
import os
import time
from collections.abc import Callable

_MONOTONIC, _NONBLOCK, _ABSOLUTE = 1, os.O_NONBLOCK | os.O_CLOEXEC, 1
_NANO = 1_000_000_000
_libc = ctypes.CDLL(None, use_errno=True)


class _Timer(ctypes.Structure):
    _fields_ = [(name, ctypes.c_long) for name in ("every_s", "every_ns", "first_s", "first_ns")]


class Alarm:
    """Calls once at each time it was set to, on the running loop (Linux only)."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._fd = _libc.timerfd_create(_MONOTONIC, _NONBLOCK)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._ring = ring
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._fd, self._ready)

    def set(self, at: float) -> None:
        """Ring at a time of `time.monotonic`, at once if it has passed."""
        whole = max(int(at * _NANO), time.monotonic_ns() + 1)
        timer = _Timer(0, 0, whole // _NANO, whole % _NANO)
        if _libc.timerfd_settime(self._fd, _ABSOLUTE, ctypes.byref(timer), None):
            raise OSError(ctypes.get_errno(), "timerfd_settime")

    def close(self) -> None:
        self._loop.remove_reader(self._fd)
        os.close(self._fd)

    def _ready(self) -> None:
        try:
            os.read(self._fd, 8)
        except BlockingIOError:
            return
        self._ring()
