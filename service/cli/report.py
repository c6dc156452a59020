"""`tiergate report`: what a shadow job found, as a page, as Markdown or as JSON."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.asking import asks
from service.cli.writing import write

if TYPE_CHECKING:
    from service.client.connection import TiergateClient


class Form(StrEnum):
    """What it can be written as."""

    HTML = "html"
    MD = "md"
    JSON = "json"


class Language(StrEnum):
    """What it can be written in."""

    EN = "en"
    ZH = "zh"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(report)


@asks
def report(
    client: TiergateClient,
    run: Annotated[
        str,
        typer.Argument(metavar="RUN", help="A shadow job's name, or how it begins; or a model: its latest."),
    ],
    form: Annotated[
        Form | None,
        typer.Option("--format", help="html, md or json; by the ending of FILE, else md, when left out."),
    ] = None,
    language: Annotated[
        Language | None, typer.Option("--lang", help="en or zh; as LC_ALL or LANG say when left out.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file instead.")
    ] = None,
) -> None:
    """Show or save the report of a shadow job: the verdicts, latencies, costs, the ledger, what changed.

    The page is one file that needs nothing else: open it, mail it, print it. Markdown fits a pull request;
    JSON has every number.

    \b
    The latest of a model, as a page:
      tiergate report qwen3-32b -o report.html
    In Chinese:
      tiergate report qwen3-32b --lang zh -o report.html
    For a pipeline:
      tiergate report 20260105-030000-5f0c3f --format json | jq -r .conclusion.en
    """
    chosen = form or _by_ending(output) or Form.MD
    text = client.report(_path(client, run), form=chosen.value, language=(language or _spoken()).value)
    if output is None:
        # A page may have characters that a terminal's encoding lacks.
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()
        return
    write(output, text)
    typer.echo(f"wrote {output}", err=True)


def _by_ending(output: Path | None) -> Form | None:
    ending = "" if output is None else output.suffix.lower().removeprefix(".")
    return {"html": Form.HTML, "htm": Form.HTML, "md": Form.MD, "markdown": Form.MD, "json": Form.JSON}.get(
        ending
    )


def _spoken() -> Language:
    """As the environment says: Chinese for `zh_CN.UTF-8` and its like."""
    told = next((os.environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if os.environ.get(name)), "")
    return Language.ZH if told.lower().startswith("zh") else Language.EN


def _path(client: TiergateClient, run: str) -> str:
    """A model's latest where a model is called so, else a job's own."""
    models = {each["model"] for each in client.models()["models"]}
    return client.latest_report_of(run) if run in models else client.report_of(run)
