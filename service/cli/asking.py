"""How a command asks the API: its options, an open client, one clear line when it is refused.

`@asks` gives a command the client in place of the options that say where the API is and who asks.

That ends with exit status 3. Usage errors exit with 2, of a question whose answer may be 2 with 3 as well.
"""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Concatenate,
    NoReturn,
    ParamSpec,
    cast,
    get_type_hints,
)
from urllib.parse import urlsplit

import typer
from rich.console import Console, RenderableType
from typer.core import TyperCommand

from service.cli.configuration import ConfigOption
from service.cli.whereabouts import DEFAULT_URL, Whereabouts, whereabouts
from service.client.errors import ApiRefused, ClientError
from service.client.tables import plain

if TYPE_CHECKING:
    from service.client.connection import TiergateClient

NO_ANSWER = 3
NO_CREDENTIALS = 401

ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help="The name clients send.")]
TierArgument = Annotated[str, typer.Argument(metavar="TIER", help="A tier of its ladder.")]
UrlOption = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="TIERGATE_URL",
        help=f"Where the API is; by api.listen of the file, else {DEFAULT_URL}, when left out.",
    ),
]
TokenOption = Annotated[
    str | None,
    typer.Option(
        "--token", envvar="TIERGATE_TOKEN", help="Bearer token; other users of this machine see it given so."
    ),
]
TokenFileOption = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        envvar="TIERGATE_TOKEN_FILE",
        help="File with the token; on its own machine, that of `tiergate up` when left out.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the API's own JSON.")]
ReasonOption = Annotated[str | None, typer.Option("--reason", help="Kept in the decision log.")]
NeededReason = Annotated[str, typer.Option("--reason", help="Why; kept in the decision log.")]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Do not ask whether the target's backends are up.")
]
WHERE: Mapping[str, Any] = {
    "config": ConfigOption,
    "url": UrlOption,
    "token": TokenOption,
    "token_file": TokenFileOption,
}
"""Of every command that asks; `asking` takes them."""
USAGE_ERROR = cast("type[Exception]", typer.BadParameter.__mro__[1])
"""Typer's base of everything that is wrong with a command line; it has no public name of its own."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
P = ParamSpec("P")


class AnswerCommand(TyperCommand):
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


def asks(command: Callable[Concatenate[TiergateClient, P], None]) -> Callable[..., None]:
    """The command with the options of `WHERE`, before its `--json`; it gets an open client for them.

    Typer reads a signature with the types themselves, and that of the client is loaded when one is opened.
    """
    kinds = get_type_hints(command, localns={"TiergateClient": object}, include_extras=True)
    _, *own = inspect.signature(command).parameters.values()
    named = inspect.Parameter.KEYWORD_ONLY
    parameters = [each.replace(kind=named, annotation=kinds[each.name]) for each in own]
    parameters += [inspect.Parameter(name, named, default=None, annotation=WHERE[name]) for name in WHERE]
    parameters.sort(key=lambda each: each.name == "as_json")
    answer: Callable[..., None] = command

    @wraps(command)
    def asked(**given: Any) -> None:
        where = {name: given.pop(name) for name in WHERE}
        with asking(**where) as client:
            answer(client, **given)

    asked.__annotations__ = {each.name: each.annotation for each in parameters}
    asked.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return asked


@contextmanager
def asking(
    config: Path | None, url: str | None, token: str | None, token_file: Path | None
) -> Iterator[TiergateClient]:
    """An open client; what it refuses ends the command with one clear line and exit status 3."""
    from service.client.connection import TiergateClient

    try:
        where = whereabouts(config, url, os.environ)
        secret = token_of(where, token, token_file)
        client = TiergateClient(where.url, secret)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    try:
        with client:
            yield client
    except UnicodeEncodeError as error:
        raise typer.BadParameter(f"a name here is not UTF-8 text: {error.object!r}") from None
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


def token_of(where: Whereabouts, token: str | None, token_file: Path | None) -> str | None:
    """The token given, or the one that `tiergate up` left here if the API is on this machine."""
    if token:
        return token.strip()
    if token_file is not None:
        try:
            return token_file.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "no token has such characters"
            raise typer.BadParameter(f"the token file {token_file} cannot be read: {why}") from None
    try:
        return where.token_file.read_text(encoding="ascii").strip() or None if _is_here(where) else None
    except (OSError, ValueError):
        return None


def tell(document: Mapping[str, Any], view: Callable[[], RenderableType], *, as_json: bool) -> None:
    """The API's own JSON, or what a person reads."""
    if as_json:
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        # Commands to copy are longer than a line may be.
        Console().print(view(), crop=False)
