"""`tiergate shadow`: run, status, list, cancel and replay shadow jobs, through the API.

Exit status: 0 done; 1 a job that was watched did not end well; 3 the API refused or cannot be reached. Who
watches waits for an API that is restarted.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from service.cli.asking import (
    JsonOption,
    ModelArgument,
    asks,
    tell,
)
from service.cli.configuration import fail
from service.cli.following import follow
from service.client.jobs import OVER, job_view, jobs_view
from service.client.tables import plain

if TYPE_CHECKING:
    from service.client.connection import TiergateClient
    from service.client.readings import Document

PARTS = ("slo", "sweep", "cost", "concurrency")
ARMS = ("interleaved", "together")

JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="Its name, or how that begins.")]
OwnOption = Annotated[
    bool,
    typer.Option(
        "--i-own-this-capacity",
        help="Load backends that serve clients as well, this once; needs scope admin. The job watches the "
        "clients' SLO and is aborted at its first breach.",
    ),
]
DetachOption = Annotated[
    bool, typer.Option("--detach", "-d", help="Return at once; `tiergate shadow status JOB` tells the rest.")
]

shadow = typer.Typer(
    no_args_is_help=True,
    help="Shadow jobs: baseline and candidates under equal load, and what each costs at its own best rate.",
)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(shadow, name="shadow")


@shadow.command()
@asks
def run(
    client: TiergateClient,
    model: ModelArgument,
    part: Annotated[
        list[str] | None,
        typer.Option(
            "--part", metavar="slo|sweep|cost|concurrency", help="What to measure; may be repeated."
        ),
    ] = None,
    rate: Annotated[str | None, typer.Option("--rate", help="Requests to every tier, such as 4/s.")] = None,
    window: Annotated[str | None, typer.Option("--window", help="Of each tier, such as 10m.")] = None,
    warm_up: Annotated[str | None, typer.Option("--warm-up", help="Before a tier's first block.")] = None,
    settle: Annotated[str | None, typer.Option("--settle", help="Before each further block.")] = None,
    blocks: Annotated[int | None, typer.Option("--blocks", help="Of each tier, at least 8.")] = None,
    arms: Annotated[
        str | None,
        typer.Option(
            "--arms",
            metavar="interleaved|together",
            help="Tiers take turns, or are loaded at once, where each has hardware of its own.",
        ),
    ] = None,
    budget_time: Annotated[str | None, typer.Option("--budget-time", help="Of load, such as 2h.")] = None,
    budget_tokens: Annotated[
        str | None, typer.Option("--budget-tokens", help="Of prompts and answers, such as 5M.")
    ] = None,
    i_own_this_capacity: OwnOption = False,
    detach: DetachOption = False,
    as_json: JsonOption = False,
) -> None:
    """Begin a shadow job and watch it.

    It needs the model's `slo`, prices (`price_per_hour`) for what it costs, requests in its corpus, and for
    every tier backends that serve nobody: `shadow` ones, or those of a tier without clients. A load worker
    must run (`tiergate up` has one). Ctrl-C ends the watching and not the job; `tiergate shadow cancel` does.

    \b
    The configured job, watched to its end:
      tiergate shadow run qwen3-32b
    A short look at latencies alone:
      tiergate shadow run qwen3-32b --part slo --window 2m --warm-up 30s --rate 2/s
    """
    plan = {
        "parts": _parts(part),
        "rate": _read(rate, "rate", "--rate"),
        "window_seconds": _read(window, "seconds", "--window"),
        "warm_up_seconds": _read(warm_up, "seconds", "--warm-up"),
        "settle_seconds": _read(settle, "seconds", "--settle"),
        "blocks": blocks,
        "arms": _arms(arms),
        "budget_seconds": _read(budget_time, "seconds", "--budget-time"),
        "budget_tokens": _read(budget_tokens, "count", "--budget-tokens"),
    }
    asked: dict[str, Any] = {"i_own_this_capacity": i_own_this_capacity}
    if given := {name: value for name, value in plan.items() if value is not None}:
        asked["plan"] = given
    job = client.begin_shadow_job(model, asked)
    follow(client, job, detach=detach, as_json=as_json)


@shadow.command()
@asks
def replay(
    client: TiergateClient,
    manifest: Annotated[
        str,
        typer.Argument(
            metavar="MANIFEST", help="A file with a manifest, - for standard input, or a job's name."
        ),
    ],
    i_own_this_capacity: OwnOption = False,
    detach: DetachOption = False,
    as_json: JsonOption = False,
) -> None:
    """Repeat a shadow job: its plan, rates, seeds; and say what differs from then.

    What is configured and running now is measured, not what was: engines, prices, policy and corpus are as
    they are, and every difference is listed with the job.

    \b
      tiergate shadow manifest 20260105-030000-5f0c3f > monday.json
      tiergate shadow replay monday.json
    """
    document = _manifest(manifest, client)
    model = document.get("model")
    if not isinstance(model, str):
        raise typer.BadParameter(f"{manifest} is no manifest: it names no model")
    asked = {"manifest": document, "i_own_this_capacity": i_own_this_capacity}
    job = client.begin_shadow_job(model, asked)
    if not as_json:
        _say_differences(job)
    follow(client, job, detach=detach, as_json=as_json)


@shadow.command()
@asks
def status(
    client: TiergateClient,
    job: JobArgument,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Stay until it is over.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show how far a shadow job is, what each block showed, and what came of it."""
    found = client.shadow_job(job)
    if watch:
        follow(client, found, detach=False, as_json=as_json)
    else:
        tell(found, lambda: job_view(found), as_json=as_json)


@shadow.command(name="list")
@asks
def list_(
    client: TiergateClient,
    model: Annotated[str | None, typer.Argument(metavar="MODEL", help="All models when left out.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Jobs at most.")] = 20,
    as_json: JsonOption = False,
) -> None:
    """Show shadow jobs, the latest first."""
    document = client.shadow_jobs(model, limit=limit)
    tell(document, lambda: jobs_view(document), as_json=as_json)


@shadow.command()
@asks
def cancel(
    client: TiergateClient,
    job: JobArgument,
    as_json: JsonOption = False,
) -> None:
    """End a shadow job; a block that is being run is broken off within seconds, and shows nothing.

    What it measured before stays, and so do the gates of the parts that were over.
    """
    document = client.cancel_shadow_job(job)
    tell(document, lambda: plain(f"{document['job']}: {_cancelled(document)}"), as_json=as_json)


@shadow.command()
@asks
def manifest(
    client: TiergateClient,
    job: JobArgument,
) -> None:
    """Print a job's manifest: all that is needed to repeat it, for `tiergate shadow replay`."""
    document = client.shadow_manifest(job)
    typer.echo(json.dumps(document["manifest"], indent=2, ensure_ascii=False, allow_nan=False))


def _cancelled(job: Document) -> str:
    if job["state"] in OVER:
        return f"{job['state']}{': ' if job['reason'] else ''}{job['reason']}"
    return "its block is being broken off"


def _say_differences(job: Document) -> None:
    told = Console(stderr=True)
    differences = job["differences"]
    told.print(
        plain(f"{len(differences)} differences from the manifest" if differences else "nothing differs")
    )
    for difference in differences:
        told.print(plain(f"  {difference}"), soft_wrap=True)


def _manifest(named: str, client: TiergateClient) -> dict[str, Any]:
    try:
        if named == "-":
            text = sys.stdin.read()
        elif (path := Path(named)).is_file():
            text = path.read_text(encoding="utf-8")
        else:
            found: dict[str, Any] = client.shadow_manifest(named)["manifest"]
            return found
        document = json.loads(text)
    except (OSError, ValueError) as error:
        raise fail(f"{named} cannot be read as a manifest: {error}", 2) from None
    if isinstance(document, dict) and isinstance(document.get("manifest"), dict):
        document = document["manifest"]  # as the API gives it
    if not isinstance(document, dict):
        raise fail(f"{named} is no manifest: one is a JSON object", 2)
    return document


def _parts(given: list[str] | None) -> list[str] | None:
    if not given:
        return None
    if strangers := [each for each in given if each not in PARTS]:
        raise typer.BadParameter(f"{strangers[0]}: one of {', '.join(PARTS)}", param_hint="--part")
    return [part for part in PARTS if part in given]


def _arms(given: str | None) -> str | None:
    if given not in (None, *ARMS):
        raise typer.BadParameter(f"{given}: one of {', '.join(ARMS)}", param_hint="--arms")
    return given


def _read(written: str | None, form: str, option: str) -> float | int | None:
    """By the reader of that name in `service.settings.units`, as in `tiergate.yaml`."""
    if written is None:
        return None
    from service.settings import units  # pydantic comes with it

    try:
        found: float | int = getattr(units, form)(written)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None
    return found
