"""Standard error that nobody waits for: what is written there passes through a bounded buffer to a thread.

`logging`, `print`, warnings and tracebacks write wherever they happen to be called. When a pipe's reader
sleeps, or a terminal is stopped, that stops whoever calls: an event loop with all its clients, or whoever
looks after processes. Here lines that find the buffer full are dropped, counted, and told of later.
"""

from __future__ import annotations

import atexit
import io
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

MOST_BYTES = 256 * 1024
"""Waiting to be written."""
PATIENCE_AT_END = 1.0
"""Seconds for what is left when the process ends."""
_AGAIN_SECONDS = 0.05
"""Between two tries at a pipe that is full and whose other users do not want it to block."""


class StandardError(io.TextIOBase):
    """A text stream over a file descriptor; `write` never blocks."""

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, descriptor: int = 2) -> None:
        self._descriptor = descriptor
        self._begun = ""
        """Of a line that is not complete."""
        self._entries: deque[bytes] = deque()
        self._size = 0
        """Bytes that wait, the entry that is being written among them."""
        # Reentrant: a signal or the collector may make the same thread write while it writes.
        self._changed = threading.Condition(threading.RLock())
        self.dropped = 0
        """Lines that were never written."""
        self._untold = 0
        """Of those, how many the reader has not been told of."""
        self._is_over = False
        threading.Thread(target=self._write_forever, name="standard-error", daemon=True).start()

    # -- a text stream -----------------------------------------------------------------------------

    def write(self, text: str) -> int:
        with self._changed:
            whole, end, self._begun = (self._begun + text).rpartition("\n")
            if end:
                self._add(whole + end)
        return len(text)

    def flush(self) -> None:
        """A line that is not complete need not wait for its end."""
        # The interpreter flushes last of all, when a thread that it has stopped may hold the lock.
        if self._begun:
            with self._changed:
                begun, self._begun = self._begun, ""
                self._add(begun)

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def fileno(self) -> int:
        return self._descriptor

    # ----------------------------------------------------------------------------------------------

    def settle(self, seconds: float = PATIENCE_AT_END) -> bool:
        """Wait until everything is written, but no longer than that; whether it is."""
        self.flush()
        with self._changed:
            return self._changed.wait_for(lambda: self._size == 0, seconds)

    def end(self) -> None:
        """Settle; the thread ends when it has written what is left."""
        self.settle()
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def _add(self, entry: str) -> None:
        encoded = entry.encode(self.encoding, self.errors)
        if self._size + len(encoded) > MOST_BYTES:
            self._drop(encoded)
            return
        if self._untold:
            encoded = b"(%d lines were dropped here: nobody read them in time)\n" % self._untold + encoded
            self._untold = 0
        self._entries.append(encoded)
        self._size += len(encoded)
        self._changed.notify_all()

    def _drop(self, encoded: bytes) -> None:
        lines = max(1, encoded.count(b"\n"))
        self.dropped += lines
        self._untold += lines

    # -- in the thread -----------------------------------------------------------------------------

    def _write_forever(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._entries) or self._is_over)
                if not self._entries:
                    return
                entry = self._entries.popleft()
            is_written = self._write(entry)
            with self._changed:
                if not is_written:
                    self._drop(entry)
                self._size -= len(entry)
                self._changed.notify_all()

    def _write(self, waiting: bytes) -> bool:
        """Whether it could be written."""
        while waiting:
            try:
                waiting = waiting[os.write(self._descriptor, waiting) :]
            except BlockingIOError:
                time.sleep(_AGAIN_SECONDS)
            except OSError:  # the terminal is gone, the pipe is broken, the disk is full
                return False
        return True


def take_over() -> StandardError:
    """Put it in the place of `sys.stderr` until the process ends, which writes what is left."""
    taken = StandardError()
    sys.stderr = taken
    # What ends the interpreter has written its traceback by then.
    atexit.register(taken.settle)
    return taken


@contextmanager
def taken_over() -> Iterator[StandardError]:
    """The same for a while; at its end what is left is written, in bounded time."""
    before, taken = sys.stderr, StandardError()
    sys.stderr = taken
    try:
        yield taken
    finally:
        sys.stderr = before
        taken.end()
