"""`tiergate capacity serve`: a first `vllm serve` line from a budget."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.capacity_given import budgeted, shape_from, size
from service.cli.configuration import JsonOption, fail

if TYPE_CHECKING:
    from service.capacity.initial import Lengths


def register(group: typer.Typer) -> None:
    """Add the command to its group."""
    group.command(epilog="Docs: docs/capacity.md")(serve)


def serve(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="A model's config.json, or its directory.")
    ],
    memory: Annotated[int, typer.Option(parser=size, metavar="SIZE", help="Of the card, all of it.")],
    tier: Annotated[str, typer.Option(metavar="NAME:WEIGHTS:KV", help="The tier; KV as vLLM names it.")],
    longest: Annotated[
        int | None, typer.Option(min=1, help="Prompt and answer of the longest request.")
    ] = None,
    typical: Annotated[
        int | None, typer.Option(min=1, help="Prompt and answer of one in the middle.")
    ] = None,
    prompt: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Instead of both: tokens of a class of prompts; give it for each class."),
    ] = None,
    answer: Annotated[
        int | None, typer.Option(min=1, help="Tokens of the longest answer to such a prompt.")
    ] = None,
    sequences: Annotated[int, typer.Option(min=1, help="The most at once that you will have.")] = 256,
    activations: Annotated[
        int, typer.Option(parser=size, metavar="SIZE", help="Peak beside weights and cache.")
    ] = 1024**3,
    memory_share: Annotated[float, typer.Option(help="That the engine may take.")] = 0.92,
    model: Annotated[str, typer.Option(help="As `vllm serve` is to name it.")] = "MODEL",
    as_json: JsonOption = False,
) -> None:
    """Print a first `vllm serve` line, and the same for Transformers, each value with its reason.

    It is where to begin measuring, not where to end: `tiergate shadow run` finds the best rate; one option
    is changed at a time. The block size stays the engine's own until the waste in last blocks is measured.

    Exit status: 0 printed, 1 not even one longest request fits, 2 wrong command line or configuration.

    Of classes of prompts the longest, and the one in the middle, with an answer each, are what must fit.

    \b
    An 8B model in 4 bits on 24 GiB, requests of 3,000 tokens in the middle and 16,384 at most:
      tiergate capacity serve ./Qwen3-8B --memory 24GiB --tier w4a16:5.7GiB:fp8 --longest 16384 --typical 3000
    The same for the classes of a workload matrix:
      tiergate capacity serve ./Qwen3-8B --memory 24GiB --tier w4a16:5.7GiB:fp8 --prompt 512 --prompt 2048 \\
        --prompt 8192 --answer 512
    """
    from service.capacity.initial import BLOCK_REASON, NothingFits, initial, initial_transformers
    from service.capacity.precision import vllm_name_of

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
        lengths = _lengths(longest, typical, prompt or [], answer)
        vllm = initial(budget, cache, lengths, kv_name=vllm_name_of(kv_name))
    except NothingFits as error:
        raise fail(f"tiergate capacity serve: {error}", 1) from None
    except ValueError as error:
        raise typer.BadParameter(f"{error}") from None
    unfit = ""
    try:
        transformers = initial_transformers(budget, cache, lengths)
    except NothingFits as error:
        transformers, unfit = (), str(error)
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
        typer.echo(f"Transformers, whose cache has 16 bits: {unfit}")
        return
    fields = ", ".join(f"{each.option}={each.value}" for each in transformers)
    typer.echo(f"ContinuousBatchingConfig({fields})")
    for each in transformers:
        typer.echo(f"  {each.option}: {each.reason}")


def _lengths(longest: int | None, typical: int | None, prompts: list[int], answer: int | None) -> Lengths:
    from service.capacity.initial import Lengths, lengths_of

    if prompts and answer is not None and longest is None and typical is None:
        return lengths_of(prompts, answer=answer)
    if prompts or answer is not None or longest is None or typical is None:
        raise ValueError("give --longest and --typical, or --prompt for each class and --answer")
    return Lengths(longest=longest, typical=typical)
