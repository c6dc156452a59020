"""One owner per state directory, by a lock that the kernel drops: a stale file is harmless."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 15.0
"""Seconds for the children of an owner that was killed to end."""
LOOK = 0.1


class StateDirInUse(Exception):
    """Another `tiergate up` or `demo` runs on this state directory."""

    def __init__(self, state_dir: Path, owner: str) -> None:
        super().__init__(
            f"{state_dir} is in use by pid {owner or 'unknown'}. Stop that one, or give this one another"
            " place: store.state_dir or TIERGATE_STATE_DIR."
        )


@contextmanager
def owning(state_dir: Path) -> Iterator[int]:
    """Hold the lock of a directory (made 0700 if new); yields the open lock file; raises `StateDirInUse`.

    An owner that was killed holds it until its watchdog has ended its children, which is waited for.
    """
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    number = os.open(state_dir / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + PATIENCE
        while not _locked(number):
            owner = os.pread(number, 32, 0).decode("ascii", "replace").strip()
            if _runs(owner) or time.monotonic() > deadline:
                raise StateDirInUse(state_dir, owner)
            time.sleep(LOOK)
        os.ftruncate(number, 0)
        os.pwrite(number, f"{os.getpid()}\n".encode(), 0)
        yield number
    finally:
        os.close(number)


def _locked(number: int) -> bool:
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _runs(owner: str) -> bool:
    # An owner that has not written its number yet has only just begun.
    if not owner.isdecimal():
        return False
    try:
        os.kill(int(owner), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
