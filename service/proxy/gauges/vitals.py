"""What the kernel says of a process: memory and file descriptors. On Linux; nothing elsewhere."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

_LIMIT = re.compile(r"^Max open files +(\d+)", re.MULTILINE)
_PAGE = os.sysconf("SC_PAGE_SIZE")


def vitals(pids: Iterable[int]) -> Counter[str]:
    """Sums over the processes, without those that are gone; named as the exposition names them."""
    total: Counter[str] = Counter()
    for pid in pids:
        try:
            total.update(_of(Path("/proc") / str(pid)))
        except (OSError, ValueError, IndexError):
            continue
    return total


def _of(process: Path) -> dict[str, int]:
    resident = int((process / "statm").read_text().split()[1]) * _PAGE
    found = {"resident_memory_bytes": resident, "open_fds": len(os.listdir(process / "fd"))}
    limit = _LIMIT.search((process / "limits").read_text())
    return {**found, "max_fds": int(limit[1])} if limit else found
