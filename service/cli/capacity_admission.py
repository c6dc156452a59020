"""`tiergate capacity admission`: what the proxy should let in, as its configuration."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.capacity_given import budgeted, shape_from, size
from service.cli.configuration import JsonOption, fail
from service.cli.quantities import duration
from service.cli.writing import write

if TYPE_CHECKING:
    from service.capacity.admission import Rule

WRONG = 2
START = "Computed, not measured: where to begin. `tiergate shadow run` tells what a backend bears."


def register(group: typer.Typer) -> None:
    """Add the command to its group."""
    group.command(epilog="Docs: docs/capacity.md")(admission)


def admission(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="A model's config.json, or its directory.")
    ],
    memory: Annotated[int, typer.Option(parser=size, metavar="SIZE", help="Of the card, all of it.")],
    tier: Annotated[str, typer.Option(metavar="NAME:WEIGHTS:KV", help="The tier that serves.")],
    prompt: Annotated[int, typer.Option(min=1, help="Tokens of the longest prompt.")],
    answer: Annotated[int, typer.Option(min=1, help="Tokens of the longest answer.")],
    typical: Annotated[int, typer.Option(min=1, help="Prompt and answer of one in the middle.")],
    backends: Annotated[int, typer.Option(min=1, help="Of the tier, each on such a card.")] = 1,
    below: Annotated[
        str | None,
        typer.Option(metavar="NAME:WEIGHTS:KV", help="The next rung below, on such cards, to take overflow."),
    ] = None,
    below_backends: Annotated[int, typer.Option(min=1, help="Of the rung below.")] = 1,
    sequences: Annotated[int, typer.Option(min=1, help="The engine's max-num-seqs.")] = 256,
    takes: Annotated[
        float | None,
        typer.Option(
            parser=duration, metavar="DURATION", help="Of a typical request at that concurrency, measured."
        ),
    ] = None,
    ttft: Annotated[
        float | None,
        typer.Option(parser=duration, metavar="DURATION", help="The SLO of the first token."),
    ] = None,
    activations: Annotated[
        int, typer.Option(parser=size, metavar="SIZE", help="Peak beside weights and cache.")
    ] = 1024**3,
    memory_share: Annotated[float, typer.Option(help="That the engine may take.")] = 0.92,
    model: Annotated[str, typer.Option(help="The name that clients send.")] = "my-model",
    into: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A tiergate.yaml to put the limits into.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write it; may be the same file."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compute a model's limits from the memory of its backends, and write them as the proxy's configuration.

    How many requests are at work at once, how many may wait and for how long, how long prompts and answers
    may be, the use of the KV cache from which new prompts wait, who of those that wait goes first, and
    whether a rung below takes what finds the tier full: each with its reason as a comment. With --into every
    other line of that configuration stays as it is; the outcome is checked before it is written.

    Exit status: 0 computed, 1 not even one longest request fits, or the file cannot be changed safely, 2 a
    wrong command line or model configuration.

    \b
    Two cards of 24 GiB, an 8B model in 4 bits, a TTFT of 1.5 s, requests that take 9 s:
      tiergate capacity admission ./Qwen3-8B --memory 24GiB --tier w4a16:5.7GiB:fp8 --prompt 12000 \\
        --answer 2048 --typical 3000 --backends 2 --takes 9s --ttft 1500ms
    The same, where one card of the rung below takes what is too much:
      ... --below bf16:15.3GiB:bf16
    The same, into a configuration that is there:
      ... --model qwen3-8b --into tiergate.yaml -o tiergate.yaml
    """
    from service.capacity.admission import Below, Expected
    from service.capacity.admission import admission as computed
    from service.capacity.initial import NothingFits

    shape = shape_from(config, "admission")
    if as_json and (into is not None or output is not None):
        raise typer.BadParameter("--json prints what is computed; it goes with neither --into nor --output")
    if below is None and below_backends != 1:
        raise typer.BadParameter("--below-backends are those of --below: give both")
    left_by = partial(
        budgeted,
        shape,
        memory=memory,
        share=memory_share,
        activations=activations,
        sequences=sequences,
        vocabulary=shape.vocabulary,
        block=16,
    )
    try:
        _, _, budget, cache = left_by(tier)
        relief = None
        if below is not None:
            name, _, under, rest = left_by(below, option="--below")
            relief = Below(name=name, budget=under, cache=rest, backends=below_backends)
        expected = Expected(
            longest_prompt=prompt,
            longest_answer=answer,
            typical=typical,
            backends=backends,
            seconds=takes,
            ttft_seconds=ttft,
        )
        rules = computed(budget, cache, expected, relief)
    except NothingFits as error:
        raise fail(f"tiergate capacity admission: {error}", 1) from None
    except ValueError as error:
        raise typer.BadParameter(f"{error}") from None
    if as_json:
        document = {"model": model, "starting_point": True, "rules": [asdict(each) for each in rules]}
        typer.echo(json.dumps(document, indent=2))
        return
    text = _written(rules, model, into)
    if output is None:
        typer.echo(text, nl=False)
    else:
        # Whole or not at all: a proxy may be told to read it again at any moment.
        write(output, text, status=WRONG)
        typer.echo(f"written: {output}", err=True)
    typer.echo(START, err=True)


def _written(rules: tuple[Rule, ...], model: str, into: Path | None) -> str:
    """The limits alone, or the configuration with them."""
    from service.settings.limits_in_file import CannotEdit, Line, limits_of, with_limits

    lines = [Line(key=each.name, value=each.value, comment=each.reason) for each in rules]
    if into is None:
        return limits_of(model, lines)
    try:
        return with_limits(into.read_text(encoding="utf-8"), model, lines)
    except OSError as error:
        raise fail(f"tiergate capacity admission: cannot read {into}: {error.strerror}", WRONG) from None
    except UnicodeDecodeError:
        raise fail(f"tiergate capacity admission: {into} is not UTF-8", WRONG) from None
    except CannotEdit as error:
        raise fail(f"tiergate capacity admission: {into}: {error}", 1) from None
