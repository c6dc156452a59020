"""`tiergate skip` and `tiergate restore-alpha`: decisions of an admin about a tier in its epoch."""

from __future__ import annotations

from typing import Annotated

import typer

from service.cli.asking import (
    JsonOption,
    ModelArgument,
    ReasonOption,
    TierArgument,
    TokenFileOption,
    TokenOption,
    UrlOption,
    asking,
    tell,
)
from service.cli.configuration import ConfigOption
from service.client.tables import intervention_view

NeededReason = Annotated[str, typer.Option("--reason", help="Why; kept in the decision log.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(skip)
    app.command(name="restore-alpha")(restore_alpha)


def skip(
    model: ModelArgument,
    tier: TierArgument,
    reason: ReasonOption = None,
    undo: Annotated[bool, typer.Option("--undo", help="Let the tiers above wait for it again.")] = False,
    config: ConfigOption = None,
    url: UrlOption = None,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let the tiers above do without a rejected tier; needs --reason and scope admin.

    They need not wait for it any more, and share the error rate instead, as under `ladder_rule: independent`.
    It ends with --undo, or when the tier's epoch changes.
    """
    if reason is None and not undo:
        raise typer.BadParameter("say why: it stays in the decision log", param_hint="--reason")
    with asking(config, url, token, token_file) as client:
        if undo:
            document = client.undo_skip(model, tier, reason=reason)
        else:
            document = client.skip(model, tier, reason=reason or "")
    tell(document, lambda: intervention_view(document), as_json=as_json)


def restore_alpha(
    model: ModelArgument,
    tier: TierArgument,
    reason: NeededReason,
    config: ConfigOption = None,
    url: UrlOption = None,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count a tier's attempts anew, the present epoch as the first; needs scope admin.

    For an epoch that began for a reason that has nothing to do with the tier: another engine version of the
    baseline, an upgrade of Tiergate.
    """
    with asking(config, url, token, token_file) as client:
        document = client.restore_alpha(model, tier, reason=reason)
    tell(document, lambda: intervention_view(document), as_json=as_json)
