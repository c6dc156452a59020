"""`tiergate`: every command. One module a group; each adds its commands in `register`.

`setup` init, check, schema, token · `up` · `demo` · `drill` · `proxy` · `api` · `questions` of the
API · `gate` · `log` show, verify, export · `attest` key, create, verify · `artifact` digest · `adjudicate`
next, export, import, status · `corpus` show, import, export, manifest, forget · `shadow` run, status, cancel
... · `policy` show, check, diff · `offline` stats, plan, `money` · `capacity` kv, prefix, replay, serve,
batch, diagnose, compare, matrix · `score` · `recount` · `report` · `webhooks` list, retry, test.

A module imports what is slow to load (scipy, SQLAlchemy, pydantic) inside the command that
needs it, so that `tiergate --help` and a typing mistake are answered at once.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from service.cli import (
    adjudicate,
    api,
    artifact,
    attest,
    capacity,
    corpus,
    demo,
    differences,
    drill,
    gate,
    interventions,
    log,
    money,
    offline,
    policy,
    prescreen,
    proxy,
    questions,
    recount,
    report,
    score,
    setup,
    shadow,
    up,
    webhooks,
)

app = typer.Typer(
    name="tiergate",
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["--help", "-h"]},
    pretty_exceptions_enable=False,
    help="Decide from real traffic whether a quantized tier may replace the one that serves now.",
)


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"tiergate {version('tiergate')}")
        raise typer.Exit


for group in (
    *(setup, up, demo, drill, proxy, api, questions, gate, shadow, report, corpus),
    *(
        log,
        attest,
        artifact,
        prescreen,
        differences,
        adjudicate,
        interventions,
        policy,
        offline,
        money,
        capacity,
        score,
        recount,
        webhooks,
    ),
):
    group.register(app)


@app.callback()
def options(
    tell_version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_tell_version, help="Show the version and exit."),
    ] = False,
) -> None:
    """What `tiergate` answers without a command."""


def main() -> None:
    """The console script."""
    app()
