"""`tiergate skip` and `tiergate restore-alpha`: decisions of an admin about a tier in its epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.asking import (
    JsonOption,
    ModelArgument,
    NeededReason,
    ReasonOption,
    TierArgument,
    asks,
    tell,
)
from service.client.tables import intervention_view

if TYPE_CHECKING:
    from service.client.connection import TiergateClient


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(skip)
    app.command(name="restore-alpha")(restore_alpha)


@asks
def skip(
    client: TiergateClient,
    model: ModelArgument,
    tier: TierArgument,
    reason: ReasonOption = None,
    undo: Annotated[bool, typer.Option("--undo", help="Let the tiers above wait for it again.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Let the tiers above do without a rejected tier; needs --reason and scope admin.

    They need not wait for it any more, and share the error rate instead, as under `ladder_rule: independent`.
    It ends with --undo, or when the tier's epoch changes.
    """
    if reason is None and not undo:
        raise typer.BadParameter("say why: it stays in the decision log", param_hint="--reason")
    if undo:
        document = client.undo_skip(model, tier, reason=reason)
    else:
        document = client.skip(model, tier, reason=reason or "")
    tell(document, lambda: intervention_view(document), as_json=as_json)


@asks
def restore_alpha(
    client: TiergateClient,
    model: ModelArgument,
    tier: TierArgument,
    reason: NeededReason,
    as_json: JsonOption = False,
) -> None:
    """Count a tier's attempts anew, the present epoch as the first; needs scope admin.

    For an epoch that began for a reason that has nothing to do with the tier: another engine version of the
    baseline, an upgrade of Tiergate.
    """
    document = client.restore_alpha(model, tier, reason=reason)
    tell(document, lambda: intervention_view(document), as_json=as_json)
