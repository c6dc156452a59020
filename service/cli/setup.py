"""Before anything runs: `init` writes a configuration, `check` tries it, `schema` describes it, `token`."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from getpass import getuser
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.configuration import ConfigOption, fail, load_or_exit
from service.cli.named import ladder_of
from service.cli.writing import write

if TYPE_CHECKING:
    from service.launch.check import Line
    from service.settings import Settings
    from service.store.sql.database import Database

token_app = typer.Typer(no_args_is_help=True, help="Bearer tokens of the API.")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(init)
    app.command()(check)
    app.command()(schema)
    token_app.command("new")(token_new)
    token_app.command("rotate")(token_rotate)
    token_app.command("list")(token_list)
    token_app.command("revoke")(token_revoke)
    app.add_typer(token_app, name="token")


def init(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="Where to write it.")] = Path("tiergate.yaml"),
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write a commented configuration to start from."""
    text = resources.files("service.settings").joinpath("example.yaml").read_text(encoding="utf-8")
    if path.is_dir():
        raise fail(f"{path} is a directory; name a file in it, such as {path / 'tiergate.yaml'}")
    if path.exists() and not force:
        raise fail(f"{path} is already there; --force replaces it")
    write(path, text)
    typer.echo(
        f"{path} is written. Name your model, its tiers and their servers in it, then:\n"
        f"  tiergate check -c {path}     tries it and asks every backend who it is\n"
        f"  tiergate up -c {path}        runs everything on this machine"
    )


def check(
    config: ConfigOption = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Only the file itself: no backend, no store is asked.")
    ] = False,
) -> None:
    """Validate the configuration, and ask every backend and store.

    Exit status: 0 nothing fails, 1 a backend or a store does, 2 the configuration cannot be used.

    Each baseline is put ten short recall questions with the settings of `probe`. Otherwise it only looks: a
    capture key or a database that is not there yet is left to what starts first.
    """
    settings = load_or_exit(config, make_key=False)
    from rich.console import Console
    from rich.text import Text

    from service.launch.check import Level
    from service.settings.problems import visible

    console = Console()  # which goes by NO_COLOR and by what the terminal can
    count = Counter[Level]()
    for line in _findings(settings, offline=offline):
        count[line.level] += 1
        colour = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "red"}[line.level]
        # A backend's own words may be among them.
        told = f"  {visible(line.subject)}: {visible(line.text, keep=chr(10))}"
        console.print(Text.assemble((f"{line.level:<4}", colour), told), soft_wrap=True)
    failed, warned, well = count[Level.FAIL], count[Level.WARN], count[Level.OK]
    typer.echo(f"{settings.path}: {failed} failed, {warned} warnings, {well} ok")
    if failed:
        raise typer.Exit(1)


def _findings(settings: Settings, *, offline: bool) -> Iterator[Line]:
    """Each as soon as it is known: a slow baseline takes its time for its questions."""
    from service.launch.ask import ask_all
    from service.launch.check import all_backends, backend_lines, guarded_backends, setup_lines
    from service.launch.check_corpus import corpus_lines
    from service.launch.check_recall import recall_lines
    from service.launch.check_stores import store_lines

    if not offline:
        answers = ask_all(all_backends(settings), guarded_backends(settings))
        yield from backend_lines(settings, answers)
        if sys.stderr.isatty():
            typer.echo("asking each baseline ten recall questions ...", err=True)
        yield from recall_lines(settings, answers)
        yield from store_lines(settings)
    yield from setup_lines(settings)
    yield from corpus_lines(settings)


def schema(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; standard output when left out.")
    ] = None,
) -> None:
    """Print the JSON Schema of tiergate.yaml, by which editors complete its keys and mark what is wrong.

    \b
      tiergate schema -o tiergate.schema.json     # and as the first line of tiergate.yaml:
      # yaml-language-server: $schema=tiergate.schema.json
    """
    from service.settings.evaluating import known
    from service.settings.schema import json_schema

    text = json.dumps(json_schema(known()), indent=2, ensure_ascii=False)
    if output is None:
        typer.echo(text)
    else:
        write(output, text + "\n")


def token_new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose token; the decision log names it.")],
    scope: Annotated[
        list[str],
        typer.Option(
            "--scope", metavar="SCOPE", help="read, label, approve or admin; each includes those before it."
        ),
    ],
    days: Annotated[
        float | None,
        typer.Option("--days", metavar="DAYS", help="Expires after so many days; never when left out."),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            help="Only this one may be asked about; may be given again; all when left out.",
        ),
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Make a token and print it: it is stored nowhere else.

    \b
    For a person, who reads, labels and approves:
      tiergate token new anna --scope approve
    For a pipeline that asks of one model, for three months:
      tiergate token new ci --scope read --model qwen3-32b --days 90
    """
    from service.store.access.tokens import create

    now = time.time()
    settings = load_or_exit(config)
    for each in model or ():
        ladder_of(settings, each)
    database = _opened(settings)
    try:
        secret = create(
            database,
            name=name,
            scopes=scope,
            now=now,
            expires_at=None if days is None else now + days * 86400,
            models=model or (),
            actor=person(),
        )
    except ValueError as error:
        raise fail(str(error)) from None
    finally:
        database.close()
    typer.echo(secret)


def token_rotate(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The token's name.")],
    grace: Annotated[
        float,
        typer.Option(
            "--grace-hours",
            metavar="HOURS",
            help="So long the secret of before is good as well; at most 720.",
        ),
    ] = 0.0,
    days: Annotated[
        float | None,
        typer.Option("--days", metavar="DAYS", help="Expires after so many days; when left out, as before."),
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Give a token a new secret and print it; name, scopes and models stay."""
    from service.store.access.tokens import list_tokens, rotate

    now = time.time()
    database = _open(config)
    try:
        secret = rotate(
            database,
            name,
            now=now,
            grace_seconds=grace * 3600,
            expires_at=None if days is None else now + days * 86400,
            actor=person(),
        )
    except KeyError:
        known = ", ".join(token.name for token in list_tokens(database, now)) or "none"
        raise fail(f"no token in force is named {name!r}; there are: {known}") from None
    except ValueError as error:
        raise fail(str(error)) from None
    finally:
        database.close()
    typer.echo(secret)


def token_list(config: ConfigOption = None) -> None:
    """List the tokens in force; their secrets are not kept."""
    from service.store.access.tokens import list_tokens

    database = _open(config)
    try:
        tokens = list_tokens(database, time.time())
    finally:
        database.close()
    if not tokens:
        typer.echo("no token is in force; `tiergate token new NAME --scope read` makes one", err=True)
    for token in tokens:
        until = "until revoked" if token.expires_at is None else f"until {_day(token.expires_at)}"
        scopes = ",".join(sorted(token.scopes))
        models = "all models" if token.models is None else ",".join(sorted(token.models))
        typer.echo(f"{token.name}\t{scopes}\tsince {_day(token.created_at)}\t{until}\t{models}")


def token_revoke(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The token's name.")],
    config: ConfigOption = None,
) -> None:
    """End a token at once."""
    from service.store.access.tokens import list_tokens, revoke

    now = time.time()
    database = _open(config)
    try:
        known = [token.name for token in list_tokens(database, now)]
        if not revoke(database, name, now=now, actor=person()):
            raise fail(f"no token in force is named {name!r}; there are: {', '.join(known) or 'none'}")
    finally:
        database.close()
    typer.echo(f"{name} is revoked")


def _open(config: Path | None) -> Database:
    return _opened(load_or_exit(config, make_key=False), make=False)


def _opened(settings: Settings, *, make: bool = True) -> Database:
    # SQLAlchemy is slow to load.
    from service.store.sql.database import StoreEmpty, StoreUnusable, open_database

    try:
        return open_database(settings.database_url, make=make, part="shell")
    except StoreEmpty as error:
        hint = "so there is no token; `tiergate token new NAME --scope read` makes one"
        raise fail(f"{error}, {hint}") from None
    except StoreUnusable as error:
        raise fail(str(error)) from None


def person() -> str:
    """Who signs in the decision log what is done from a shell."""
    try:
        return f"shell:{getuser()}"
    except (KeyError, OSError):  # a container's user may have no name
        return "shell"


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
