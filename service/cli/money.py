"""`tiergate money`: what a tier would cost and save, from numbers that are given, before any load run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.configuration import JsonOption
from service.cli.quantities import count, factor, share

if TYPE_CHECKING:
    from service.decision.failure_chain import ChainStep, FailureChain

STEP_FORM = "NAME:SHARE:COST, such as 'bigger model:50%:6x', or person:2%:15 for 15 in the currency"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Docs: docs/costs.md")(money)


def money(
    price: Annotated[float, typer.Option(help="Of the baseline's backends, per hour.")] = 60.0,
    candidate_price: Annotated[
        float | None, typer.Option(help="Of the candidate's, per hour; the same when left out.")
    ] = None,
    tokens_per_second: Annotated[
        float,
        typer.Option(parser=count, metavar="COUNT", help="Of the baseline's output, within the SLO."),
    ] = 1000.0,
    throughput: Annotated[
        float,
        typer.Option(
            parser=factor, metavar="FACTOR", help="The candidate's, in multiples of the baseline's."
        ),
    ] = 2.1,
    output_tokens: Annotated[
        float, typer.Option(parser=count, metavar="COUNT", help="Of a request of the baseline, in the mean.")
    ] = 300.0,
    candidate_output_tokens: Annotated[
        float | None,
        typer.Option(parser=count, metavar="COUNT", help="Of the candidate; the same when left out."),
    ] = None,
    failures: Annotated[
        float,
        typer.Option(parser=share, metavar="SHARE", help="Requests that fail on the baseline, in any way."),
    ] = 0.008,
    candidate_failures: Annotated[
        float, typer.Option(parser=share, metavar="SHARE", help="The same on the candidate.")
    ] = 0.049,
    failure_costs: Annotated[
        float | None,
        typer.Option(
            parser=factor,
            metavar="FACTOR",
            help="k: one failure in requests of the baseline, instead of a chain of steps.",
        ),
    ] = None,
    step: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME:SHARE:COST",
            help="One thing that is done about a failure, in order; its share is of those that came to the "
            "step before. Default: --step retry:100%:1x --step 'bigger model:50%:6x', which is k = 4.",
        ),
    ] = None,
    operations: Annotated[
        float, typer.Option(help="Cost of running one more tier, per request, in the currency.")
    ] = 0.0,
    currency: Annotated[str, typer.Option(help="Of every price.")] = "CNY",
    as_json: JsonOption = False,
) -> None:
    """Tell what a tier costs, what its failures cost, and what is left.

    Twice the throughput is not half the cost: failures are tried again, some go to a bigger model, and few to
    a person. These are points, of numbers that you give. The money gate of a verdict asks for limits, from a
    load run at each tier's own best rate and from the pairs: `tiergate shadow run`.

    \b
    The example that everything began with: 2.1 times the throughput, JSON that fails 4.9 % instead of 0.8 %:
      tiergate money --price 60 --throughput 2.1x --failures 0.8% --candidate-failures 4.9%
    A card at half the price that is not faster:
      tiergate money --price 60 --candidate-price 30 --throughput 1x --failures 1% --candidate-failures 1.5%
    Failures that end at a person's desk, one in fifty of the escalated ones at 15 each:
      tiergate money --step retry:100%:1x --step "bigger model:50%:6x" --step person:2%:15
    """
    from service.cli.money_views import costing_document, print_costing
    from service.decision.costing import Costing, Offer

    if failure_costs is not None and step:
        raise typer.BadParameter("give --failure-costs or --step, not both")
    try:
        costing = Costing(
            baseline=Offer(
                price_per_hour=price,
                tokens_per_second=tokens_per_second,
                output_tokens=output_tokens,
                failures=failures,
            ),
            candidate=Offer(
                price_per_hour=price if candidate_price is None else candidate_price,
                tokens_per_second=throughput * tokens_per_second,
                output_tokens=output_tokens if candidate_output_tokens is None else candidate_output_tokens,
                failures=candidate_failures,
            ),
            failure=_chain(failure_costs, step or []),
            operations=operations,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if as_json:
        typer.echo(json.dumps(costing_document(costing, currency), indent=2, allow_nan=False))
    else:
        print_costing(costing, currency)


def _chain(weight: float | None, steps: list[str]) -> FailureChain:
    from service.decision.failure_chain import RETRY_OR_ESCALATE, FailureChain

    if weight is not None:
        return FailureChain.of_weight(weight)
    return FailureChain(steps=tuple(map(_step, steps))) if steps else RETRY_OR_ESCALATE


def _step(written: str) -> ChainStep:
    from service.decision.failure_chain import ChainStep

    parts = [part.strip() for part in written.split(":")]
    if len(parts) != 3 or not all(parts):
        raise typer.BadParameter(f"--step takes {STEP_FORM}; got {written!r}")
    name, reached, cost = parts
    if cost.endswith("x"):
        return ChainStep(name=name, share=share(reached), multiple=factor(cost))
    try:
        return ChainStep(name=name, share=share(reached), price=float(cost))
    except ValueError as error:
        raise typer.BadParameter(f"--step takes {STEP_FORM}; got {written!r} ({error})") from None
