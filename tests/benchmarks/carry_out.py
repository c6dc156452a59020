"""What a benchmark beside nginx does from its command line to its exit status."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from tests.benchmarks.figures import Figure, end
from tests.benchmarks.rig import end_on_signals, machine, missing, publish

Measured = TypeVar("Measured")
_PACKAGES = {"wrk": "wrk", "nginx": "nginx-light", "taskset": "util-linux"}


def carry_out(
    parser: argparse.ArgumentParser,
    *,
    needs: Sequence[str],
    measure: Callable[[Path, argparse.Namespace], Measured],
    figures_of: Callable[[Measured], Sequence[Figure]],
    report: Callable[[Measured, Sequence[Figure], argparse.Namespace], str],
) -> None:
    """Measure in a folder that is thrown away, publish the report, exit with 1 when a figure was missed."""
    parser.add_argument("--output", type=Path, help="write the report there as well")
    asked = parser.parse_args()
    if lacking := missing(*needs):
        packages = " ".join(_PACKAGES[each] for each in needs)
        sys.exit(f"skipped, this machine lacks {', '.join(lacking)} (Debian: {packages})")
    end_on_signals()
    described = machine()
    with tempfile.TemporaryDirectory() as folder:
        measured = measure(Path(folder), asked)
    figures = figures_of(measured)
    publish(f"{described}\n\n{report(measured, figures, asked)}", asked.output)
    end(figures)
