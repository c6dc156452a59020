"""One running part: its process group, its log, its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from service.launch.part import Part

TETHER = Path(__file__).with_name("tether.py")
LOG_KEPT = 64 * 1024
"""Bytes of its log that are looked at."""
LOG_MOST = 16 * 1024 * 1024
"""Bytes of a log before it is moved aside, one generation kept."""
LOOK = 0.05
"""Seconds between two looks at a child that is stopping."""


class Child:
    """A part that was started, in a process group of its own; used by one thread only.

    On Linux the kernel ends it when that thread dies, so the thread must live as long as the child.
    """

    def __init__(self, part: Part, log_dir: Path, environ: Mapping[str, str]) -> None:
        self.part = part
        self.log_path = log_dir / f"{part.name}.log"
        self.started_at = time.monotonic()
        with self.log_path.open("ab") as log:
            self._log_from = log.tell()
            self._popen = subprocess.Popen(
                [sys.executable, "-I", "-S", str(TETHER), str(os.getpid()), *part.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**environ, **part.env},
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Also the number of its process group."""
        return self._popen.pid

    def ended(self) -> str | None:
        """How it ended, None while it runs."""
        status = self._popen.poll()
        if status is None:
            return None
        if status < 0:
            return f"was ended by {signal.Signals(-status).name}"
        return f"ended with exit status {status}"

    def log(self) -> str:
        """What it has logged since its start, at most the last 64 KiB."""
        with self.log_path.open("rb") as log:
            end = log.seek(0, os.SEEK_END)
            # A log that was moved aside begins again at 0.
            begin = self._log_from if self._log_from <= end else 0
            log.seek(max(begin, end - LOG_KEPT))
            return log.read().decode("utf-8", "replace")

    def last_lines(self, count: int = 12) -> str:
        """The end of its log, indented."""
        return "".join(f"    {line}\n" for line in self.log().splitlines()[-count:])

    def move_long_log_aside(self) -> None:
        """Keep one older generation; the child appends, so its file can be cut under it."""
        if self.log_path.stat().st_size > LOG_MOST:
            self.log_path.with_suffix(".log.1").write_bytes(self.log_path.read_bytes())
            os.truncate(self.log_path, 0)

    def stop(self, hurry: Callable[[], bool]) -> bool:
        """SIGTERM, patience, then SIGKILL to what is left of its group; whether it stopped by itself."""
        if self._popen.poll() is None:
            self._popen.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + self.part.stop_seconds
        while self._popen.poll() is None and time.monotonic() < deadline and not hurry():
            time.sleep(LOOK)
        by_itself = self._popen.poll() is not None
        self.kill_group()
        self._popen.wait()
        return by_itself

    def kill_group(self) -> None:
        """SIGKILL whatever still runs in its group, its own children included."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            # Nothing left; macOS answers PermissionError for a group of zombies.
            return
