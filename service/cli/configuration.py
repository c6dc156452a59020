"""`-c FILE`, `--json`, and what a wrong configuration prints, for every command that needs one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from service.settings import Settings
    from service.store.sql.database import Database

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        envvar="TIERGATE_CONFIG",
        metavar="FILE",
        help="Configuration file; ./tiergate.yaml when left out.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON with stable keys.")]
WRONG_CONFIGURATION = 2
"""Exit status, as for a wrong command line."""


def load_or_exit(path: Path | None, *, make_key: bool = True, judges: bool = True) -> Settings:
    """The settings; every problem on standard error and exit status 2 when there are none.

    `make_key` is false for commands that only look: a capture key that is not there yet is not made;
    `judges` is false for a proxy, which loads no evaluator of other packages.
    """
    # pydantic and the evaluators take half a second, which `tiergate --help` need not wait for.
    from service.settings import SettingsError, load

    try:
        return load(path, os.environ, make_key=make_key, judges=judges)
    except SettingsError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(WRONG_CONFIGURATION) from None


@contextmanager
def stored(settings: Settings, *, otherwise: str) -> Iterator[Database]:
    """The database that is there, for as long as the block lasts.

    Where it cannot be used the command ends with exit status 2: why, and what is `otherwise`.
    """
    from service.store.sql.database import StoreUnusable, open_database

    try:
        db = open_database(settings.database_url, make=False)
        try:
            yield db
        finally:
            db.close()
    except StoreUnusable as error:
        raise fail(f"{error}, {otherwise}", WRONG_CONFIGURATION) from None


def fail(message: str, status: int = 1) -> typer.Exit:
    """Prints what is wrong and what to do; the caller raises what it returns."""
    typer.echo(message, err=True)
    return typer.Exit(status)
