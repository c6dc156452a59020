"""The API's questions as commands: from `ladder` and `verdict` to `approve`, `rollback` and `ledger`.

Exit status: 0 done, 3 the API refused or is not reached; `verdict` answers 0 accept, 1 reject, 2 undecided.
Usage errors exit with 2, of `verdict` with 3, since 2 is an answer there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group

from service.cli.asking import (
    AnswerCommand,
    ForceOption,
    JsonOption,
    ModelArgument,
    NeededReason,
    ReasonOption,
    TierArgument,
    asks,
    tell,
)
from service.client.epochs import epochs_view
from service.client.listings import decisions_view, evidence_view, ledger_view
from service.client.reasons import why_view
from service.client.tables import ladder_view, route_change_view, verdict_view
from service.decision.verdict import Decision

if TYPE_CHECKING:
    from service.client.connection import TiergateClient

VERDICT_EXIT = {Decision.ACCEPT: 0, Decision.REJECT: 1, Decision.UNDECIDED: 2}


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(ladder)
    app.command(cls=AnswerCommand)(verdict)
    for command in (evidence, epochs, approve, revoke, reject, rollback, decisions, ledger):
        app.command()(command)


@asks
def ladder(
    client: TiergateClient,
    model: Annotated[str | None, typer.Argument(metavar="MODEL", help="All models when left out.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show a model's tiers, their states, and who serves."""
    names = [model] if model is not None else [each["model"] for each in client.models()["models"]]
    readings = [client.ladder(name) for name in names]
    documents = [dict(reading.document) for reading in readings]
    tell(
        documents[0] if model is not None else {"ladders": documents},
        lambda: Group(*map(ladder_view, readings)),
        as_json=as_json,
    )


@asks
def verdict(
    client: TiergateClient,
    model: ModelArgument,
    tier: TierArgument,
    why: Annotated[bool, typer.Option("--why", help="The chain from counts to decision.")] = False,
    pairs: Annotated[int, typer.Option(min=1, max=50, help="With --why: examples of each criterion.")] = 5,
    as_json: JsonOption = False,
) -> None:
    """Show what the evidence amounts to. Exit status 0 accept, 1 reject, 2 undecided, 3 no answer.

    With --why, the whole chain from counts to decision: each step in a sentence, with the numbers from which
    the next one follows; the pairs that speak most against the tier, with their labels and reasons (prompts
    are not kept); and commands that give the same numbers again.

    \b
    In a pipeline:
      tiergate verdict qwen3-32b w8a8 || exit 1
    For a review:
      tiergate verdict qwen3-32b w8a8 --why
      tiergate verdict qwen3-32b w8a8 --why --json | jq -r '.steps[].sentence'
    """
    if why:
        document = client.why(model, tier, pairs=pairs)
        decision = Decision(document["decision"])
        tell(document, lambda: why_view(document), as_json=as_json)
    else:
        reading = client.verdict(model, tier)
        decision = reading.verdict.decision
        tell(reading.document, lambda: verdict_view(reading), as_json=as_json)
    raise typer.Exit(VERDICT_EXIT[decision])


@asks
def evidence(
    client: TiergateClient,
    model: ModelArgument,
    tier: TierArgument,
    pairs: Annotated[int, typer.Option(min=0, max=200, help="How many single pairs to show.")] = 20,
    all_pairs: Annotated[bool, typer.Option("--all", help="Not only pairs whose arms differ.")] = False,
    evaluator: Annotated[
        str | None,
        typer.Option("--evaluator", help="Pairs of this one, or of `any`; of those that decide by default."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a verdict rests on: tallies, the control, coverage, strata, tenants, the latest pairs.

    Strata stand worst first, with the e-value of harm in each; tenants by how much the acceptance rests on
    them: `does not pass` says that without this one there would not be enough.

    \b
    The pairs in which a field of structured answers differs:
      tiergate evidence qwen3-32b w8a8 --evaluator field_agreement
    """
    document = client.evidence(model, tier, pairs=pairs, discordant=not all_pairs, evaluator=evaluator)
    tell(document, lambda: evidence_view(document), as_json=as_json)


@asks
def epochs(
    client: TiergateClient,
    model: ModelArgument,
    tier: TierArgument,
    as_json: JsonOption = False,
) -> None:
    """Show what a tier's evidence belonged to over time, and what began each epoch."""
    document = client.epochs(model, tier)
    tell(document, lambda: epochs_view(document), as_json=as_json)


@asks
def approve(
    client: TiergateClient,
    model: ModelArgument,
    tier: TierArgument,
    artifact: Annotated[
        str | None, typer.Option("--artifact", help="sha256 of what will be rolled out.")
    ] = None,
    expires_in: Annotated[
        str | None,
        typer.Option("--expires-in", help="How long it lasts, such as 12h or 30d; a bare number is seconds."),
    ] = None,
    override: Annotated[
        bool, typer.Option("--override", help="Whatever the verdict says; needs --reason and scope admin.")
    ] = False,
    reason: ReasonOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let a tier serve; refused with the reasons unless its verdict is accept.

    \b
      tiergate approve qwen3-32b w8a8
      tiergate approve qwen3-32b w8a8 --expires-in 30d --reason "load run of Monday"
    """
    lasts = int(expires_in) if expires_in is not None and expires_in.isdecimal() else expires_in
    change = client.approve(
        model, tier, artifact=artifact, expires_in=lasts, override=override, reason=reason
    )
    tell(change.document, lambda: route_change_view(change), as_json=as_json)


@asks
def revoke(
    client: TiergateClient,
    model: ModelArgument,
    tier: TierArgument,
    reason: ReasonOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Take an approval back; if the tier serves, the next lower approved one takes over."""
    change = client.revoke(model, tier, reason=reason, force=force)
    tell(change.document, lambda: route_change_view(change), as_json=as_json)


@asks
def reject(
    client: TiergateClient,
    model: ModelArgument,
    tier: TierArgument,
    reason: NeededReason,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Keep a tier out of service whatever its verdict says, until its epoch changes or an admin overrides it.

    Its approval is taken back; if the tier serves, the next lower approved one takes over.
    """
    change = client.reject(model, tier, reason=reason, force=force)
    tell(change.document, lambda: route_change_view(change), as_json=as_json)


@asks
def rollback(
    client: TiergateClient,
    model: ModelArgument,
    to: Annotated[
        str | None, typer.Option("--to", help="A lower tier; the next approved one when left out.")
    ] = None,
    reason: ReasonOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Route a model to a lower rung at once; never needs evidence.

    \b
    To the next lower tier that is approved, or to the baseline:
      tiergate rollback qwen3-32b
    To the baseline, though its backends seem to be down:
      tiergate rollback qwen3-32b --to bf16 --force
    """
    change = client.roll_back(model, to=to, reason=reason, force=force)
    tell(change.document, lambda: route_change_view(change), as_json=as_json)


@asks
def decisions(
    client: TiergateClient,
    model: ModelArgument,
    after: Annotated[int, typer.Option(min=0, help="Sequence number to read on from.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Rows at most.")] = 100,
    as_json: JsonOption = False,
) -> None:
    """Show who decided what and when, and whether the log's chain is intact."""
    document = client.decisions(model, after=after, limit=limit)
    tell(document, lambda: decisions_view(document), as_json=as_json)


@asks
def ledger(
    client: TiergateClient,
    model: Annotated[str | None, typer.Argument(metavar="MODEL", help="All models when left out.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the account of every request, and whether it adds up."""
    document = client.ledger(model)
    tell(document, lambda: ledger_view(document), as_json=as_json)
