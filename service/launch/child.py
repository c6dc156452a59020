"""One running part: its process group, its log, its end."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from service.launch.part import Part

TETHER = Path(__file__).with_name("tether.py")
LOG_LOOKED_AT = 64 * 1024
"""Bytes of its log that are looked at, from either end."""
LINE_SHOWN = 300
"""Characters of a line of its log that are shown."""
LOG_MOST = 16 * 1024 * 1024
"""Bytes of a log before it is moved aside, one generation kept."""
GONE_SECONDS = 2.0
"""Until a killed group is gone; a grandchild that nobody reaps stays a zombie, which is harmless."""
HURRIED_SECONDS = 1.0
"""Patience with a part that is told to stop when there is no time."""
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
        log_dir.mkdir(parents=True, exist_ok=True)
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
        """What it has logged since its start; of a long one the beginning and the end.

        Nothing where the log cannot be read: whoever took it away is not to end what writes it.
        """
        try:
            with self.log_path.open("rb") as log:
                end = log.seek(0, os.SEEK_END)
                # A log that was moved aside begins again at 0.
                begin = self._log_from if self._log_from <= end else 0
                log.seek(begin)
                text = log.read(LOG_LOOKED_AT)
                log.seek(max(log.tell(), end - LOG_LOOKED_AT))
                return (text + log.read(LOG_LOOKED_AT)).decode("utf-8", "replace")
        except OSError:
            return ""

    def last_lines(self, count: int = 12) -> str:
        """The end of its log, indented."""
        return "".join(f"    {line[:LINE_SHOWN]}\n" for line in self.log().splitlines()[-count:])

    def move_long_log_aside(self) -> None:
        """Keep one older generation; the child appends, so its file can be cut under it.

        Where an older one finds no room, as on a full disk, there is none. A log that is gone is not long.
        """
        with contextlib.suppress(OSError):
            if self.log_path.stat().st_size <= LOG_MOST:
                return
            aside = self.log_path.with_suffix(".log.1")
            try:
                shutil.copyfile(self.log_path, aside)
            except OSError:
                with contextlib.suppress(OSError):
                    aside.unlink()
            os.truncate(self.log_path, 0)

    def stop(self, hurry: Callable[[], bool]) -> bool:
        """SIGTERM, patience, then SIGKILL to what is left of its group; whether it stopped by itself."""
        if self._popen.poll() is None:
            self._popen.send_signal(signal.SIGTERM)
        told_at = time.monotonic()
        while self._popen.poll() is None:
            patience = HURRIED_SECONDS if hurry() else self.part.stop_seconds
            if time.monotonic() - told_at > patience:
                break
            time.sleep(LOOK)
        by_itself = self._popen.poll() is not None
        self.kill_group()
        return by_itself

    def kill_group(self) -> None:
        """SIGKILL whatever still runs in its group, its own children included, and wait until it is gone."""
        deadline = time.monotonic() + GONE_SECONDS
        while self._send(signal.SIGKILL) and time.monotonic() < deadline:
            self._popen.poll()
            time.sleep(LOOK)
        self._popen.wait()

    def _send(self, number: int) -> bool:
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            # Nobody left; macOS answers PermissionError for a group of zombies.
            return False
        return True
