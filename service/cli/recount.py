"""`tiergate recount`: proof that what verdicts are read from is what the recorded pairs say.

Every count of the database is made again from its units and pairs and compared, row by row. With `--upgrade`
a database of an older version is made into one of this version first, counted the same way.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from service.cli.configuration import ConfigOption, JsonOption, fail, load_or_exit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from service.store.scored.recount import Recount

DIFFERS = 1
UNUSABLE = 2
MOST_SHOWN = 50
"""Rows of the table; `--json` has them all."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Docs: docs/operations.md")(recount)


def recount(
    config: ConfigOption = None,
    upgrade: Annotated[
        bool,
        typer.Option(
            "--upgrade",
            help="First make a database of an older Tiergate into one of this version. Stop everything that "
            "uses it before, and keep a copy.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Count everything again from the recorded pairs, and compare.

    Exit status: 0 all counts are what the pairs say, 1 some are not, 2 there is no database to read.
    Reads one consistent moment; workers may go on. A million pairs take a minute or two.

    \b
    Are the numbers that verdicts rest on what was recorded?
      tiergate recount -c tiergate.yaml
    In a pipeline:
      tiergate recount --json | jq -e .equal
    """
    settings = load_or_exit(config, make_key=False)
    from service.store.scored.recount import recount as count_again
    from service.store.scored.upgrade import upgrade as make_current
    from service.store.sql.database import StoreUnusable, open_database

    try:
        upgraded = make_current(settings.database_url, told=_tell("upgrading")) if upgrade else None
        database = open_database(settings.database_url, make=False)
        try:
            found = count_again(database, told=_tell("recounting"))
        finally:
            database.close()
    except StoreUnusable as error:
        raise fail(str(error), UNUSABLE) from None
    if as_json:
        sys.stdout.write(json.dumps(_document(found, upgraded), indent=2) + "\n")
    else:
        _show(found, upgraded)
    raise typer.Exit(0 if found.equal else DIFFERS)


def _tell(what: str) -> Callable[[int, int], None]:
    """Says how far it is: on a terminal in one line that writes over itself, else now and then."""
    every = 10_000 if sys.stderr.isatty() else 100_000

    def told(done: int, total: int) -> None:
        if done % every == 0:
            end = "\r" if sys.stderr.isatty() and done + every <= total else "\n"
            sys.stderr.write(f"{what}: {done:,} of {total:,} units ({done / total:.0%}){end}")
            sys.stderr.flush()

    return told


def _document(found: Recount, upgraded: int | None) -> dict[str, Any]:
    return {
        "equal": found.equal,
        "units": found.units,
        "pairs": found.pairs,
        "rows": found.rows,
        "upgraded_units": upgraded,
        "differences": [
            {
                "table": each.table,
                "row": dict(each.row),
                "stored": dict(each.stored),
                "recounted": dict(each.recounted),
            }
            for each in found.differences
        ],
    }


def _show(found: Recount, upgraded: int | None) -> None:
    console = Console(highlight=False, soft_wrap=True)
    if upgraded is not None:
        console.print(f"upgraded: {upgraded:,} units counted again")
    told = f"{found.rows:,} rows counted again from {found.units:,} units with {found.pairs:,} pairs"
    if found.equal:
        console.print(f"{told}: equal")
        return
    table = Table(box=SIMPLE_HEAD)
    for heading in ("table", "row", "stored", "from the pairs"):
        table.add_column(heading, overflow="fold")
    for each in found.differences[:MOST_SHOWN]:
        stored, recounted = _amounts(each.stored, each.recounted)
        row = " ".join(f"{name}={value}" for name, value in each.row.items() if value not in ("", 0))
        table.add_row(*(Text(part) for part in (each.table, row, stored, recounted)))
    console.print(table)
    if len(found.differences) > MOST_SHOWN:
        console.print(f"and {len(found.differences) - MOST_SHOWN:,} more (--json has them all)")
    console.print(f"{told}: {len(found.differences):,} differ")


def _amounts(stored: Mapping[str, int], recounted: Mapping[str, int]) -> Iterator[str]:
    """The amounts that differ, as they are and as they should be."""
    for amounts in (stored, recounted):
        yield " ".join(
            f"{name}={amount}" for name, amount in amounts.items() if stored[name] != recounted[name]
        )
