"""`tiergate capacity diagnose`: which stage hurts, why, and what would confirm it.

Of a report in a file, of the last load run that is stored of a tier, or of a tier's engines while they serve.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from service.cli.capacity_batch import JobOption, TierOption
from service.cli.capacity_reports import (
    Json,
    blocks_of,
    engine_in_slo,
    limit,
    quantile,
    report_of,
    tiers_of,
    wrong,
)
from service.cli.configuration import ConfigOption, JsonOption

if TYPE_CHECKING:
    from service.capacity.patterns import Traffic
    from service.capacity.symptoms import Signals
    from service.report.document import Report, TierReport


def register(group: typer.Typer) -> None:
    """Add the command to its group."""
    group.command(epilog="Docs: docs/capacity.md")(diagnose)


def diagnose(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="REPORT|MODEL", help="A file from `tiergate report RUN --format json`, or a model and:"
        ),
    ],
    name: Annotated[
        str | None, typer.Argument(metavar="TIER", help="Of that model: its last load run, or --live.")
    ] = None,
    live: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Watch the tier's engines for so long instead, such as 60s."),
    ] = None,
    job: JobOption = None,
    tier: TierOption = None,
    rate: Annotated[
        float | None, typer.Option(min=0, help="Requests a second that clients send to such a tier.")
    ] = None,
    prefixes: Annotated[int | None, typer.Option(min=0, help="Distinct ones in that traffic.")] = None,
    max_sequences: Annotated[int | None, typer.Option(min=1, help="max-num-seqs as it is set.")] = None,
    most_running: Annotated[
        float | None, typer.Option(min=0, help="Clients' requests at once, at most.")
    ] = None,
    bits: Annotated[int | None, typer.Option(min=1, help="The fewest of weights and KV cache.")] = None,
    sensitive_share: Annotated[
        float | None, typer.Option(min=0, max=1, help="Of requests whose answers must be exact, 0 to 1.")
    ] = None,
    weights_share: Annotated[
        float | None, typer.Option(min=0, max=1, help="Of the memory, that weights take.")
    ] = None,
    waste_share: Annotated[
        float | None, typer.Option(min=0, max=1, help="Of the KV cache: reserved, and empty.")
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell which stage hurts and why, what may help, and the experiment that would confirm it.

    Stages are TTFT, TPOT, memory and cost. Each remedy comes with its evidence; a slow first token never
    yields advice about the batch of decode. What is not told is named, and never taken for well. Engine
    metrics count with --job alone, since the sweep overloads a tier on purpose and only blocks tell when.
    Three patterns that cost more when switched on are looked for too.

    With MODEL and TIER the last load run is read from the database, and what is known of the traffic with it;
    with --live the engines' own metrics are watched while they serve, and nothing is sent to them but that
    question. What you tell by an option counts instead of what is stored.

    Exit status: 0 nothing hurts or is found, 1 something does, 2 wrong command line or file, 3 no load run is
    stored, or no engine tells anything.

    \b
    From the files of a run (see `tiergate capacity batch --help`):
      tiergate capacity diagnose report.json --job job.json --tier w4a16
    With what only you know of the traffic:
      tiergate capacity diagnose report.json --rate 0.3 --prefixes 4000 --max-sequences 256 --most-running 6
    From the last load run that is stored, and from the engines as they serve now:
      tiergate capacity diagnose qwen3-32b w4a16
      tiergate capacity diagnose qwen3-32b w4a16 --live 60s
    """
    from service.capacity.patterns import Traffic
    from service.cli.capacity_live import stored, watched

    known = {
        "requests_per_second": rate,
        "prefixes": prefixes,
        "sequences_limit": max_sequences,
        "most_running": most_running,
        "bits": bits,
        "sensitive_share": sensitive_share,
    }
    shares = {"weights_share": weights_share, "waste_share": waste_share}
    try:
        if name is not None:
            if job is not None or tier:
                raise typer.BadParameter("--job and --tier go with a REPORT; MODEL and TIER stand for both")
            found = stored(config, subject, name) if live is None else watched(config, subject, name, live)
            signals = replace(found.signals, **_told(shares))
            if rate is not None and found.best_rate:
                signals = replace(signals, utilisation=rate / found.best_rate)
            traffic = replace(found.traffic, **_told(known))
            documents = [_document(name, signals, traffic, source=found.source)]
        elif live is not None:
            raise typer.BadParameter("--live needs a MODEL and a TIER")
        else:
            told = report_of(Path(subject), "diagnose")
            blocks = blocks_of(job, told, "diagnose")
            documents = []
            for each in tiers_of(told, tier or (), "diagnose"):
                signals = _signals(told, each, blocks, rate, weights_share, waste_share)
                traffic = Traffic(prefix_rate=signals.prefix_rate, accepted=_accepted(each), **known)  # type: ignore[arg-type]
                documents.append(_document(each.name, signals, traffic))
    except ValueError as error:
        raise wrong("diagnose", str(error)) from None
    if as_json:
        typer.echo(json.dumps({"tiers": documents}, indent=2, allow_nan=False))
    else:
        for one in documents:
            _print(one)
    if any(one["causes"] or any(each["state"] == "found" for each in one["patterns"]) for one in documents):
        raise typer.Exit(1)


def _told(options: dict[str, Any]) -> dict[str, Any]:
    return {name: told for name, told in options.items() if told is not None}


def _accepted(tier: TierReport) -> bool | None:
    from service.decision.verdict import Decision

    decision = None if tier.verdict is None else tier.verdict.decision
    return {Decision.ACCEPT: True, Decision.REJECT: False}.get(decision) if decision else None


def _document(name: str, signals: Signals, traffic: Traffic, *, source: str = "") -> dict[str, Any]:
    from service.capacity.diagnosis import diagnose as through
    from service.capacity.patterns import sightings
    from service.capacity.symptoms import not_judged

    return {
        "tier": name,
        "source": source,
        "causes": [asdict(cause) for cause in through(signals)],
        "not_judged": list(not_judged(signals)),
        "patterns": [asdict(sighting) for sighting in sightings(traffic)],
    }


def _signals(
    report: Report,
    tier: TierReport,
    blocks: Sequence[Json],
    rate: float | None,
    weights_share: float | None,
    waste_share: float | None,
) -> Signals:
    from service.capacity.symptoms import Signals
    from service.report.measured import Metric

    engine = engine_in_slo(report, tier, blocks)
    alone = [
        each.tpot_p95_seconds
        for each in (() if tier.concurrency is None else tier.concurrency.points)
        if each.concurrency == 1 and not each.invalid and each.tpot_p95_seconds is not None
    ]
    load, sweep = tier.load, tier.sweep
    usage = [number for numbers in engine.get("kv_usage", ()) for number in numbers]
    preempted = engine.get("preemptions")
    return Signals(
        ttft_p95=quantile(tier, Metric.TTFT, "0.95"),
        ttft_limit=limit(tier, Metric.TTFT),
        tpot_p95=quantile(tier, Metric.TPOT, "0.95"),
        tpot_limit=limit(tier, Metric.TPOT),
        tpot_alone=max(alone, default=None),
        waiting=_mean(engine.get("waiting", ())),
        running=_mean(engine.get("running", ())),
        prefix_rate=_mean(engine.get("prefix_hit_rate", ())),
        kv_usage=min(1.0, max(usage)) if usage else None,
        # Counted since the run began: a block has what it added.
        preemptions=math.fsum(max(0.0, each[-1] - each[0]) for each in preempted) if preempted else None,
        weights_share=weights_share,
        waste_share=waste_share,
        utilisation=rate / sweep.best_rate if rate is not None and sweep and sweep.best_rate else None,
        failed_share=min(1.0, sum(load.failed.values()) / load.offered) if load and load.offered else None,
    )


def _mean(told: Sequence[Sequence[float]]) -> float | None:
    numbers = [number for block in told for number in block]
    return math.fsum(numbers) / len(numbers) if numbers else None


def _print(found: dict[str, Any]) -> None:
    console = Console(file=sys.stdout, highlight=False, soft_wrap=True)
    console.print(Text(found["tier"], style="bold"))
    if found["source"]:
        console.print(Text(f"  {found['source']}"))
    if not found["causes"]:
        console.print(Text("  nothing that is told hurts"))
    hurting = ""
    for cause in found["causes"]:
        if cause["hurts"] != hurting:
            hurting = cause["hurts"]
            console.print(Text(f"  {cause['stage']} hurts: {hurting}"))
        console.print(Text(f"    {cause['cause']}: {cause['evidence']}"))
        if cause["remedies"]:
            console.print(Text(f"      may help: {'; '.join(cause['remedies'])}"))
        console.print(Text(f"      confirm:  {cause['experiment']}"))
    if found["not_judged"]:
        console.print(Text(f"  not judged, since nothing is told: {', '.join(found['not_judged'])}"))
    for each in found["patterns"]:
        if each["state"] != "absent":
            state = "found" if each["state"] == "found" else "not told"
            console.print(Text(f"  pattern {each['pattern']}: {state}: {each['reason']}"))
