"""What `tiergate capacity prefix` and `replay` print, for a person and as JSON."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from service.capacity.prefix_gate import Judged, Window
from service.capacity.prefix_replay import Point, Replay, Split
from service.cli.capacity_views import readable, table_of


def window_document(window: Window, judged: Judged) -> dict[str, Any]:
    """The JSON of `capacity prefix`; rates and shares from 0 to 1."""
    return {
        "advice": judged.advice.value,
        "reason": judged.reason,
        "doubts": list(judged.doubts),
        "hours": window.hours,
        "prefill_tokens": window.prefill_tokens,
        "reused_tokens": window.reused_tokens,
        "rate": window.rate,
        "request_rate": window.request_rate,
        "prefill_share": window.prefill_share,
        "speed_up": window.speed_up,
        "jitter": window.jitter,
        "restarts": window.restarts,
    }


def print_judged(window: Window, judged: Judged) -> None:
    """Advice, figures, doubts."""
    console = Console(file=sys.stdout, highlight=False, soft_wrap=True)
    console.print(Text(judged.advice.value.replace("_", " "), style="bold"))
    console.print(Text(f"  {judged.reason}"))
    rate = "-" if window.rate is None else f"{window.rate:.1%}"
    told = f"{window.reused_tokens:,.0f} of {window.prefill_tokens:,.0f} reused in {window.hours:.4g} hours"
    lines = [f"tokens   {told}: {rate}"]
    if window.request_rate is not None:
        lines.append(f"requests {window.request_rate:.1%} reused something; that is not what is saved")
    if window.speed_up is not None and window.prefill_share is not None:
        lines.append(f"speed-up ~ 1 / (1 - {rate} x {window.prefill_share:.1%}) = {window.speed_up:.2f}")
    if window.jitter is not None:
        lines.append(f"jitter   {window.jitter:.1%} between readings")
    for line in lines:
        console.print(Text(f"  {line}"))
    for doubt in judged.doubts:
        console.print(Text(f"  doubt: {doubt}"))


def replay_document(found: Replay, splits: Sequence[Split], token_bytes: int | None) -> dict[str, Any]:
    """The JSON of `capacity replay`."""
    return {
        "requests": found.prompts,
        "prefill_tokens": found.tokens,
        "block_tokens": found.block,
        "distinct_blocks": found.distinct,
        "unlimited_rate": found.unlimited,
        "request_rate": found.requests_hit,
        "curve": [_point_document(found, point, token_bytes) for point in found.points],
        "knee": None if found.knee is None else _point_document(found, found.knee, token_bytes),
        "tenants": [
            {
                "tenant": each.tenant,
                "prefill_tokens": each.tokens,
                "shared_rate": each.shared,
                "own_tokens": each.blocks * found.block,
                "own_rate": each.own,
            }
            for each in splits
        ],
    }


def _point_document(found: Replay, point: Point, token_bytes: int | None) -> dict[str, Any]:
    tokens = point.blocks * found.block
    return {
        "blocks": point.blocks,
        "tokens": tokens,
        "bytes": None if token_bytes is None else tokens * token_bytes,
        "reused_tokens": point.reused,
        "rate": point.rate,
    }


def print_replay(found: Replay, splits: Sequence[Split], token_bytes: int | None) -> None:
    """The curve, its knee, and what tenants would have of pools of their own."""
    console = Console(file=sys.stdout, highlight=False, soft_wrap=True)
    knee = found.knee
    table = table_of("cache, tokens", "blocks", *(() if token_bytes is None else ("memory",)), "reused", "")
    for point in shown(found):
        tokens = point.blocks * found.block
        table.add_row(
            f"{tokens:,}",
            f"{point.blocks:,}",
            *(() if token_bytes is None else (readable(tokens * token_bytes),)),
            f"{point.rate:.1%}",
            "knee" if point is knee else "",
        )
    console.print(table)
    console.print(
        Text(
            f"{found.prompts:,} requests, {found.tokens:,} tokens of prompts. A cache that forgets nothing "
            f"reuses {found.unlimited:.1%} of tokens; {found.requests_hit:.1%} of requests reuse something."
        )
    )
    if knee is None:
        console.print(Text("Nothing is reused at any size: a prefix cache is of no use to this traffic."))
    if splits:
        split = table_of(
            "tenant", "tokens of prompts", "in the pool of all", "own pool, tokens", "in its own"
        )
        for each in splits:
            split.add_row(
                each.tenant,
                f"{each.tokens:,}",
                f"{each.shared:.1%}",
                f"{each.blocks * found.block:,}",
                f"{each.own:.1%}",
            )
        console.print(split)


def print_captured(share: float, whole: float) -> None:
    """What the replay of captured prompts leaves out."""
    console = Console(file=sys.stdout, highlight=False, soft_wrap=True)
    lines = [
        "A token is 4 bytes of text, and beginnings are compared in blocks of 64: a little less is found "
        "than is there."
    ]
    if share < 1:
        lines.append(
            f"{share:.3g} of the traffic was sampled: sizes are for all of it. {whole:.0%} of these requests "
            "name their conversation and were sampled with it; of the others each was drawn by itself, so "
            "that turns of one conversation are mostly missing, and the rate is too low."
        )
    for line in lines:
        console.print(Text(line))


def shown(found: Replay) -> list[Point]:
    """One size a doubling where another tenth of a point is reused, the last, and the knee."""
    chosen: list[Point] = []
    for point in found.points:
        grown = point.rate >= (chosen[-1].rate if chosen else 0.0) + 0.001
        doubled = not chosen or point.blocks >= 2 * chosen[-1].blocks
        if point is found.knee or point is found.points[-1] or (grown and doubled):
            chosen.append(point)
    return chosen
