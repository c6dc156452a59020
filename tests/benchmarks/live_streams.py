"""1,000 streams at once through one core: every byte compared, every event timed.

`python -m tests.benchmarks.live_streams [--rounds 3] [--seconds 10] [--streams 1000]`. Design section 12
allows 5 ms more between two events at the 99th percentile than without a proxy, in the same round.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.arms import arena
from tests.benchmarks.carry_out import carry_out
from tests.benchmarks.figures import Figure, table
from tests.benchmarks.generating import generating
from tests.benchmarks.litellm_arm import CannotRun, litellm
from tests.benchmarks.memory import resident_mib
from tests.benchmarks.rig import (
    Arm,
    Reading,
    Rounds,
    interleave,
    restlessness,
    spread,
)
from tests.benchmarks.stream_load import events_needed

PER_SECOND = 20
"""Events of a stream."""
FEWER = 100
"""Streams that the reference is given: it could not carry more."""
FEWEST = 10
"""Streams that LiteLLM's proxy is given."""
DIRECT, AGAIN, REFERENCE = "direct", " (again)", f"FastAPI + httpx, {FEWER} streams"
LITELLM = f"LiteLLM, {FEWEST} streams"
NGINX = "nginx"
TWICE = (DIRECT, NGINX, "capture 10 %", REFERENCE, LITELLM)
"""Arms of every kind, for the A/A spread."""
MOST_ADDED = 5.0
"""Milliseconds."""
MOST_MIB = 0.25
"""Of memory, a stream."""
KEPT_UP = 0.98
"""Share of the events that must come within the window."""
BUSY = 0.9
"""Share of its core at which the client is the limit."""


def measure(folder: Path, asked: argparse.Namespace) -> Rounds:
    events = events_needed(asked.seconds, PER_SECOND)
    with arena(folder, engine=("--events", str(events), "--pace", str(1 / PER_SECOND))) as ground:
        reference = ground.reference()
        arms = [
            Arm(name=DIRECT, port=ground.serving),
            *ground.nginx(),
            ground.tiergate("capture 0 %", "0%"),
            ground.tiergate("capture 10 %", "10%"),
            ground.tiergate("capture 100 %", "100%"),
            Arm(name=REFERENCE, port=reference.port, pid=reference.pid),
        ]
        if asked.litellm:
            try:
                arms.append(ground.stack.enter_context(litellm(folder, ground.serving, name=LITELLM)))
            except CannotRun as error:
                print(f"LiteLLM skipped: {error}", flush=True)
        at_rest = {arm.pid: resident_mib(arm.pid) for arm in arms if arm.pid}
        arms += [Arm(name=arm.name + AGAIN, port=arm.port, pid=arm.pid) for arm in arms if arm.name in TWICE]

        def one(arm: Arm) -> Reading:
            kind = arm.name.removesuffix(AGAIN)
            count = min({REFERENCE: FEWER, LITELLM: FEWEST}.get(kind, asked.streams), asked.streams)
            options = {
                "streams": count,
                "events": events,
                "watch": arm.pid or 0,
                "loose": int(kind == LITELLM),
            }
            with generating("stream_load", arm.port, seconds=asked.seconds, **options) as word:
                told = word()
            ground.forget()
            endings = told.pop("endings")
            expected = count * PER_SECOND * told["seconds"]
            trouble = {how: times for how, times in endings.items() if how != "whole"}
            if trouble:
                print(f"{arm.name}: {trouble}", file=sys.stderr)
            return Reading(
                value=told["gap_p99"],
                more={
                    **told,
                    "kept_up": told["events"] / expected,
                    "spoilt": sum(trouble.values()),
                    "cpu_per_100k": told["arm_cpu_seconds"] / max(1, told["events"]) * 1e5,
                    "mib_per_stream": (told["arm_mib"] - at_rest.get(arm.pid, 0.0)) / count,
                },
            )

        return interleave(arms, asked.rounds, asked.seed, one)


def added(done: Rounds, name: str, what: str = "gap_p99") -> list[float]:
    """Milliseconds more than direct, by round."""
    pairs = zip(done.more(name, what), done.more(DIRECT, what), strict=True)
    return [mine - without for mine, without in pairs]


def figures_of(done: Rounds) -> list[Figure]:
    listed = []
    for name in done.readings:
        spoilt = round(sum(done.more(name, "spoilt")))
        kept_up = min(done.more(name, "kept_up"))
        ours = name.startswith("capture") and AGAIN not in name
        if kept_up < KEPT_UP:
            listed.append(
                Figure(
                    what=f"{name}: events within the window",
                    found=f"{kept_up:.0%}: not kept up",
                    figure=f">= {KEPT_UP:.0%}",
                    met=False if ours else None,
                )
            )
        if spoilt or ours:
            listed.append(
                Figure(
                    what=f"{name}: streams lost, cut off, damaged or out of order",
                    found=str(spoilt),
                    figure="0",
                    met=not spoilt if ours else None,
                )
            )
        if name != DIRECT:
            gaps = added(done, name)
            listed.append(
                Figure(
                    what=f"{'A/A: ' if AGAIN in name else ''}{name}: added p99 between events",
                    found=f"{statistics.median(gaps):+.2f} ms ({min(gaps):+.2f} to {max(gaps):+.2f}); "
                    f"/ direct {spread(done.ratios_of(name, DIRECT, 'gap_p99'))}",
                    figure=f"<= {MOST_ADDED:g} ms" if ours else "-",
                    met=statistics.median(gaps) <= MOST_ADDED if ours else None,
                )
            )
        if AGAIN in name and max(done.more(name, "arm_mib")):
            again = done.ratios_of(name, name.removesuffix(AGAIN), "cpu_per_100k")
            listed.append(
                Figure(
                    what=f"A/A: {name}: CPU-s per 100k events / itself",
                    found=spread(again),
                    figure="-",
                    met=None,
                )
            )
        if ours:
            most = max(done.more(name, "mib_per_stream"))
            listed.append(Figure.at_most(f"{name}: memory of a stream", most, MOST_MIB, "MiB", digits=3))
    busiest = max(max(done.more(name, "client_cpu")) for name in done.readings)
    listed.append(
        Figure(
            what="the client's core, busiest",
            found=f"{busiest:.0%} of a core" + (": the client was the limit" if busiest > BUSY else ""),
            figure=f"<= {BUSY:.0%}, or nothing here means much",
            met=busiest <= BUSY,
        )
    )
    return listed


def report(done: Rounds, figures: Sequence[Figure], asked: argparse.Namespace) -> str:
    lines = [
        f"{asked.streams} streams of {PER_SECOND} events/s, {asked.rounds} rounds of {asked.seconds:g} s; "
        f"medians over rounds, ms. {restlessness(done)}.",
        "",
        "| arm | events/s | between events p50 | p99 | longer than sent p99 | under way p50 | p99 "
        "| CPU-s per 100k events | / nginx | RSS, MiB | MiB per stream |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in done.readings:
        middle = {what: statistics.median(done.more(name, what)) for what in done.readings[name][0].more}
        cells = [f"{middle['events'] / middle['seconds']:,.0f}"]
        compared = ("stretch_p99", "transit_p50", "transit_p99")
        loose = name.startswith(LITELLM)
        cells += [
            "-" if loose and what in compared else f"{middle[what]:.2f}"
            for what in ("gap_p50", "gap_p99", *compared)
        ]
        if middle["arm_mib"] > 0:
            cells += [
                f"{middle['cpu_per_100k']:.2f}",
                spread(done.ratios_of(name, NGINX, "cpu_per_100k")),
                f"{middle['arm_mib']:.1f}",
                f"{middle['mib_per_stream']:.3f}",
            ]
        else:
            cells += ["-"] * 4
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", table(figures)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0, help="of the window, each arm")
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument(
        "--litellm",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="install LiteLLM's proxy into an environment that is thrown away, and measure it as well",
    )
    carry_out(parser, needs=("nginx", "taskset"), measure=measure, figures_of=figures_of, report=report)


if __name__ == "__main__":
    main()
