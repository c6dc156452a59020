"""The API's questions as commands: ladder, verdict, evidence, approve, revoke, rollback, decisions, ledger.

Exit codes: 0 done; `verdict` answers 0 accept, 1 reject, 2 undecided; 3 the API refused or cannot be reached.
Usage errors exit with 2, of `verdict` with 3, since 2 is an answer there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, cast
from urllib.parse import urlsplit

import typer
from rich.console import Console, RenderableType
from typer.core import TyperCommand

from service.cli.configuration import ConfigOption
from service.cli.whereabouts import DEFAULT_URL, Whereabouts, whereabouts
from service.client.errors import ApiRefused, ClientError
from service.client.listings import decisions_view, evidence_view, ledger_view
from service.client.tables import ladder_view, plain, route_change_view, verdict_view
from service.decision.verdict import Decision

if TYPE_CHECKING:
    from service.client.connection import TiergateClient

NO_ANSWER = 3
NO_CREDENTIALS = 401
VERDICT_EXIT = {Decision.ACCEPT: 0, Decision.REJECT: 1, Decision.UNDECIDED: 2}

ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help="The name clients send.")]
TierArgument = Annotated[str, typer.Argument(metavar="TIER", help="A tier of its ladder.")]
UrlOption = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="TIERGATE_URL",
        help=f"The API's; api.listen of the file, or {DEFAULT_URL}, when left out.",
    ),
]
TokenOption = Annotated[
    str | None,
    typer.Option(
        "--token", envvar="TIERGATE_TOKEN", help="Bearer token; other users of this machine can see it here."
    ),
]
TokenFileOption = Annotated[
    Path | None, typer.Option("--token-file", envvar="TIERGATE_TOKEN_FILE", help="File with the token.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the API's own JSON.")]
ReasonOption = Annotated[str | None, typer.Option("--reason", help="Kept in the decision log.")]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Do not ask whether the target's backends are up.")
]
USAGE_ERROR = cast("type[Exception]", typer.BadParameter.__mro__[1])
"""Typer's base of everything that is wrong with a command line; it has no public name of its own."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class VerdictCommand(TyperCommand):
    """A command whose usage errors exit with 3: their usual 2 would tell a pipeline `undecided`."""

    def make_context(self, *args: Any, **extra: Any) -> Any:
        with _usage_errors_are_no_answer():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        with _usage_errors_are_no_answer():
            return super().invoke(ctx)


@contextmanager
def _usage_errors_are_no_answer() -> Iterator[None]:
    try:
        yield
    except USAGE_ERROR as error:
        error.exit_code = NO_ANSWER  # type: ignore[attr-defined]
        raise


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(ladder)
    app.command(cls=VerdictCommand)(verdict)
    for command in (evidence, approve, revoke, rollback, decisions, ledger):
        app.command()(command)


def ladder(
    model: Annotated[str | None, typer.Argument(metavar="[MODEL]", help="All models when left out.")] = None,
    config: ConfigOption = None,
    url: UrlOption = None,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a model's tiers, their states, and who serves."""
    with _asking(config, url, token, token_file) as client:
        names = [model] if model is not None else [each["model"] for each in client.models()["models"]]
        readings = [client.ladder(name) for name in names]
    if as_json:
        documents = [dict(reading.document) for reading in readings]
        _print_json(documents[0] if model is not None else {"ladders": documents})
        return
    for reading in readings:
        _print(ladder_view(reading))


def verdict(
    model: ModelArgument,
    tier: TierArgument,
    config: ConfigOption = None,
    url: UrlOption = None,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what the evidence amounts to. Exit code 0 accept, 1 reject, 2 undecided, 3 no answer."""
    with _asking(config, url, token, token_file) as client:
        reading = client.verdict(model, tier)
    if as_json:
        _print_json(reading.document)
    else:
        _print(verdict_view(reading))
    raise typer.Exit(VERDICT_EXIT[reading.verdict.decision])


def evidence(
    model: ModelArgument,
    tier: TierArgument,
    pairs: Annotated[int, typer.Option(min=0, max=200, help="How many single pairs to show.")] = 20,
    all_pairs: Annotated[bool, typer.Option("--all", help="Not only pairs whose arms differ.")] = False,
    config: ConfigOption = None,
    url: UrlOption = None,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a verdict rests on: tallies, the control, coverage, and the latest pairs."""
    with _asking(config, url, token, token_file) as client:
        document = client.evidence(model, tier, pairs=pairs, discordant=not all_pairs)
    if as_json:
        _print_json(document)
        return
    _print(evidence_view(document))


def approve(
    model: ModelArgument,
    tier: TierArgument,
    artifact: Annotated[
        str | None, typer.Option("--artifact", help="sha256 of what will be rolled out.")
    ] = None,
    expires_in: Annotated[
        str | None, typer.Option("--expires-in", help="Seconds, or such as 12h, 30d.")
    ] = None,
    override: Annotated[
        bool, typer.Option("--override", help="Against the verdict; needs --reason and scope admin.")
    ] = False,
    reason: ReasonOption = None,
    config: ConfigOption = None,
    url: UrlOption = None,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let a tier serve; refused with the reasons unless its verdict is accept."""
    lasts = int(expires_in) if expires_in is not None and expires_in.isdecimal() else expires_in
    with _asking(config, url, token, token_file) as client:
        change = client.approve(
            model, tier, artifact=artifact, expires_in=lasts, override=override, reason=reason
        )
    _print_json(change.document) if as_json else _print(route_change_view(change))


def revoke(
    model: ModelArgument,
    tier: TierArgument,
    reason: ReasonOption = None,
    force: ForceOption = False,
    config: ConfigOption = None,
    url: UrlOption = None,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take an approval back; if the tier serves, the next lower approved one takes over."""
    with _asking(config, url, token, token_file) as client:
        change = client.revoke(model, tier, reason=reason, force=force)
    _print_json(change.document) if as_json else _print(route_change_view(change))


def rollback(
    model: ModelArgument,
    to: Annotated[
        str | None, typer.Option("--to", help="A lower tier; the next approved one by default.")
    ] = None,
    reason: ReasonOption = None,
    force: ForceOption = False,
    config: ConfigOption = None,
    url: UrlOption = None,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Route a model to a lower rung at once; never needs evidence."""
    with _asking(config, url, token, token_file) as client:
        change = client.roll_back(model, to=to, reason=reason, force=force)
    _print_json(change.document) if as_json else _print(route_change_view(change))


def decisions(
    model: ModelArgument,
    after: Annotated[int, typer.Option(min=0, help="Sequence number to read on from.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 100,
    config: ConfigOption = None,
    url: UrlOption = None,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show who decided what and when, and whether the log's chain is intact."""
    with _asking(config, url, token, token_file) as client:
        document = client.decisions(model, after=after, limit=limit)
    if as_json:
        _print_json(document)
        return
    _print(decisions_view(document))


def ledger(
    model: Annotated[str | None, typer.Option("--model", help="One model instead of all.")] = None,
    config: ConfigOption = None,
    url: UrlOption = None,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the account of every request, and whether it adds up."""
    with _asking(config, url, token, token_file) as client:
        document = client.ledger(model)
    if as_json:
        _print_json(document)
        return
    _print(ledger_view(document))


@contextmanager
def _asking(
    config: Path | None, url: str | None, token: str | None, token_file: Path | None
) -> Iterator[TiergateClient]:
    """An open client; what it refuses ends the command with one clear line and exit code 3."""
    from service.client.connection import TiergateClient

    try:
        where = whereabouts(config, url, os.environ)
        secret = _token(where, token, token_file)
        client = TiergateClient(where.url, secret)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    try:
        with client:
            yield client
    except ApiRefused as error:
        if error.status == NO_CREDENTIALS and secret is None:
            error.hint = f"{error.hint}. {_no_token(where)}"
        _fail(error)
    except ClientError as error:
        _fail(error)


def _fail(error: ClientError) -> NoReturn:
    told = Console(stderr=True)
    told.print(plain(f"{error}", "bold red"), soft_wrap=True)
    if isinstance(error, ApiRefused):
        for reason in error.reasons:
            told.print(plain(f"  {reason}"), soft_wrap=True)
    if error.hint:
        told.print(plain(error.hint), soft_wrap=True)
    raise typer.Exit(NO_ANSWER) from error


def _no_token(where: Whereabouts) -> str:
    if _is_here(where):
        looked = f"`tiergate up` would have left one in {where.token_file}, and there is none"
    else:
        looked = "That of `tiergate up` is sent to nobody but this machine"
    return f"{looked}: name its file with --token-file or TIERGATE_TOKEN_FILE, or its configuration with -c"


def _is_here(where: Whereabouts) -> bool:
    return urlsplit(where.url).hostname in LOOPBACK


def _token(where: Whereabouts, token: str | None, token_file: Path | None) -> str | None:
    """The token given, or the one that `tiergate up` left here if the API is on this machine."""
    if token:
        return token.strip()
    if token_file is not None:
        try:
            return token_file.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise typer.BadParameter(f"cannot read the token file {token_file}: {error}") from error
    try:
        return where.token_file.read_text(encoding="ascii").strip() or None if _is_here(where) else None
    except (OSError, ValueError):
        return None


def _print(what: RenderableType) -> None:
    Console().print(what)


def _print_json(document: Any) -> None:
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))
