"""`tiergate capacity serve`: a first `vllm serve` line from a budget."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from service.cli.capacity_given import budgeted, shape_from, size
from service.cli.configuration import fail


def register(group: typer.Typer) -> None:
    """Add the command to its group."""
    group.command(epilog="Docs: docs/capacity.md")(serve)


def serve(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="A model's config.json, or its directory.")
    ],
    memory: Annotated[int, typer.Option(parser=size, metavar="SIZE", help="Of the card, all of it.")],
    tier: Annotated[str, typer.Option(metavar="NAME:WEIGHTS:KV", help="The tier; KV as vLLM names it.")],
    longest: Annotated[int, typer.Option(min=1, help="Prompt and answer of the longest request.")],
    typical: Annotated[int, typer.Option(min=1, help="Prompt and answer of one in the middle.")],
    sequences: Annotated[int, typer.Option(min=1, help="The most at once that you will have.")] = 256,
    activations: Annotated[
        int, typer.Option(parser=size, metavar="SIZE", help="Peak beside weights and cache.")
    ] = 1024**3,
    memory_share: Annotated[float, typer.Option(help="That the engine may take.")] = 0.92,
    model: Annotated[str, typer.Option(help="As `vllm serve` is to name it.")] = "MODEL",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON with stable keys.")] = False,
) -> None:
    """Print a first `vllm serve` line, and the same for Transformers, each value with its reason.

    It is where to begin measuring, not where to end: `tiergate shadow run` finds the best rate; one option
    is changed at a time. The block size stays the engine's own until the waste in last blocks is measured.

    Exit status: 0 printed, 1 not even one longest request fits, 2 wrong command line or configuration.

    \b
    An 8B model in 4 bits on 24 GiB, requests of 3,000 tokens in the middle and 16,384 at most:
      tiergate capacity serve ./Qwen3-8B --memory 24GiB --tier w4a16:5.7GiB:fp8 --longest 16384 --typical 3000
    """
    from service.capacity.initial import BLOCK_REASON, Lengths, NothingFits, initial, initial_transformers

    shape = shape_from(config, "serve")
    try:
        name, kv_name, budget, cache = budgeted(
            shape,
            tier,
            memory=memory,
            share=memory_share,
            activations=activations,
            sequences=sequences,
            vocabulary=shape.vocabulary,
            block=16,
        )
        lengths = Lengths(longest=longest, typical=typical)
        asked = "auto" if cache.precision.name == "fp16" else kv_name
        vllm = initial(budget, cache, lengths, kv_name=asked)
    except NothingFits as error:
        raise fail(f"tiergate capacity serve: {error}", 1) from None
    except ValueError as error:
        raise typer.BadParameter(f"{error}") from None
    try:
        transformers = initial_transformers(budget, cache, lengths)
    except NothingFits:
        transformers = ()
    line = f"vllm serve {shlex.quote(model)} {' '.join(map(str, vllm))}"
    if as_json:
        document = {
            "tier": name,
            "starting_point": True,
            "command": line,
            "vllm": [asdict(each) for each in vllm],
            "transformers": [asdict(each) for each in transformers],
        }
        typer.echo(json.dumps(document, indent=2))
        return
    typer.echo(f"# {name}: computed, not measured. Where to begin.")
    typer.echo(line)
    for each in vllm:
        typer.echo(f"  {each}: {each.reason}")
    typer.echo(f"  {BLOCK_REASON}")
    if not transformers:
        typer.echo("Transformers: its cache has 16 bits, and the longest request does not fit")
        return
    fields = ", ".join(f"{each.option}={each.value}" for each in transformers)
    typer.echo(f"ContinuousBatchingConfig({fields})")
    for each in transformers:
        typer.echo(f"  {each.option}: {each.reason}")
