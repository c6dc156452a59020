"""What `tiergate capacity` prints, for a person and as JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from service.capacity.memory import Budget, Cache
from service.capacity.precision import FP16, PRECISIONS
from service.capacity.shape import Shape

START = (
    "Computed, not measured: a starting point. An engine's log says what it got (vLLM: GPU KV cache size)."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """One cache that is asked about."""

    name: str
    cache: Cache
    budget: Budget | None
    """What it is left over from; `None` where its size is given."""


def document(
    shape: Shape, offered: Sequence[Offered], tokens: int, sequences: int, block: int
) -> dict[str, Any]:
    """The JSON of `capacity kv`; sizes in bytes."""
    return {
        "layers": shape.depth,
        "block_tokens": block,
        "token_bytes": {each.name: shape.token_bytes(each) for each in PRECISIONS},
        "naive_token_bytes": {each.name: shape.naive_token_bytes(each) for each in PRECISIONS},
        "sequence": {
            "tokens": tokens,
            "sequences": sequences,
            "bytes": {
                each.name: sequences
                * Cache(shape=shape, precision=each, memory=0, block=block).sequence_bytes(tokens)
                for each in PRECISIONS
            },
        },
        "fits": [_fit_document(each, tokens, sequences) for each in offered],
    }


def _fit_document(offered: Offered, tokens: int, sequences: int) -> dict[str, Any]:
    cache, budget = offered.cache, offered.budget
    return {
        "name": offered.name,
        "precision": cache.precision.name,
        "kv_bytes": cache.memory,
        "blocks": cache.blocks,
        "tokens": cache.tokens,
        "most_sequences": cache.concurrency(tokens),
        "longest_context": cache.context(sequences),
        "budget": None
        if budget is None
        else {
            "usable": int(budget.memory * budget.share),
            "weights": budget.weights,
            "activations": budget.activations,
            "logits": budget.logits,
            "lacking": max(0, budget.lacking),
        },
    }


def print_kv(shape: Shape, offered: Sequence[Offered], tokens: int, sequences: int, block: int) -> None:
    """What a token takes, what sequences take, and what fits."""
    console = Console(file=sys.stdout, highlight=False, soft_wrap=True)
    console.print(_taken(shape, tokens, sequences, block))
    naive = shape.naive_token_bytes(FP16)
    if naive is not None and naive != shape.token_bytes(FP16) and shape.token_bytes(FP16):
        console.print(
            Text(
                f"The naive 2 x layers x hidden size would say {naive:,} B in fp16: "
                f"{naive / shape.token_bytes(FP16):.1f} times what is kept."
            )
        )
    if not offered:
        console.print(
            Text("What fits: give --kv-memory 8GiB, or --memory 24GiB with --tier NAME:WEIGHTS:KV.")
        )
        return
    console.print(_fits(offered, tokens, sequences))
    for line in _notes(offered):
        console.print(Text(line))
    console.print(Text(START))


def _taken(shape: Shape, tokens: int, sequences: int, block: int) -> Table:
    table = table_of(
        "KV cache", "bytes a token", f"1 x {tokens:,} tokens", f"{sequences:,} x {tokens:,} tokens"
    )
    for each in PRECISIONS:
        one = Cache(shape=shape, precision=each, memory=0, block=block).sequence_bytes(tokens)
        table.add_row(each.name, f"{shape.token_bytes(each):,}", readable(one), readable(sequences * one))
    return table


def _fits(offered: Sequence[Offered], tokens: int, sequences: int) -> Table:
    table = table_of(
        *("what fits", "KV memory", "blocks", "tokens"),
        *(f"at once, of {tokens:,}", f"longest, {sequences:,} at once"),
    )
    for each in offered:
        cache = each.cache
        table.add_row(
            each.name if each.name == cache.precision.name else f"{each.name} ({cache.precision.name})",
            readable(cache.memory),
            "-" if cache.blocks is None else f"{cache.blocks:,}",
            "-" if cache.tokens is None else f"{cache.tokens:,}",
            f"{cache.concurrency(tokens):,}",
            f"{cache.context(sequences):,}",
        )
    return table


def _notes(offered: Sequence[Offered]) -> Iterator[str]:
    for each in offered:
        budget = each.budget
        if budget is None:
            continue
        parts = (
            f"weights {readable(budget.weights)} + activations {readable(budget.activations)} + logits "
            f"{readable(budget.logits)}"
        )
        usable = f"{readable(int(budget.memory * budget.share))} usable"
        if budget.lacking > 0:
            yield f"{each.name}: {parts} is {readable(budget.lacking)} more than {usable}. It does not start."
        else:
            yield f"{each.name}: {usable} - {parts} = {readable(budget.kv)} for the cache."


def readable(size: int) -> str:
    """`1.00 GiB`."""
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= scale:
            return f"{size / scale:,.2f} {unit}"
    return f"{size:,} B"


def table_of(*columns: str) -> Table:
    """The first column is names, the rest numbers."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column(columns[0], no_wrap=True)
    for column in columns[1:]:
        table.add_column(column, justify="right")
    return table
