"""`differences`: where the answers of pairs differ, as the API counts it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.asking import (
    JsonOption,
    ModelArgument,
    TierArgument,
    asks,
    tell,
)
from service.client.details import details_view

if TYPE_CHECKING:
    from service.client.connection import TiergateClient


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Docs: docs/evaluators.md")(differences)


@asks
def differences(
    client: TiergateClient,
    model: ModelArgument,
    tier: TierArgument,
    evaluator: Annotated[
        str,
        typer.Option(
            "--evaluator", help="field_agreement, answer_health, or another whose failures to count."
        ),
    ] = "field_agreement",
    as_json: JsonOption = False,
) -> None:
    """Show where a tier's answers differ from the baseline's: field by field, beside the control.

    Fields go by the names of the requests' schemas (`/orders/*/total`), never by what an answer says. A field
    whose values differ as often between two answers of the baseline tells nothing about the tier.

    \b
    Which fields of structured answers change?
      tiergate differences qwen3-32b w8a8
    Are answers longer or shorter? Loops, floods, switches of language, engine errors: how often in each arm?
      tiergate differences qwen3-32b w8a8 --evaluator answer_health
    """
    document = client.differences(model, tier, evaluator=evaluator)
    tell(document, lambda: details_view(document), as_json=as_json)
