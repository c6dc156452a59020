"""What needs no server: `stats` judges counts from anywhere, `plan` tells how many pairs and days to expect.

The arithmetic is `service.decision`; here it is only asked for and shown.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from service.cli.configuration import JsonOption
from service.cli.offline_views import look_document, plan_document, print_look, print_plan
from service.cli.quantities import count, points, share, signed_points

AlphaOption = Annotated[
    float,
    typer.Option(parser=share, metavar="SHARE", help="Error rate of a wrong pass, and of a wrong alarm."),
]
MarginOption = Annotated[
    float,
    typer.Option(
        parser=points, metavar="POINTS", help="Largest tolerable rise of the failure rate: 1pp, or 0.01."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(epilog="Docs: docs/statistics.md")(stats)
    app.command(epilog="Docs: docs/statistics.md")(plan)


def stats(
    n: Annotated[
        int, typer.Option("--n", help="Pairs: requests that both arms answered and that were scored.")
    ],
    harm: Annotated[int, typer.Option(help="Pairs in which only the candidate failed.")],
    benefit: Annotated[int, typer.Option(help="Pairs in which only the baseline failed.")],
    margin: MarginOption = 0.01,
    alpha: AlphaOption = 0.05,
    as_json: JsonOption = False,
) -> None:
    """Judge one paired table: is the candidate at most MARGIN worse than the baseline?

    The e-values decide. They stay valid however often you look, so you may run this after every pair.
    Tango's and the exact p are right for one look fixed in advance; they are shown and never decide.
    Pairs are taken to be independent: one request of each conversation.

    \b
    No discordant pair among 481 is the least that passes at one point:
      tiergate stats --n 481 --harm 0 --benefit 0 --margin 1pp
    12 new failures against 10 cured ones is not evidence of anything yet:
      tiergate stats --n 1000 --harm 12 --benefit 10 --margin 1pp
    JSON failures rising from 0.8 % to 4.9 % are:
      tiergate stats --n 1000 --harm 45 --benefit 4 --json | jq -r .decision
    """
    from service.decision.look import look

    try:
        seen = look(n=n, harm=harm, benefit=benefit, margin=margin, alpha=alpha)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if as_json:
        _print_json(look_document(seen))
    else:
        print_look(seen)


def plan(
    margin: MarginOption = 0.01,
    discordance: Annotated[
        float,
        typer.Option(
            parser=share, metavar="SHARE", help="Expected share of pairs in which exactly one arm fails."
        ),
    ] = 0.02,
    difference: Annotated[
        float,
        typer.Option(
            parser=signed_points, metavar="POINTS", help="True rise of the failure rate you want to get past."
        ),
    ] = 0.0,
    power: Annotated[
        float,
        typer.Option(
            parser=share, metavar="SHARE", help="Chance of acceptance to plan for, over all criteria."
        ),
    ] = 0.9,
    alpha: AlphaOption = 0.05,
    attempt: Annotated[
        int | None,
        typer.Option(help="Plan at the share of alpha that the J-th submission of a tier gets.", metavar="J"),
    ] = None,
    criteria: Annotated[int, typer.Option(help="Criteria like this one that must all pass.")] = 1,
    design_effect: Annotated[
        float, typer.Option(help="How many times more pairs conversations need than independent pairs.")
    ] = 1.0,
    requests_per_day: Annotated[
        float | None,
        typer.Option(parser=count, metavar="COUNT", help="Traffic of the model, such as 200k; prints days."),
    ] = None,
    sample: Annotated[
        float, typer.Option(parser=share, metavar="SHARE", help="Share of the requests that is mirrored.")
    ] = 1.0,
    applies: Annotated[
        float,
        typer.Option(
            parser=share,
            metavar="SHARE",
            help="Share of the mirrored requests that the criterion applies to.",
        ),
    ] = 1.0,
    seed: Annotated[int, typer.Option(help="Seed of the simulation: same seed, same numbers.")] = 1,
    as_json: JsonOption = False,
) -> None:
    """Tell how many pairs, and days, a tier will take to be accepted.

    The fixed sample is a formula: one look, no peeking. The e-process, which decides here and lets you look
    at every pair, is simulated: 2,000 epochs of independent pairs, seeded. It often stops earlier than the
    fixed sample and sometimes much later, so plan with its quantile.

    \b
    One point of margin, 2 % discordant pairs, three criteria, 5 % of 200,000 requests a day:
      tiergate plan --criteria 3 --requests-per-day 200k --sample 5%
    A tier that is really 0.3 points worse:
      tiergate plan --difference 0.3pp
    What the default policy holds a first submission to:
      tiergate plan --attempt 1
    """
    from service.decision.plan import Scenario
    from service.decision.plan import plan as make_plan

    try:
        scenario = Scenario(
            margin=margin,
            discordance=discordance,
            difference=difference,
            power=power,
            alpha=alpha,
            attempt=attempt,
            criteria=criteria,
            design_effect=design_effect,
            requests_per_day=requests_per_day,
            sample=sample,
            applies=applies,
        )
        made = make_plan(scenario, seed=seed)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if as_json:
        _print_json(plan_document(scenario, made))
    else:
        print_plan(scenario, made)


def _print_json(document: dict[str, Any]) -> None:
    typer.echo(json.dumps(document, indent=2, allow_nan=False))
