"""SIGTERM, SIGINT and SIGHUP as an orderly end: one unwinds the `with` blocks, a later one hurries.

A SIGHUP that does not come from a terminal that closed may mean something else to whoever says so.
"""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from service.proxy.processes.terminal import has_terminal

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
TOGETHER_SECONDS = 1.0
"""Signals this close are one wish: a terminal that closes and a process manager send two at once."""


class ToldToStop(SystemExit):
    """A signal asked for an orderly end.

    A SystemExit, since asyncio lets nothing else through its callbacks; its status is the shell's for a
    signal.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(128 + number)


def _is_an_error(record: logging.LogRecord) -> bool:
    """Not when asyncio finds that a task ended by a signal which unwinds everything."""
    return not (record.exc_info and isinstance(record.exc_info[1], ToldToStop))


@dataclass(slots=True)
class StopSignals:
    """When it was told to stop, in monotonic seconds."""

    first: float | None = None
    last: float = 0.0
    on_reload: Callable[[], None] | None = None
    """What a SIGHUP asks for, unless it says that the terminal has gone; None = an end like the others."""

    def hurry(self) -> bool:
        """Whether it was told again later."""
        return self.first is not None and self.last - self.first > TOGETHER_SECONDS


@contextmanager
def stop_signals(now: Callable[[], float] = time.monotonic) -> Iterator[StopSignals]:
    """Inside, the first stop signal raises `ToldToStop` in the main thread; must be entered there."""
    told = StopSignals()
    # For good: what a task ended by is told when the garbage collector finds it, maybe after the block.
    logging.getLogger("asyncio").addFilter(_is_an_error)
    had_terminal = has_terminal()

    def on_signal(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP and told.on_reload is not None and has_terminal() == had_terminal:
            told.on_reload()
            return
        told.last = now()
        if told.first is None:
            told.first = told.last
            raise ToldToStop(number)

    before = {number: signal.signal(number, on_signal) for number in STOPPING}
    try:
        yield told
    finally:
        for number, action in before.items():
            signal.signal(number, action)
