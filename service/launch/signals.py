"""SIGTERM, SIGINT and SIGHUP as an orderly end: one unwinds the `with` blocks, a second hurries."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class ToldToStop(SystemExit):
    """A signal asked for an orderly end.

    A SystemExit, since asyncio lets nothing else through its callbacks; its status is the shell's for a
    signal.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(128 + number)


@dataclass(slots=True)
class StopSignals:
    """How often it was told to stop."""

    times: int = 0

    def hurry(self) -> bool:
        """Whether it was told more than once."""
        return self.times > 1


@contextmanager
def stop_signals() -> Iterator[StopSignals]:
    """Inside, the first stop signal raises `ToldToStop` in the main thread; must be entered there."""
    told = StopSignals()

    def on_signal(number: int, frame: FrameType | None) -> None:
        told.times += 1
        if told.times == 1:
            raise ToldToStop(number)

    before = {number: signal.signal(number, on_signal) for number in STOPPING}
    try:
        yield told
    finally:
        for number, action in before.items():
            signal.signal(number, action)
