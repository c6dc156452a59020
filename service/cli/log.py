"""`tiergate log`: who decided what, when, why and from where; whether the log is whole; the log as a file.

These read the database of the configuration, or a file, and ask no server: who doubts the API can check it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from service.cli.configuration import ConfigOption, JsonOption, fail, load_or_exit, stored
from service.cli.writing import writing
from service.moments import moment

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from service.store.decided.chain import Break, Head
    from service.store.decided.decisions import Entry
    from service.store.sql.database import Database

BROKEN = 1
UNUSABLE = 2

log_app = typer.Typer(no_args_is_help=True, help="The decision log: read it, check it, take it away.")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (show, verify, export):
        log_app.command(epilog="Docs: docs/decision-log.md")(command)
    app.add_typer(log_app, name="log")


def show(
    model: Annotated[str | None, typer.Argument(metavar="MODEL", help="All when left out.")] = None,
    tier: Annotated[str | None, typer.Argument(metavar="TIER", help="All when left out.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="The last so many.")] = 20,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the last decisions: who, when, what, why, from where.

    Approvals, overrides, revocations, promotions, rollbacks, holds, skips; changes of policy and tokens.

    \b
      tiergate log show
      tiergate log show qwen3-32b w8a8 -n 50
      tiergate log show --json | jq '.entries[] | select(.action == "policy") | .detail.changed'
    """
    from service.store.decided.decisions import latest

    with _database(config) as db:
        entries = latest(db, model=model, tier=tier, limit=limit)
    if as_json:
        typer.echo(json.dumps({"entries": [_document(entry) for entry in entries]}, indent=2))
    elif not entries:
        typer.echo("nothing was decided yet: `tiergate approve MODEL TIER` is a decision, a rollback another")
    else:
        Console().print(_table(entries), crop=False)


def verify(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="An exported log; the database when left out.")
    ] = None,
    head: Annotated[
        list[str] | None,
        typer.Option("--head", metavar="SEQ:DIGEST", help="A head kept elsewhere; may be given again."),
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find any row that was altered, removed, added or moved, and print the head to keep elsewhere.

    The chain shows each of these, unless somebody wrote the whole log anew. Against that, keep the head that
    this prints where the log is not (a ticket, an attestation) and give it back with --head.

    Exit status: 0 the log holds, 1 it does not, 2 there is no log to read.

    \b
      tiergate log verify
      tiergate log verify decisions.jsonl --head 41:9f86d081884c7d65...
    """
    kept = [_head(text) for text in head or ()]
    if file is not None:
        last, found = _check_file(file, kept)
    else:
        from service.store.decided.decisions import check, head_of

        with _database(config) as db, db.one_moment():
            last, found = head_of(db), check(db, kept=kept)
    if as_json:
        broken = None if found is None else {"seq": found.seq, "why": found.why}
        typer.echo(json.dumps({"holds": found is None, "broken": broken, "head": str(last)}, indent=2))
    elif found is not None:
        typer.echo(f"the decision log does not hold: {found}", err=True)
    else:
        typer.echo(f"{last.seq} rows, each bound to the one before it: the log holds\nhead {last}")
    raise typer.Exit(0 if found is None else BROKEN)


def export(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Standard output when left out.")
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Write the whole log as JSON lines, the head last: it can be checked without this database.

    \b
      tiergate log export -o decisions.jsonl && tiergate log verify decisions.jsonl
    """
    from service.store.decided.chain import GENESIS, Head
    from service.store.decided.decision_export import lines_of
    from service.store.decided.decisions import whole

    with _database(config) as db, whole(db) as (rows, head):
        lines = (f"{line}\n" for line in lines_of(rows, head or Head(seq=0, digest=GENESIS)))
        if output is None:
            sys.stdout.writelines(lines)
            return
        with writing(output, status=UNUSABLE) as file:
            file.writelines(lines)
    typer.echo(f"{output}: {0 if head is None else head.seq} rows", err=True)


def _database(config: Path | None) -> AbstractContextManager[Database]:
    return stored(load_or_exit(config, make_key=False), otherwise="so there is no decision log")


def _check_file(file: Path, kept: list[Head]) -> tuple[Head, Break | None]:
    from service.store.decided.decision_export import NotALog, check_lines

    try:
        with file.open(encoding="ascii") as lines:
            return check_lines(lines, kept=kept)
    except OSError as error:
        raise fail(f"{file} cannot be read: {error.strerror}", UNUSABLE) from None
    except (NotALog, UnicodeDecodeError) as error:
        raise fail(f"{file}: {error}", UNUSABLE) from None


def _head(text: str) -> Head:
    from service.engines.artifact import bare
    from service.store.decided.chain import Head

    seq, _, written = text.partition(":")
    digest = bare(written)
    if not (seq.isascii() and seq.isdecimal()) or len(digest) != 64 or set(digest) - set("0123456789abcdef"):
        raise typer.BadParameter(f"--head {text!r}: expected SEQ:DIGEST as `tiergate log verify` prints it")
    return Head(seq=int(seq), digest=digest)


def _document(entry: Entry) -> dict[str, Any]:
    return {
        "seq": entry.seq,
        "at": moment(entry.at),
        "actor": entry.actor,
        "action": entry.action,
        "model": entry.model or None,
        "tier": entry.tier,
        "detail": dict(entry.detail),
        "prev": entry.prev,
        "digest": entry.digest,
    }


def _table(entries: list[Entry]) -> Table:
    from service.store.decided.decision_reading import whence_of, why

    table = Table(box=SIMPLE_HEAD)
    for heading in ("row", "when", "who", "what", "of", "why", "from where"):
        table.add_column(heading, overflow="fold")
    for entry in entries:
        of = " ".join(part for part in (entry.model, entry.tier) if part) or "-"
        override = " (override)" if entry.detail.get("override") else ""
        cells = (str(entry.seq), moment(entry.at), entry.actor, entry.action + override, of)
        table.add_row(*map(Text, (*cells, why(entry), whence_of(entry))))
    return table
