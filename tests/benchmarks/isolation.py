"""Whether clients notice a fault downstream of them: design section 12, every fault in one run.

`python -m tests.benchmarks.isolation [--rounds 10] [--seconds 4] [--hold 120] [--only WORDS]`. In each round
every fault is visited with and without, in random order, under open-loop load, and so is no fault at all
(A/A). Then each fault lasts for `--hold` seconds while the proxy's memory is watched. At the end everything
stops in order and the ledger must add up.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks.faults import FAULTS, SIGNS, Fault, Sign, nothing
from tests.benchmarks.figures import Figure, either_way, end, is_void, middle, table
from tests.benchmarks.memory import Watch
from tests.benchmarks.reconcile import reconciled
from tests.benchmarks.rig import end_on_signals, machine, publish, quantile
from tests.benchmarks.system import THINK, System, standing

AGAIN = "no fault (A/A)"
SETTLE = 1.0
"""Seconds between the onset of a fault and the load: Redis' patience is one."""
CATCH_UP = 30.0
"""Seconds that workers may take to catch up between two visits; one that settles nothing in them is deaf."""
HIGHEST_RATIO, STEEPEST = 1.10, 1.0
SPARE_FILES = 4
"""Redis' client keeps one connection for each call that was ever under way at once."""
LEAST_HOLD = 60.0
"""Seconds; a slope of memory over less is shown and decides nothing."""


@dataclass(slots=True, kw_only=True)
class Visits:
    """What one fault did."""

    with_fault: list[float] = field(default_factory=list)
    """Client p99 in seconds, by round."""
    without: list[float] = field(default_factory=list)
    slope: float | None = None
    """MiB per minute of the proxy's resident memory while the fault lasted."""
    files: tuple[int, int] | None = None
    """Open files before and after."""
    effects: Counter[str] = field(default_factory=Counter)
    """What came of it downstream while it lasted."""

    @property
    def ratios(self) -> list[float]:
        return [ill / well for ill, well in zip(self.with_fault, self.without, strict=True)]


def say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


def visit_rounds(system: System, faults: Mapping[str, Fault], asked: argparse.Namespace) -> dict[str, Visits]:
    """Every fault with and without, interleaved."""
    order = random.Random(asked.seed)
    found: defaultdict[str, Visits] = defaultdict(Visits)
    for number in range(asked.rounds):
        names = list(faults)
        order.shuffle(names)
        for name in names:
            arms = [True, False]
            order.shuffle(arms)
            for is_ill in arms:
                visits, before = found[name], system.effects()
                with (faults[name] if is_ill else nothing)(system):
                    time.sleep(SETTLE)
                    end_of_watch = watched(system, SIGNS.get(name) if is_ill else None)
                    seconds = system.load(
                        rate=asked.rate, seconds=asked.seconds, seed=order.randrange(1, 10**6)
                    )
                    seen = end_of_watch()
                if not system.catch_up(CATCH_UP):
                    say(f"{name}: {system.waiting()} captures wait for a worker that is slow")
                if is_ill:
                    visits.effects += system.effects() - before + seen
                (visits.with_fault if is_ill else visits.without).append(quantile(seconds, 0.99))
        say(f"round {number + 1} of {asked.rounds}")
    return dict(found)


def watched(system: System, sign: Sign | None) -> Callable[[], Counter[str]]:
    """Looks for a fault's sign from now on; call it at the end for what was seen."""
    if sign is None or sign.begin is None:
        return Counter
    effect, count = sign.effect, sign.begin(system)
    return lambda: Counter({effect: count()})


def hold(system: System, name: str, fault: Fault, visits: Visits, asked: argparse.Namespace) -> None:
    """Let a fault last, and watch the proxy's memory and open files."""
    before, effects = system.open_files(), system.effects()
    with Watch(system.proxy.pid) as watch, fault(system):
        end_of_watch = watched(system, SIGNS.get(name))
        system.load(rate=asked.rate, seconds=asked.hold, seed=asked.seed)
        seen = end_of_watch()
    system.catch_up(2 * CATCH_UP)
    visits.slope = watch.slope(after=asked.hold / 4)
    visits.files = (before, system.open_files())
    visits.effects += system.effects() - effects + seen
    say(f"{name} for {asked.hold:g} s: {visits.slope:+.2f} MiB/min")


def judge(name: str, ratios: Sequence[float], again: Sequence[float]) -> Figure:
    """A fault's ratios against the figure. Faster than A/A is no harm: the machine may be quieter with it."""
    median = statistics.median(ratios)
    most = min(HIGHEST_RATIO, middle(again)[1])
    return Figure(
        what=f"{name}: client p99, with / without",
        found=f"{median:.3f} ({min(ratios):.2f} to {max(ratios):.2f})",
        figure=f"median <= {HIGHEST_RATIO:g} and in the A/A range (<= {most:.3f})",
        met=median <= most,
    )


def took_effect(name: str, effects: Mapping[str, int]) -> Figure:
    """A fault that did not happen harms nobody, and shows nothing."""
    effect = SIGNS[name].effect
    times = effects.get(effect, 0)
    return Figure(what=f"{name}: took effect", found=f"{times} {effect}", figure="> 0", met=times > 0)


def figures_of(found: Mapping[str, Visits], asked: argparse.Namespace) -> list[Figure]:
    again = either_way(found[AGAIN].ratios)
    listed = [judge(name, visits.ratios, again) for name, visits in found.items() if name != AGAIN]
    listed += [took_effect(name, visits.effects) for name, visits in found.items() if name != AGAIN]
    for name, visits in found.items():
        if visits.slope is not None:
            figure = Figure.at_most(f"{name}: proxy's RSS, slope", visits.slope, STEEPEST, "MiB/min")
            listed.append(
                figure
                if asked.hold >= LEAST_HOLD
                else Figure(what=figure.what, found=figure.found, figure="- (held too briefly)", met=None)
            )
        if visits.files is not None:
            before, after = visits.files
            listed.append(
                Figure(
                    what=f"{name}: open files before, after",
                    found=f"{before}, {after}",
                    figure=f"<= {before} + {SPARE_FILES}",
                    met=after <= before + SPARE_FILES,
                )
            )
    return listed


def report(found: Mapping[str, Visits], figures: Sequence[Figure], asked: argparse.Namespace) -> str:
    again = either_way(found[AGAIN].ratios)
    low, high = middle(again)
    lines = [
        f"{asked.rounds} rounds of {asked.seconds:g} s at {asked.rate:g} requests/s, half of them streamed; "
        f"an answer takes {THINK * 1e3:g} ms.",
        "",
        f"A/A: client p99 / itself, 95 % range {low:.3f} to {high:.3f} ({len(again)} ratios, either way)"
        + (": VOID, the machine is too restless" if is_void(again) else ""),
        "",
        "| fault | p99 with, ms | p99 without, ms | while it lasted |",
        "|---|---|---|---|",
    ]
    for name, visits in found.items():
        ill, well = (statistics.median(each) * 1e3 for each in (visits.with_fault, visits.without))
        came = ", ".join(f"{times} {what}" for what, times in sorted(visits.effects.items()))
        lines.append(f"| {name} | {ill:.2f} | {well:.2f} | {came or '-'} |")
    return "\n".join([*lines, "", table(figures)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=4.0, help="of load, each visit")
    parser.add_argument(
        "--hold", type=float, default=120.0, help="seconds each fault lasts; 0 for not at all"
    )
    parser.add_argument("--rate", type=float, default=300.0, help="requests/s")
    parser.add_argument("--only", default="", help="faults whose name has these words")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--output", type=Path, help="write the report there as well")
    asked = parser.parse_args()
    faults = {name: fault for name, fault in FAULTS.items() if asked.only in name}
    if not faults:
        sys.exit(f"no fault has {asked.only!r} in its name; there are {', '.join(FAULTS)}")
    faults[AGAIN] = nothing
    end_on_signals()
    minutes = len(faults) * (asked.rounds * 2 * (asked.seconds + 2.5) + asked.hold) / 60 + 3
    say(f"{len(faults) - 1} faults, about {minutes:.0f} minutes")
    described = machine()
    with tempfile.TemporaryDirectory() as folder, standing(Path(folder)) as system:
        system.load(rate=asked.rate, seconds=max(3.0, asked.seconds), seed=asked.seed)  # warm-up
        found = visit_rounds(system, faults, asked)
        for name, fault in faults.items() if asked.hold else ():
            hold(system, name, fault, found[name], asked)
        figures = figures_of(found, asked)
        say("stopping in order; what lost its message is swept within three minutes")
        figures += reconciled(system)
    publish(f"{described}\n\n{report(found, figures, asked)}", asked.output)
    end(figures, void=is_void(either_way(found[AGAIN].ratios)))


if __name__ == "__main__":
    main()
