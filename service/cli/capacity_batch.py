"""`tiergate capacity batch`: how many at once, and what that costs, from a shadow job's report."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from service.cli.capacity_reports import blocks_of, quantile, report_of, steps_of, tiers_of, wrong
from service.cli.capacity_views import table_of
from service.cli.configuration import JsonOption

if TYPE_CHECKING:
    from service.capacity.batch import Step
    from service.report.document import TierReport
    from service.report.measured import Metric

ReportArgument = Annotated[
    Path, typer.Argument(metavar="REPORT", help="From `tiergate report RUN --format json`.")
]
JobOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="From `tiergate shadow status RUN --json`, of that run.")
]
TierOption = Annotated[list[str] | None, typer.Option(help="Of these alone; may be given again.")]


def register(group: typer.Typer) -> None:
    """Add the command to its group."""
    group.command(epilog="Docs: docs/capacity.md")(batch)


def batch(
    report: ReportArgument,
    job: JobOption = None,
    tier: TierOption = None,
    price: Annotated[
        float | None, typer.Option(help="An hour, of what was loaded; by default the report's.")
    ] = None,
    batch_tokens: Annotated[
        int | None, typer.Option(min=1, help="max-num-batched-tokens of that run, where known.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Tell where to begin with max-num-seqs, and what a million tokens cost by concurrency.

    From the part of a shadow job that searches for the most at once. Nothing is extrapolated: what no block
    shows is `not reached`. One block a step has no limits, so turns of cost are hints: measure around them.
    Tokens that met the SLO come from --job; without it costs are not reached.

    Exit status: 0 told, 2 wrong command line, or no curve by concurrency.

    \b
    Of the latest run of a model:
      tiergate report qwen3-32b --format json -o report.json
      tiergate shadow status "$(jq -r .run.id report.json)" --json > job.json
      tiergate capacity batch report.json --job job.json
    """
    told = report_of(report, "batch")
    if told.slo_tpot_seconds is None:
        raise wrong("batch", f"{report} has no SLO of TPOT: nothing says what ends the curve")
    blocks = blocks_of(job, told, "batch")
    try:
        found = [
            _of(each, steps_of(each, blocks), told.slo_tpot_seconds, price, batch_tokens)
            for each in tiers_of(told, tier or (), "batch")
        ]
    except ValueError as error:
        raise wrong("batch", str(error)) from None
    found = [each for each in found if each["curve"]]
    if not found:
        raise wrong(
            "batch", f"{report} has no curve by concurrency: run a job with the part `concurrency` first"
        )
    if as_json:
        typer.echo(json.dumps({"currency": told.currency, "tiers": found}, indent=2, allow_nan=False))
        return
    for each in found:
        _print(each, told.currency)
    if job is None:
        typer.echo(f"Costs need --job FILE, from: tiergate shadow status {told.run.id} --json")


def _of(
    tier: TierReport, steps: Sequence[Step], tpot: float, price: float | None, batch_tokens: int | None
) -> dict[str, Any]:
    from service.capacity.batch import chunk, costs, merged, offline, start
    from service.report.measured import Metric

    began = start(steps, tpot_seconds=tpot)
    hourly = price if price is not None else None if tier.money is None else tier.money.price_per_hour
    paid = None if hourly is None else costs(steps, price_per_hour=hourly)
    chunks = chunk(
        ttft_p50=_known(tier, Metric.TTFT, "0.5"),
        ttft_p95=_known(tier, Metric.TTFT, "0.95"),
        tpot_p50=_known(tier, Metric.TPOT, "0.5"),
        tpot_p95=_known(tier, Metric.TPOT, "0.95"),
        batch_tokens=batch_tokens,
    )
    unpriced = {"concurrency": None, "reason": "not reached: no price is told; give --price"}
    return {
        "tier": tier.name,
        "curve": [
            {**asdict(step), "million": None if paid is None else paid.curve[number].million}
            for number, step in enumerate(merged(steps))
        ],
        "start": asdict(began),
        "cheapest": unpriced if paid is None else asdict(paid.cheapest),
        "turn": unpriced if paid is None else asdict(paid.turn),
        "offline": asdict(offline(steps, online=began.concurrency)),
        "chunk": asdict(chunks),
    }


def _known(tier: TierReport, metric: Metric, share: str) -> float | None:
    found = quantile(tier, metric, share)
    return None if found == math.inf else found


def _print(found: dict[str, Any], currency: str) -> None:
    console = Console(file=sys.stdout, highlight=False, soft_wrap=True)
    console.print(Text(found["tier"], style="bold"))
    table = table_of("at once", "TPOT P95, ms", "tokens/s", "that count", f"{currency} a million")
    for step in found["curve"]:
        tpot = step["tpot_p95"]
        table.add_row(
            f"{step['concurrency']:,}",
            *map(_number, (None if tpot is None else tpot * 1e3, step["throughput"], step["goodput"])),
            _number(step["million"]),
        )
    console.print(table)
    for name, words in (
        ("start", "max-num-seqs"),
        ("cheapest", "cheapest"),
        ("turn", "cost turns up"),
        ("offline", "offline pool"),
        ("chunk", "chunks"),
    ):
        one = found[name]
        head = one.get("advice", one.get("concurrency"))
        shown = "" if head is None or one["reason"].startswith("not reached") else f"{head}: "
        console.print(Text(f"  {words:<14}{shown}{one['reason']}"))


def _number(told: float | None) -> str:
    return "-" if told is None else f"{told:,.2f}"
