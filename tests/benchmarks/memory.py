"""What a process tree holds: resident memory over time, and open files."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from tests.benchmarks.rig import tree

_PAGE = os.sysconf("SC_PAGE_SIZE")
MIB = 1024 * 1024


def resident_mib(pid: int) -> float:
    """Of the tree; what its processes share counts once for each."""
    total = 0
    for each in tree(pid):
        try:
            total += int(Path(f"/proc/{each}/statm").read_text().split()[1]) * _PAGE
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total / MIB


def open_files(pid: int) -> int:
    """Descriptors of the tree: sockets above all."""
    total = 0
    for each in tree(pid):
        try:
            total += len(os.listdir(f"/proc/{each}/fd"))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total


def slope_per_minute(samples: Sequence[tuple[float, float]]) -> float:
    """Of a straight line through (seconds, amount) by least squares, per minute; 0 for fewer than three."""
    if len(samples) < 3:
        return 0.0
    seconds, amounts = np.array(samples).T
    return float(np.polyfit(seconds - seconds[0], amounts, 1)[0] * 60)


class Watch:
    """Samples a tree's resident memory each second for as long as the block."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self.samples: list[tuple[float, float]] = []
        """Monotonic seconds, MiB."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def slope(self, *, after: float = 0.0) -> float:
        """MiB per minute, without the first seconds."""
        begin = self.samples[0][0] + after if self.samples else 0.0
        return slope_per_minute([each for each in self.samples if each[0] >= begin])

    def _sample(self) -> None:
        while True:
            self.samples.append((time.monotonic(), resident_mib(self._pid)))
            if self._over.wait(1.0):
                return
