"""`tiergate drill`: whether the instrument would notice, tried out on the user's own backends and policy."""

from __future__ import annotations

import json
import os
import time
from typing import Annotated

import typer

from service.cli.configuration import ConfigOption, fail, load_or_exit

BLIND, BROKEN = 1, 3
"""Exit statuses: something was not noticed; nothing could be tried out. 2 is a wrong configuration."""
WIDTH_WITHOUT_TERMINAL = 160


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(drill)


def drill(
    model: Annotated[
        str | None, typer.Argument(metavar="[MODEL]", help="May be left out where there is one.")
    ] = None,
    config: ConfigOption = None,
    defect: Annotated[
        list[str] | None,
        typer.Option("--defect", metavar="json|recall|refusal|all", help="What to damage; may be repeated."),
    ] = None,
    pairs: Annotated[int, typer.Option("--pairs", help="Most requests of each kind.")] = 120,
    share: Annotated[
        float, typer.Option("--share", help="Of a damaged arm's answers; less asks for more pairs.")
    ] = 0.5,
    seconds: Annotated[float, typer.Option("--seconds", help="Longest time of asking.")] = 900.0,
    seed: Annotated[int, typer.Option("--seed", help="Of requests and damage.")] = 1,
    on_serving: Annotated[
        bool,
        typer.Option(
            "--on-serving", help="Use backends that serve clients, where the baseline has no `shadow`."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The outcome as JSON on standard output.")] = False,
) -> None:
    """Fire drill: plant known damage and see whether proxy, worker, evaluators and policy notice.

    A relay before the baseline's shadow backends damages a share of the answers. Four acts, side by side:

    healthy: an undamaged candidate must not be rejected.

    damaged: a candidate with broken JSON, lost facts or refusals must be rejected, each by its own criterion.

    swapped: with baseline and candidate exchanged the difference must point the other way.

    crossed: a control at a damaged backend must raise the control alarm, and nothing may be decided.

    Everything runs in processes and stores of its own, under the policy of the configuration; production's
    evidence, routes and decisions are not touched. Ends as soon as all is seen. Exit status: 0 noticed all,
    1 blind to something or a false alarm, 2 wrong configuration, 3 not played, or not to its end (no backend
    answers, the shadow budget is spent).
    """
    settings = load_or_exit(config, make_key=False)
    from rich.console import Console

    from service.drill.configuration import SWITCHED_OFF
    from service.drill.defects import Defect
    from service.drill.plan import DrillPlan, bill
    from service.drill.report import announcement, document, progress_line, view
    from service.drill.run import DrillBroken, Outcome, run, upstream_of
    from service.launch import PortUnusable, StartFailed, ToldToStop, stop_signals
    from service.settings.nearest import nearest
    from service.store.sql.database import StoreUnusable

    if model is None and len(settings.ladders) != 1:
        raise fail(f"say which model: {', '.join(settings.ladders)}", 2)
    chosen = model or next(iter(settings.ladders))
    if chosen not in settings.ladders:
        raise fail(f"no model {chosen!r}; did you mean `{nearest(chosen, settings.ladders)}`?", 2)
    asked = defect or ["all"]
    if strangers := [each for each in asked if each not in (*Defect, "all")]:
        raise fail(f"--defect {strangers[0]}: one of {', '.join((*Defect, 'all'))}", 2)
    defects = tuple(each for each in Defect if each in asked or "all" in asked)
    try:
        plan = DrillPlan(defects=defects, pairs=pairs, seconds=seconds, share=share, seed=seed)
    except ValueError as error:
        raise fail(str(error), 2) from None
    try:
        with stop_signals() as told:
            upstream = upstream_of(settings, chosen, on_serving=on_serving)
            changes = f"Gates switched off for it: {', '.join(SWITCHED_OFF)}."
            _say(announcement(chosen, plan, upstream, bill(plan, settings.probe_of(chosen)), changes))
            drilled = run(
                settings,
                chosen,
                plan,
                upstream,
                os.environ,
                say=_say_trouble,
                show=lambda *looked: _say(progress_line(*looked)),
                hurry=told.hurry,
            )
    except ToldToStop:
        raise fail("told to stop: the drill says nothing", BROKEN) from None
    except (DrillBroken, PortUnusable, StartFailed, StoreUnusable) as error:
        raise fail(str(error), BROKEN) from None
    except OSError as error:
        raise fail(f"{error.filename or 'this machine'}: {error.strerror or error}", BROKEN) from None
    if as_json:
        typer.echo(json.dumps(document(drilled), indent=2))
    else:
        console = Console()
        (console if console.is_terminal else Console(width=WIDTH_WITHOUT_TERMINAL)).print(view(drilled))
    if drilled.outcome is not Outcome.PASS:
        raise typer.Exit(BLIND if drilled.outcome is Outcome.FAIL else BROKEN)


def _say(text: str) -> None:
    typer.echo(f"{time.strftime('%H:%M:%S')}  {text}", err=True)


def _say_trouble(text: str) -> None:
    """Leaves out the parts that start and stop as they should."""
    if not text.endswith(" is ready") and not text.startswith("stopping "):
        _say(text)
