"""Processes that end with whoever started them, also where that is killed and cleans up nothing."""

from __future__ import annotations

import atexit
import contextlib
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from typing import IO, Any

from service.launch import watchdog

PATIENCE = 2 * watchdog.GRACE
"""Seconds for the watchdog to end what was left; then it ends it without us."""


class Leashed(subprocess.Popen):
    """`subprocess.Popen`, in a session of its own that the watchdog of `tiergate up` ends when we are gone.

    A session, since Ctrl-C is for whoever started it, who ends one after the other. Not the kernel's signal
    on a parent's death (`launch/tether.py`): that comes at the end of the thread that started a process, and
    on Linux alone.
    """

    def __init__(self, args: Sequence[Any], **how: Any) -> None:
        self._told = False
        super().__init__(args, **{**how, "start_new_session": True})
        self._told = True
        _tell(f"+{self.pid}\n")

    def poll(self) -> int | None:
        return self._off(super().poll())

    def wait(self, timeout: float | None = None) -> int:
        status = super().wait(timeout)
        self._off(status)
        return status

    def _off(self, status: int | None) -> int | None:
        """Its number may soon be somebody else's."""
        if status is not None and self._told:
            self._told = False
            _tell(f"-{self.pid}\n")
        return status


def _tell(line: str) -> None:
    # Without its watchdog a test still tests.
    with contextlib.suppress(BrokenPipeError):
        _pipe().write(line)


@cache
def _pipe() -> IO[str]:
    """The watchdog's standard input: at its end it ends what is left."""
    dog = subprocess.Popen(
        [sys.executable, "-I", "-S", watchdog.__file__],
        stdin=subprocess.PIPE,
        text=True,
        bufsize=1,
        start_new_session=True,
    )
    assert dog.stdin is not None
    atexit.register(_close, dog)
    return dog.stdin


def _close(dog: subprocess.Popen[str]) -> None:
    assert dog.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        dog.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        dog.wait(PATIENCE)
