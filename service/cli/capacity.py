"""`tiergate capacity`: what fits into an engine's memory, and what its prefix cache saves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli import (
    capacity_admission,
    capacity_batch,
    capacity_compare,
    capacity_diagnosis,
    capacity_initial,
    capacity_matrix,
    capacity_prefix,
)
from service.cli.capacity_given import LAYER_FORM, TIER_FORM, budgeted, layers_of, shape_from, size
from service.cli.configuration import JsonOption

if TYPE_CHECKING:
    from service.capacity.shape import Shape
    from service.cli.capacity_views import Offered


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(
        no_args_is_help=True,
        help="What fits into an engine's memory: computed, to be measured. Docs: docs/capacity.md",
    )
    group.command(epilog="Docs: docs/capacity.md")(kv)
    capacity_prefix.register(group)
    capacity_initial.register(group)
    capacity_admission.register(group)
    capacity_batch.register(group)
    capacity_diagnosis.register(group)
    capacity_compare.register(group)
    capacity_matrix.register(group)
    group.callback()(_options)
    app.add_typer(group, name="capacity")


def _options() -> None:
    """Computed from numbers and files; `matrix` and `diagnose --live` alone ask engines."""


def kv(
    config: Annotated[
        Path | None,
        typer.Argument(
            metavar="CONFIG", help="A model's config.json, or its directory; else give the numbers."
        ),
    ] = None,
    layers: Annotated[int | None, typer.Option(min=1, help="Layers that keep a cache.")] = None,
    kv_heads: Annotated[
        int | None, typer.Option(min=1, help="Of each: not the heads, fewer with GQA, 1 with MQA.")
    ] = None,
    head_size: Annotated[int | None, typer.Option(min=1, help="Numbers of one key.")] = None,
    layer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COUNT:...",
            help=f"Instead, for layers of several kinds, each kind once: {LAYER_FORM}.",
        ),
    ] = None,
    hidden_size: Annotated[int | None, typer.Option(min=1, help="For the naive formula alone.")] = None,
    kv_memory: Annotated[
        int | None, typer.Option(parser=size, metavar="SIZE", help="Of the cache, where it is known.")
    ] = None,
    memory: Annotated[
        int | None, typer.Option(parser=size, metavar="SIZE", help="Of the card, all of it.")
    ] = None,
    tier: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME:WEIGHTS:KV", help="A tier in that memory; may be given again."),
    ] = None,
    activations: Annotated[
        int, typer.Option(parser=size, metavar="SIZE", help="Peak beside weights and cache.")
    ] = 1024**3,
    memory_share: Annotated[
        float, typer.Option(help="That the engine may take: gpu-memory-utilization.")
    ] = 0.92,
    vocabulary: Annotated[int | None, typer.Option(min=0, help="Of the logits; CONFIG tells it.")] = None,
    tokens: Annotated[int, typer.Option(min=1, help="Of one sequence, prompt and answer.")] = 4096,
    sequences: Annotated[int, typer.Option(min=1, help="At once.")] = 16,
    block: Annotated[int, typer.Option(min=1, help="Tokens of a block, the engine's own.")] = 16,
    as_json: JsonOption = False,
) -> None:
    """Tell what a token takes of the KV cache, and how many tokens and sequences fit.

    Bytes of a token = 2 x layers x KV heads x head size x bytes of a number. Latent attention, windows and
    recurrent layers are read from CONFIG. 2 x layers x hidden size, which is found in many places, is right
    only where there are as many KV heads as heads; it is shown beside it.

    Exit status: 0 computed, 2 wrong command line or a configuration that is not understood.

    \b
    What is kept of a token, at four precisions:
      tiergate capacity kv ./Qwen3-32B/config.json
    What 1 GiB holds of a model of 30 layers, 3 KV heads of 64, in an engine with blocks of 128:
      tiergate capacity kv --layers 30 --kv-heads 3 --head-size 64 --kv-memory 1GiB --block 128
    What a model keeps of which 52 layers look back 1,024 tokens and 10 at all:
      tiergate capacity kv --layer 52:16:128:1024 --layer 10:16:128
    Two tiers on a card of 24 GiB, prompts and answers of 8,192 tokens, 32 at once:
      tiergate capacity kv config.json --memory 24GiB --tier bf16:15.3GiB:bf16 \\
        --tier w4a16:5.7GiB:fp8 --tokens 8192 --sequences 32
    """
    from service.cli.capacity_views import document, print_kv

    shape = _shape(config, layers, kv_heads, head_size, layer or [], hidden_size)
    try:
        offered = _offered(
            shape,
            kv_memory=kv_memory,
            memory=memory,
            tiers=tier or [],
            activations=activations,
            share=memory_share,
            vocabulary=shape.vocabulary if vocabulary is None else vocabulary,
            sequences=sequences,
            block=block,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if as_json:
        typer.echo(json.dumps(document(shape, offered, tokens, sequences, block), indent=2, allow_nan=False))
    else:
        print_kv(shape, offered, tokens, sequences, block)


def _shape(
    config: Path | None,
    layers: int | None,
    kv_heads: int | None,
    head_size: int | None,
    kinds: list[str],
    hidden: int | None,
) -> Shape:
    from service.capacity.shape import Attention, Shape

    given = (layers, kv_heads, head_size, *kinds)
    if config is None and kinds:
        if any(each is not None for each in (layers, kv_heads, head_size)):
            raise typer.BadParameter("give --layer for each kind, or --layers, --kv-heads and --head-size")
        try:
            return Shape(layers=tuple(map(layers_of, kinds)), hidden_size=hidden)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
    if config is None:
        if layers is None or kv_heads is None or head_size is None:
            raise typer.BadParameter("give CONFIG, or all of --layers, --kv-heads and --head-size")
        layer = Attention(kv_heads=kv_heads, head_size=head_size)
        return Shape(layers=((layers, layer),), hidden_size=hidden)
    if any(each is not None for each in (*given, hidden)):
        raise typer.BadParameter("give CONFIG or the numbers, not both")
    return shape_from(config, "kv")


def _offered(
    shape: Shape,
    *,
    kv_memory: int | None,
    memory: int | None,
    tiers: list[str],
    activations: int,
    share: float,
    vocabulary: int | None,
    sequences: int,
    block: int,
) -> list[Offered]:
    """Caches that are asked about: each tier's, or one of each precision where the cache's size is given."""
    from service.capacity.memory import Cache
    from service.capacity.precision import PRECISIONS
    from service.cli.capacity_views import Offered

    if kv_memory is not None and (memory is not None or tiers):
        raise ValueError("give --kv-memory, or --memory and --tier, not both")
    if kv_memory is not None:
        caches = [Cache(shape=shape, precision=each, memory=kv_memory, block=block) for each in PRECISIONS]
        return [Offered(name=cache.precision.name, cache=cache, budget=None) for cache in caches]
    if (memory is None) != (not tiers):
        raise ValueError(f"--memory and --tier go together; --tier takes {TIER_FORM}")
    found = []
    for written in tiers:
        name, _, budget, cache = budgeted(
            shape,
            written,
            memory=memory or 0,
            share=share,
            activations=activations,
            sequences=sequences,
            vocabulary=vocabulary,
            block=block,
        )
        found.append(Offered(name=name, cache=cache, budget=budget))
    return found
