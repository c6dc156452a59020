"""Requests/s through one core: Tiergate capturing nothing, a tenth, everything; nginx; the reference.

`python -m tests.benchmarks.throughput [--rounds N] [--seconds N]`. Needs `wrk` and `nginx`: a Python client
could not load one core of either.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.arms import arena
from tests.benchmarks.rig import Arm, Reading, Rounds, cpu_seconds, interleave, machine, missing, spread, wrk

TARGETS = (
    ("capture 100 %", "nginx mirror 100 %", 1.2),
    ("capture 10 %", "nginx mirror 10 %", 0.8),
    ("capture 0 %", "nginx", 0.8),
    ("capture 10 %", "FastAPI + httpx", 50.0),
)
AGAIN = " (again)"


def measure(folder: Path, *, rounds: int, seconds: int) -> Rounds:
    """All arms, interleaved; nginx and `capture 10 %` run twice a round for the A/A spread."""
    with arena(folder) as ground:
        arms = [
            Arm(name="direct", port=ground.serving),
            *ground.nginx(),
            ground.tiergate("capture 0 %", "0%"),
            ground.tiergate("capture 10 %", "10%"),
            ground.tiergate("capture 100 %", "100%"),
            ground.reference(),
        ]
        twice = [arm for arm in arms if arm.name in ("nginx", "capture 10 %")]
        arms += [Arm(name=arm.name + AGAIN, port=arm.port, pid=arm.pid) for arm in twice]

        def one(arm: Arm) -> Reading:
            wrk(arm.port, seconds=1)
            before = cpu_seconds(arm.pid) if arm.pid else 0.0
            rate = wrk(arm.port, seconds=seconds)
            spent = cpu_seconds(arm.pid) - before if arm.pid else None
            ground.forget()
            return Reading(value=rate, cpu_per_1000=spent / (rate * seconds) * 1000 if spent else None)

        return interleave(arms, rounds, 7, one)


def report(done: Rounds) -> str:
    """The table of arms, then every target with its ratio and the A/A spread."""
    lines = ["| arm | requests/s, median (min to max) | CPU-seconds per 1,000 requests |", "|---|---|---|"]
    for name in done.readings:
        values = done.values(name)
        median = statistics.median(values)
        lines.append(
            f"| {name} | {median:,.0f} ({min(values):,.0f} to {max(values):,.0f}) | {done.cpu(name)} |"
        )
    lines += ["", "| ratio within a round | median (min to max) | target |", "|---|---|---|"]
    for mine, other, target in TARGETS:
        lines.append(f"| {mine} / {other} | {spread(done.ratios(mine, other))} | {target:g} |")
    for name in ("nginx", "capture 10 %"):
        lines.append(f"| A/A: {name} / itself | {spread(done.ratios(name + AGAIN, name))} | - |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    asked = parser.parse_args()
    if lacking := missing("wrk", "nginx", "taskset"):
        sys.exit(f"skipped, this machine lacks {', '.join(lacking)} (Debian: wrk nginx-light util-linux)")
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        print(report(measure(Path(folder), rounds=asked.rounds, seconds=asked.seconds)))


if __name__ == "__main__":
    main()
