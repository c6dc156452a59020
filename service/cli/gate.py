"""`tiergate gate`: the one question of a pipeline, with an exit status for each answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.asking import (
    NO_ANSWER,
    AnswerCommand,
    JsonOption,
    ModelArgument,
    TierArgument,
    asks,
    tell,
)
from service.cli.quantities import duration

if TYPE_CHECKING:
    from service.client.connection import TiergateClient
    from service.client.readings import Document

EXIT = {"approved": 0, "rejected": 1, "inconclusive": 2}
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds between two askings; each is twice the last."""
MAY_PASS = frozenset({408, 425, 429}) | frozenset(range(500, 600))
"""Statuses of refusals after which a waiting pipeline asks again."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=AnswerCommand)(gate)


@asks
def gate(
    client: TiergateClient,
    model: ModelArgument,
    tier: TierArgument,
    wait: Annotated[
        str | None,
        typer.Option("--wait", help="How long to wait for a decision, such as 2h; asked once when left out."),
    ] = None,
    artifact: Annotated[
        str | None,
        typer.Option(
            "--artifact", help="sha256 of what is about to be rolled out; another than was measured waits."
        ),
    ] = None,
    verdict_alone: Annotated[
        bool, typer.Option("--verdict-alone", help="An accept of the evidence suffices, without an approval.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """May a pipeline roll this tier out? Exit status 0 approved, 1 rejected, 2 inconclusive, 3 no answer.

    With --wait it asks until the tier is approved or rejected; at the deadline it exits with 2, or with 3
    where the API could not be asked at the end. While it waits, every new reason is a line on standard error.
    Only exit status 0 means go.

    \b
    In a pipeline:
      tiergate gate qwen3-32b w8a8 --wait 2h --artifact "$DIGEST"
    By hand:
      tiergate gate qwen3-32b w8a8 --json
    """
    waits = 0.0 if wait is None else duration(wait, "--wait")

    def ask() -> Document:
        return client.gate(model, tier, artifact=artifact, basis="verdict" if verdict_alone else None)

    found = _asked(ask, waits)
    state = found.get("verdict")
    line = f"{state}: {found.get('reason')}"
    if as_json:
        tell(found, lambda: line, as_json=True)
    else:
        typer.echo(line)
    raise typer.Exit(EXIT.get(str(state), NO_ANSWER))


def _asked(ask: Callable[[], Document], waits: float) -> Document:
    """The first answer that decides, or the last before the deadline; raises what kept that from coming."""
    from service.client.errors import AnswerUnreadable, ApiRefused, ApiUnreachable, ClientError

    deadline, pause, told = time.monotonic() + waits, FIRST_PAUSE, ""
    while True:
        try:
            found = ask()
            if found.get("verdict") in ("approved", "rejected"):
                return found
            failed: ClientError | None = None
            line = str(found.get("reason"))
        except (ApiUnreachable, AnswerUnreadable, ApiRefused) as error:
            if isinstance(error, ApiRefused) and error.status not in MAY_PASS:
                raise
            failed, line = error, str(error)
        left = deadline - time.monotonic()
        if left <= 0:
            if failed is not None:
                raise failed
            return found
        if line != told:
            typer.echo(f"waiting, {left:.0f} s left: {line}", err=True)
            told = line
        time.sleep(min(pause, left))
        pause = min(2 * pause, LONGEST_PAUSE)
