"""The access log: JSON lines of drawn requests, written by a thread that traffic never waits for.

Lines pass through a bounded buffer. What finds it full, or no room on the disk, or a pipe that nobody
reads, is dropped and counted. Several processes append to one file: every write is of whole lines, at
the file's end, and no longer than what a pipe takes in one piece.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import random
import stat
import threading
import time
from collections import deque
from collections.abc import Mapping

from service.proxy.config import AccessLogPlan

FLUSH_SECONDS = 0.2
"""The longest a line waits for its write."""
MOST_LINES = 4096
"""Waiting to be written; a line has about 500 bytes, and never more than `ONE_WRITE`."""
ONE_WRITE = 4096
"""PIPE_BUF of Linux: writes up to so many bytes are never mixed with another process's."""
PATIENCE_AT_END = 2.0
"""Seconds for what is left when the process ends: a pipe that nobody reads must not hold it up."""
_COMPLAIN_SECONDS = 60.0
_MODE = 0o640
_STANDARD = {"stdout": 1, "stderr": 2}

_log = logging.getLogger(__name__)


class AccessLog:
    """`draw`, then `write`, from the event loop; the rest happens in a thread of its own.

    Without a plan it is off: ask `is_on` first, and nothing else is paid.
    """

    def __init__(self, plan: AccessLogPlan | None) -> None:
        self.is_on = False
        self._plan = plan or AccessLogPlan()
        self._lines: deque[bytes] = deque()
        self._wake = threading.Event()
        self._is_closing = False
        self._overflowed = 0
        self._sink = _Sink(self._plan.to)
        self._thread: threading.Thread | None = None
        if plan is not None:
            self.adopt(plan)

    @property
    def dropped(self) -> int:
        """Lines that were drawn and never written."""
        return self._overflowed + self._sink.dropped

    def draw(self, *, failed: bool) -> str | None:
        """Why the request gets a line, `sample` or `error`; None when it gets none."""
        plan = self._plan
        if failed and _drawn(plan.errors):
            return "error"
        return "sample" if _drawn(plan.sample) else None

    def write(self, entry: Mapping[str, object]) -> None:
        """Put a line into the buffer. ASCII only, so that whatever a client sent stays one line of text."""
        if len(self._lines) >= MOST_LINES:
            self._overflowed += 1
            return
        line = json.dumps(entry, separators=(",", ":")).encode() + b"\n"
        if len(line) > ONE_WRITE:
            self._overflowed += 1
            return
        self._lines.append(line)
        if len(self._lines) == MOST_LINES // 4:
            self._wake.set()

    def adopt(self, plan: AccessLogPlan | None) -> None:
        """Go by another plan, or by the same; its file is opened by its name again, in case it was moved."""
        self.is_on = plan is not None
        if plan is None:
            return
        self._plan = plan
        self._sink.aim(plan.to)
        if self._thread is None:
            self._thread = threading.Thread(target=self._write_forever, name="access-log", daemon=True)
            self._thread.start()
        self._wake.set()

    async def close(self) -> None:
        """Write what is left, for at most `PATIENCE_AT_END`."""
        self._is_closing = True
        self._wake.set()
        until = time.monotonic() + PATIENCE_AT_END
        while self._is_writing() and time.monotonic() < until:  # noqa: ASYNC110 - a thread sets no such event
            await asyncio.sleep(0.005)

    def _is_writing(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    # -- in the thread -----------------------------------------------------------------------------

    def _write_forever(self) -> None:
        is_last = False
        while not is_last:
            self._wake.wait(FLUSH_SECONDS)
            self._wake.clear()
            is_last = self._is_closing
            self._sink.refresh()
            while self._lines:
                self._sink.write(self._batch())
        self._sink.close()

    def _batch(self) -> list[bytes]:
        batch, size = [], 0
        while self._lines and size + len(self._lines[0]) <= ONE_WRITE:
            batch.append(self._lines.popleft())
            size += len(batch[-1])
        return batch


class _Sink:
    """Where lines go: a file that is opened to append, or a standard stream."""

    def __init__(self, to: str) -> None:
        self._to = to
        self._opened = -1
        self._is_stale = True
        self.dropped = 0
        self._is_torn = False
        """The last write ended within a line."""
        self._complained = -_COMPLAIN_SECONDS

    def aim(self, to: str) -> None:
        """From the next `refresh` on, write there. From any thread."""
        self._to = to
        self._is_stale = True

    def refresh(self) -> None:
        """Open what is to be written if that is due; what was there before stays until it is open."""
        if not self._is_stale:
            return
        self._is_stale = False
        try:
            opened = _STANDARD[self._to] if self._to in _STANDARD else open_to_append(self._to)
        except OSError as error:
            self._complain(error)
            self._is_stale = self._opened < 0
            return
        self.close()
        self._opened, self._is_torn = opened, False

    def write(self, batch: list[bytes]) -> None:
        waiting = b"".join(batch)
        if self._is_torn:
            waiting = b"\n" + waiting
        lost = len(batch)
        try:
            while waiting:
                waiting = waiting[os.write(self._opened, waiting) :]
                self._is_torn = bool(waiting)
                lost = waiting.count(b"\n")
        except OSError as error:
            self.dropped += lost  # the line that was cut among them
            self._complain(error)

    def close(self) -> None:
        if self._opened > 2:
            os.close(self._opened)

    def _complain(self, error: OSError) -> None:
        """Say it now and then; not on the stream that may be the one that cannot be written."""
        now = time.monotonic()
        if self._to not in _STANDARD and now - self._complained >= _COMPLAIN_SECONDS:
            self._complained = now
            _log.error("the access log %s is not written: %s", self._to, error.strerror)


def open_to_append(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, _MODE)


def check_writable(plan: AccessLogPlan | None) -> None:
    """OSError when the log cannot be written, so that this is told before a process serves."""
    if plan is None or plan.to in _STANDARD:
        return
    try:
        if stat.S_ISFIFO(os.stat(plan.to).st_mode):
            return  # to open it would mean to wait for its reader
    except FileNotFoundError:
        pass
    try:
        os.close(open_to_append(plan.to))
    except OSError as error:
        number = error.errno or errno.EIO
        raise OSError(
            number, f"cannot write the access log {plan.to}: {os.strerror(number)}; see proxy.access_log.to"
        ) from error


def _drawn(share: float) -> bool:
    return share >= 1.0 or (share > 0.0 and random.random() < share)
