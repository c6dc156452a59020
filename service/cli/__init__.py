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
from service.cli.ending import ended
from service.cli.sections import Commands, Sections

app = typer.Typer(
    name="tiergate",
    cls=Sections,
    no_args_is_help=True,
    add_completion=False,
    # Frames and colours would break lines that a log or a pipeline looks for.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
    pretty_exceptions_enable=False,
    help="Decide from real traffic whether a quantized tier may replace the one that serves now.",
    epilog="`tiergate COMMAND --help` says more, with examples.",
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
for added in app.registered_groups:
    added.cls = Commands


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
    ended(app)
