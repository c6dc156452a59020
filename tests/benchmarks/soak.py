"""Every fault in turn under clients of every kind: no memory, no socket and no request goes astray.

`python -m tests.benchmarks.soak [--minutes 10] [--warm-up 60]`. Afterwards everything stops in order and the
ledger must add up; then the proxy starts once more and what serves is killed with -9.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.benchmarks.faults import FAULTS
from tests.benchmarks.figures import Figure, end, table
from tests.benchmarks.generating import generating
from tests.benchmarks.isolation import LEAST_HOLD, SPARE_FILES, STEEPEST, say
from tests.benchmarks.memory import Watch, resident_mib
from tests.benchmarks.reconcile import killed, reconciled
from tests.benchmarks.rig import end_on_signals, machine, publish
from tests.benchmarks.system import EVENTS, System, standing

ILL = 2 / 3
"""Share of its turn during which a fault lasts; then everything may recover."""


def soak(system: System, asked: argparse.Namespace) -> tuple[list[Figure], Mapping[str, int]]:
    """Load and faults; what was found, and how many clients of each kind there were."""
    total = asked.minutes * 60
    order = random.Random(asked.seed)
    before = system.open_files()
    mix: dict[str, float] = {"seed": asked.seed, "events": EVENTS, "scale": asked.scale}
    with (
        Watch(system.proxy.pid) as watch,
        generating("mixed_load", system.port, seconds=asked.warm_up + total, **mix) as word,
    ):
        time.sleep(asked.warm_up)
        say(f"warm: {resident_mib(system.proxy.pid):.1f} MiB")
        names = list(FAULTS)
        order.shuffle(names)
        for name in names:
            with FAULTS[name](system):
                time.sleep(total / len(names) * ILL)
            time.sleep(total / len(names) * (1 - ILL))
            system.check_parts()
            say(f"{name}: {resident_mib(system.proxy.pid):.1f} MiB, {system.waiting()} captures wait")
        told = word()
    system.note(told)
    slope = watch.slope(after=asked.warm_up)
    after = system.open_files()
    steep = Figure.at_most("proxy's RSS after warm-up, slope", slope, STEEPEST, "MiB/min")
    if total < LEAST_HOLD:
        steep = Figure(what=steep.what, found=steep.found, figure="- (too brief)", met=None)
    most = max(amount for _, amount in watch.samples)
    return [
        steep,
        Figure(what="proxy's RSS, most", found=f"{most:.1f} MiB", figure="-", met=None),
        Figure(
            what="open files before, after",
            found=f"{before}, {after}",
            figure=f"<= {before} + {SPARE_FILES}",
            met=after <= before + SPARE_FILES,
        ),
    ], told["visits"]


def report(figures: Sequence[Figure], visits: Mapping[str, int], asked: argparse.Namespace) -> str:
    kinds = ", ".join(f"{times} {kind}" for kind, times in visits.items())
    return (
        f"{asked.minutes:g} minutes, {len(FAULTS)} faults in turn; visits of clients: {kinds}\n\n"
        f"{table(figures)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--warm-up", type=float, default=60.0, help="seconds")
    parser.add_argument("--scale", type=float, default=1.0, help="times as many clients as usual")
    parser.add_argument("--sample", default="10%", help="share of requests that is captured")
    parser.add_argument("--seed", type=int, default=12)
    parser.add_argument("--output", type=Path, help="write the report there as well")
    asked = parser.parse_args()
    if asked.minutes <= 0:
        sys.exit("--minutes: expected more than 0")
    end_on_signals()
    say(f"about {asked.minutes + asked.warm_up / 60 + 5:.0f} minutes")
    described = machine()
    with tempfile.TemporaryDirectory() as folder, standing(Path(folder), sample=asked.sample) as system:
        figures, visits = soak(system, asked)
        say("stopping in order; what lost its message is swept within three minutes")
        figures += reconciled(system)
        say("starting once more, for kill -9")
        figures += killed(system, rate=200.0)
    publish(f"{described}\n\n{report(figures, visits, asked)}", asked.output)
    end(figures)


if __name__ == "__main__":
    main()
