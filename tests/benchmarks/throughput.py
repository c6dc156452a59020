"""Requests/s through one core: Tiergate capturing nothing, a tenth, everything; nginx; FastAPI; LiteLLM.

`python -m tests.benchmarks.throughput [--rounds N] [--seconds N] [--no-litellm]`. Needs `wrk` and `nginx`: a
Python client could not load one core of either. LiteLLM's proxy is installed from the package index
into an environment that is thrown away afterwards (a few minutes).
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.arms import arena
from tests.benchmarks.carry_out import carry_out
from tests.benchmarks.exposed import drained, series
from tests.benchmarks.figures import Figure, table
from tests.benchmarks.litellm_arm import CannotRun, litellm
from tests.benchmarks.rig import (
    Arm,
    Reading,
    Rounds,
    cpu_seconds,
    interleave,
    restlessness,
    spread,
    wrk,
)

LITELLM = "LiteLLM"
TARGETS = (
    ("capture 100 %", "nginx mirror 100 %", 1.2),
    ("capture 10 %", "nginx mirror 10 %", 0.8),
    ("capture 0 %", "nginx", 0.8),
    ("capture 10 %", "FastAPI + httpx", 50.0),
    ("capture 10 %", LITELLM, 100.0),
)
AGAIN = " (again)"
TWICE = ("direct", "nginx", "nginx mirror 100 %", "capture 10 %", "FastAPI + httpx", LITELLM)
"""Arms of every kind, for the A/A spread."""
WIDEST = 0.10
"""How far an arm's ratio to itself may stray from 1 on a quiet machine."""


def visit(arm: Arm, seconds: int) -> Reading:
    """Load an arm; then wait until it has shipped what it captured, which would slow the next arm down."""
    wrk(arm.port, seconds=1)
    before = cpu_seconds(arm.pid) if arm.pid else 0.0
    rate = wrk(arm.port, seconds=seconds)
    used = (cpu_seconds(arm.pid) - before) / seconds if arm.pid else 0.0
    backlog = drained(arm.admin) if arm.admin else 0.0
    # What is sealed and shipped afterwards is part of the price.
    spent = cpu_seconds(arm.pid) - before if arm.pid else None
    return Reading(
        value=rate,
        cpu_per_1000=spent / (rate * seconds) * 1000 if spent else None,
        more={"used": used, "backlog": backlog},
    )


def measure(folder: Path, asked: argparse.Namespace) -> tuple[Rounds, dict[str, float]]:
    """All arms, interleaved; some run twice a round for the A/A spread. And the share of captures dropped."""
    with arena(folder) as ground:
        arms = [
            Arm(name="direct", port=ground.serving),
            *ground.nginx(),
            ground.tiergate("capture 0 %", "0%"),
            ground.tiergate("capture 10 %", "10%"),
            ground.tiergate("capture 100 %", "100%"),
            ground.reference(),
        ]
        if asked.litellm:
            try:
                arms.append(ground.stack.enter_context(litellm(folder, ground.serving, name=LITELLM)))
            except CannotRun as error:
                print(f"LiteLLM skipped: {error}", flush=True)
        arms += [
            Arm(name=arm.name + AGAIN, port=arm.port, pid=arm.pid, admin=arm.admin)
            for arm in arms
            if arm.name in TWICE
        ]

        def one(arm: Arm) -> Reading:
            reading = visit(arm, asked.seconds)
            ground.forget()
            return reading

        done = interleave(arms, asked.rounds, 7, one)
        dropped = {}
        for arm in arms:
            if arm.admin:
                told = series(arm.admin)
                if told["ledger sampled"]:
                    dropped[arm.name] = told["ledger dropped"] / told["ledger sampled"]
        return done, dropped


def by_processor_time(done: Rounds, mine: str, other: str) -> str:
    """The same ratio if each had its core to itself: what others take of a core does not count here."""
    pairs = zip(done.readings[mine], done.readings[other], strict=True)
    ratios = [
        theirs.cpu_per_1000 / ours.cpu_per_1000
        for ours, theirs in pairs
        if ours.cpu_per_1000 and theirs.cpu_per_1000
    ]
    return f"{statistics.median(ratios):.2f}" if ratios else "-"


def figures_of(done: Rounds) -> list[Figure]:
    """Every target that was measured, with the spread of its ratio over rounds, then the A/A ratios."""
    listed = []
    for mine, other, target in TARGETS:
        if other in done.readings:
            ratios = done.ratios(mine, other)
            listed.append(
                Figure(
                    what=f"{mine} / {other}",
                    found=f"{spread(ratios)}; by processor time {by_processor_time(done, mine, other)}",
                    figure=f">= {target:g}",
                    met=statistics.median(ratios) >= target,
                )
            )
    for name in TWICE:
        if name not in done.readings:
            continue
        again = done.ratios(name + AGAIN, name)
        strays = max(abs(ratio - 1) for ratio in again)
        listed.append(
            Figure(
                what=f"A/A: {name} / itself",
                found=f"{spread(again)}; by processor time {by_processor_time(done, name + AGAIN, name)}"
                + (" - too restless to trust" if strays > WIDEST else ""),
                figure=f"within {WIDEST:.0%}",
                met=None,
            )
        )
    return listed


def report(
    done: Rounds, dropped: dict[str, float], figures: Sequence[Figure], asked: argparse.Namespace
) -> str:
    """The table of arms, then every target with its ratio and the A/A spread."""
    lines = [
        f"{asked.rounds} rounds of {asked.seconds} s, 16 connections. {restlessness(done)}.",
        "",
        "| arm | requests/s, median (min to max) | CPU-seconds per 1,000 requests | of its core "
        "| shipping goes on for, s | captures dropped |",
        "|---|---|---|---|---|---|",
    ]
    for name in done.readings:
        values = done.values(name)
        cells = [
            f"{statistics.median(values):,.0f} ({min(values):,.0f} to {max(values):,.0f})",
            done.cpu(name),
            *(
                f"{statistics.median(done.more(name, what)):{form}}"
                for what, form in (("used", ".0%"), ("backlog", ".1f"))
            ),
            f"{dropped[name]:.1%}" if name in dropped else "-",
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", "Ratios within a round, median (min to max):", "", table(figures)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument(
        "--litellm",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="install LiteLLM's proxy into an environment that is thrown away, and measure it as well",
    )
    carry_out(
        parser,
        needs=("wrk", "nginx", "taskset"),
        measure=measure,
        figures_of=lambda measured: figures_of(measured[0]),
        report=lambda measured, figures, asked: report(*measured, figures, asked),
    )


if __name__ == "__main__":
    main()
