"""What a person sees while the demo runs, and at its end."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from service.client.readings import VerdictReading
from service.client.tables import DECISION_STYLE, plain, verdict_view
from service.decision.planning import zero_discordance_pairs
from service.decision.policy import Criterion, Policy
from service.decision.thresholds import thresholds
from service.decision.verdict import Decision
from service.demo.plan import CLIENT_MODEL, FULL, DemoPlan
from service.demo.walk import Position, Walked
from service.launch import Running

TELL_EVERY = 20.0
"""Seconds between two lines where no terminal can redraw them."""


class Show(Protocol):
    """Is told how far the walk has come."""

    def __call__(self, position: Position) -> None: ...


@contextmanager
def progress(console: Console, plan: DemoPlan) -> Iterator[Show]:
    """Redrawn in place on a terminal, otherwise a line now and then."""
    if not console.is_terminal:
        yield _lines(console, plan)
        return
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        yield lambda position: live.update(_drawn(position, plan))


def _lines(console: Console, plan: DemoPlan) -> Show:
    told, ending = -TELL_EVERY, ""

    def show(position: Position) -> None:
        nonlocal told, ending
        if position.seconds - told < TELL_EVERY and position.ending == ending:
            return
        told, ending = position.seconds, position.ending
        lines = [
            f"{position.seconds:5.0f} s  {position.answered} of at most {plan.load.total} requests answered, "
            f"{position.judged} judged{'; ' * bool(position.ending)}{position.ending}",
            *(
                f"         {reading.verdict.tier:6} {reading.verdict.decision:9} {_counted(reading)}"
                for reading in position.verdicts
            ),
        ]
        console.print("\n".join(lines), highlight=False, markup=False, soft_wrap=True)

    return show


def _drawn(position: Position, plan: DemoPlan) -> RenderableType:
    bars = Table.grid(padding=(0, 1))
    for name, done in (
        ("answered by the proxy", position.answered),
        ("replayed and judged", position.judged),
    ):
        bars.add_row(name, ProgressBar(total=plan.load.total, completed=done, width=40), str(done))
    tiers = Table.grid(padding=(0, 1))
    for reading in position.verdicts:
        verdict = reading.verdict
        tiers.add_row(
            plain(verdict.tier, "bold"),
            Text(verdict.decision.value, style=DECISION_STYLE[verdict.decision]),
            plain(_counted(reading)),
        )
    footing = f"{position.seconds:.0f} s of at most {plan.traffic_seconds:.0f} s of traffic"
    if position.ending:
        footing = f"{position.ending}; finishing what is under way"
    return Group(bars, tiers, Text(footing, style="dim"))


def _counted(reading: VerdictReading) -> str:
    return ", ".join(
        f"{finding.criterion} {finding.n} pairs +{finding.harm} -{finding.benefit}"
        for finding in reading.verdict.decisive
    )


def print_verdicts(console: Console, walked: Walked, plan: DemoPlan) -> None:
    """A table per tier, the demo's policy beside production's, and where every request went."""
    for reading in walked.last.verdicts:
        console.print(Rule(style="dim"))
        console.print(verdict_view(reading))
    console.print(Rule(style="dim"))
    console.print(production_note(walked.last.verdicts), highlight=False, markup=False)
    counters = walked.ledger["counters"]
    console.print(
        f"ledger: {counters['seen']} seen, {counters['sampled']} sampled, {counters['processed']} judged, "
        f"{'balanced' if walked.ledger['balanced'] else 'NOT balanced'}; "
        f"traffic ended after {walked.last.seconds:.0f} s because {walked.last.ending}",
        highlight=False,
    )
    if note := slow_note(walked.last, plan):
        console.print(note, highlight=False, markup=False)


def slow_note(last: Position, plan: DemoPlan) -> str:
    """What it means, and what to do, when the time was over before the traffic was; empty when it was not."""
    if last.decided or last.sent >= plan.load.total:
        return ""
    verdicts = (reading.verdict for reading in last.verdicts)
    undecided = ", ".join(each.tier for each in verdicts if each.decision is Decision.UNDECIDED)
    longer = (
        f" `{own_command()} demo`, without --quick, takes {FULL.traffic_seconds / 60:g} minutes."
        if plan.traffic_seconds < FULL.traffic_seconds
        else ""
    )
    return (
        f"This machine was too slow, or busy: {last.sent} of {plan.load.total} requests in "
        f"{plan.traffic_seconds:g} s are too few pairs to decide {undecided}. That is no finding.{longer}"
    )


def production_note(verdicts: Sequence[VerdictReading]) -> str:
    """What the demo's wide margin hides, in numbers of pairs."""
    own = verdicts[0].criteria[0].margin
    here = zero_discordance_pairs(own, verdicts[0].verdict.alpha_accept)
    names = [asked.criterion for asked in verdicts[0].criteria]
    production = Policy(criteria=tuple(Criterion(evaluator=name) for name in names))
    margin = production.criteria[0].margin
    there = zero_discordance_pairs(margin, thresholds(production, tiers=1, attempt=1).alpha_accept)
    return (
        f"Margins: {100 * own:g} percentage points here, so that {here} pairs without a difference accept a "
        f"criterion; {100 * margin:g} in production, which takes {there} of them, more with every "
        "difference, and asks for the gates that are `not asked` here."
    )


def print_addresses(console: Console, running: Running) -> None:
    """Where everything is, and what to try."""
    console.print(
        f"\nStill running; Ctrl-C stops everything.\n"
        f"  proxy      {running.proxy_url}/v1\n"
        f"  API        {running.api_url}/api/v1\n"
        f"  API docs   {running.api_url}/docs\n"
        f"  dashboard  {running.api_url}/\n"
        f"  token      {running.token_file}\n"
        f"Try: {own_command()} ladder {CLIENT_MODEL}"
        f" --url {running.api_url} --token-file {running.token_file}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


def own_command() -> str:
    """What to type for this installation's `tiergate`: `make demo` puts it where no shell looks."""
    installed = Path(sys.executable).with_name("tiergate")
    found = shutil.which("tiergate")
    if not installed.exists() or (found is not None and Path(found).resolve() == installed.resolve()):
        return "tiergate"
    return os.path.relpath(installed) if installed.is_relative_to(Path.cwd()) else str(installed)
