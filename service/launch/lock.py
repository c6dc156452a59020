"""One owner per state directory, by a lock that the kernel drops: a stale file is harmless."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class StateDirInUse(Exception):
    """Another `tiergate up` or `demo` runs on this state directory."""

    def __init__(self, state_dir: Path, owner: str) -> None:
        super().__init__(
            f"{state_dir} is in use by pid {owner or 'unknown'}. Stop that one (it may still be ending its"
            f" children), or give this one another place: store.state_dir or TIERGATE_STATE_DIR."
        )


@contextmanager
def owning(state_dir: Path) -> Iterator[int]:
    """Hold the lock of a directory (made 0700 if new); yields the open lock file; raises `StateDirInUse`."""
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    number = os.open(state_dir / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StateDirInUse(state_dir, os.read(number, 32).decode("ascii", "replace").strip()) from None
        os.ftruncate(number, 0)
        os.pwrite(number, f"{os.getpid()}\n".encode(), 0)
        yield number
    finally:
        os.close(number)
