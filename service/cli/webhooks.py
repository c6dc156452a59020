"""`tiergate webhooks`: what receivers were told or not, telling it again, and a test message.

These read the database of the configuration, as the guard does, and ask no API.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from service.cli.configuration import ConfigOption, JsonOption, fail, load_or_exit, stored
from service.moments import moment

if TYPE_CHECKING:
    from service.settings import Settings
    from service.store.outgoing.callbacks import Callback

NOT_TAKEN = 1
UNUSABLE = 2
UNTOLD = "so nothing was told"
NONE_CONFIGURED = "no webhook is configured: add one under `webhooks` in tiergate.yaml (docs/webhooks.md)"

webhooks_app = typer.Typer(no_args_is_help=True, help="Outgoing webhooks: what was told, and what was not.")

NameArgument = Annotated[str | None, typer.Argument(metavar="NAME", help="All webhooks when left out.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for name, command in (("list", show), ("retry", retry), ("test", try_one)):
        webhooks_app.command(name, epilog="Docs: docs/webhooks.md")(command)
    app.add_typer(webhooks_app, name="webhooks")


def show(
    dead: Annotated[bool, typer.Option("--dead", help="Only what was given up.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="The last so many.")] = 20,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the last messages: to whom, about what, waiting, answered or given up, and why.

    \b
      tiergate webhooks list
      tiergate webhooks list --dead --json
    """
    settings = load_or_exit(config, make_key=False)
    from service.store.outgoing.callbacks import CallbackState
    from service.store.outgoing.webhooks import messages

    with stored(settings, otherwise=UNTOLD) as db:
        found = messages(db, state=CallbackState.GIVEN_UP if dead else None, limit=limit)
    if as_json:
        typer.echo(json.dumps({"messages": [_document(each) for each in found]}, indent=2))
    elif found:
        Console().print(_table(found), crop=False)
    elif not settings.webhooks:
        typer.echo(NONE_CONFIGURED)
    elif dead:
        typer.echo("nothing was given up")
    else:
        typer.echo("nothing was told yet: `tiergate webhooks test NAME` tries a receiver")


def retry(
    name: NameArgument = None,
    event: Annotated[str | None, typer.Option("--event", metavar="ID", help="Only this one.")] = None,
    config: ConfigOption = None,
) -> None:
    """Owe again what was given up; the guard sends it within seconds.

    \b
      tiergate webhooks retry
      tiergate webhooks retry ops --event log-41-9f86d081884c
    """
    settings = load_or_exit(config, make_key=False)
    from service.store.outgoing.webhooks import retry as owe_again

    if name is not None:
        _known(settings, name)
    with stored(settings, otherwise=UNTOLD) as db:
        amount = owe_again(db, receiver=name, event_id=event, now=time.time())
    typer.echo(f"{amount} owed again" if amount else "nothing was given up")


def try_one(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the webhook.")],
    config: ConfigOption = None,
) -> None:
    """Send a test message now, signed as any other; exit status 1 when it was not taken."""
    settings = load_or_exit(config, make_key=False)
    from service.approval.dialects.callbacks.sending import Unanswered
    from service.approval.dialects.outgoing.receiver import Receiver
    from service.store.outgoing.webhook_terms import Told
    from service.store.outgoing.webhooks import Event

    _known(settings, name)
    now = time.time()
    receiver = Receiver(next(each for each in settings.webhooks if each.name == name))
    event = Event(
        event_id=f"test-{int(now)}",
        kind=Told.DECISION,
        action="test",
        at=now,
        model="",
        tier="",
        actor="tiergate webhooks test",
    )
    try:
        receiver.deliver(event, now=now)
    except Unanswered as error:
        raise fail(f"{name} did not take it: {error}", NOT_TAKEN) from None
    finally:
        receiver.close()
    typer.echo(f"{name} took it")


def _known(settings: Settings, name: str) -> None:
    names = [each.name for each in settings.webhooks]
    if name not in names:
        there = f"there are: {', '.join(names)}" if names else NONE_CONFIGURED
        raise fail(f"no webhook is called {name!r}; {there}", UNUSABLE)


def _document(message: Callback) -> dict[str, Any]:
    return {
        "webhook": message.tool.partition(":")[2],
        "id": message.place["event_id"],
        "event": message.basis,
        "action": message.place["action"],
        "model": message.model or None,
        "tier": message.tier or None,
        "at": moment(message.created_at),
        "state": message.state.value,
        "failed_attempts": message.attempts,
        "due_at": moment(message.due_at) if message.state.value == "waiting" else None,
        "problem": message.problem or None,
    }


def _table(found: list[Callback]) -> Table:
    table = Table(box=SIMPLE_HEAD)
    for heading in ("when", "webhook", "id", "what", "of", "state", "problem"):
        table.add_column(heading, overflow="fold")
    for each in map(_document, found):
        of = " ".join(part for part in (each["model"], each["tier"]) if part) or "-"
        what = f"{each['event']}: {each['action']}"
        cells = (each["at"], each["webhook"], each["id"], what, of, each["state"], each["problem"] or "-")
        table.add_row(*map(Text, cells))
    return table
