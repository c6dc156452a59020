"""What `tiergate capacity matrix` prints, for a person and as JSON."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.text import Text

from service.capacity.matrix import row_end
from service.capacity.matrix_cells import Cell, Row, Times, usable
from service.capacity.matrix_file import Matrix
from service.cli.capacity_views import readable, table_of

NONE = "-"
LEAST_WIDTH = 120
"""Characters: a narrower terminal folds lines, where a table of its width would cut figures off."""
START = "A knee rests on two windows of its cell and of the next one, other cells on one."


def document(matrix: Matrix) -> dict[str, Any]:
    """The file's own JSON, and what each row shows."""
    return {
        **matrix.document(),
        "rows": [_row(row, matrix.of(row)) for row in matrix.rows],
    }


def _row(row: Row, cells: Sequence[Cell]) -> dict[str, Any]:
    end = row_end(cells)
    return {
        "prompt": asdict(row.prompt),
        "batch_tokens": row.batch_tokens,
        "prompt_tokens": prompt_tokens(cells),
        "knee": end.knee,
        "reason": end.reason,
        "again": list(end.again),
    }


def prompt_tokens(cells: Sequence[Cell]) -> float | None:
    """Of a row's prompts on average, as the engine counted them."""
    told = [each.prompt_tokens for each in cells if each.prompt_tokens is not None]
    return math.fsum(told) / len(told) if told else None


def print_matrix(matrix: Matrix) -> None:
    """A table for each row, its knee, and what was asked."""
    console = Console(file=sys.stdout, highlight=False, soft_wrap=True)
    console.width = max(console.width, LEAST_WIDTH)
    question = matrix.question
    console.print(Text(f"{question.model}/{question.tier}", style="bold"))
    console.print(Text(f"  {asked(matrix)}"))
    if not matrix.cells:
        console.print(Text("  No cell was measured: `tiergate capacity matrix MODEL TIER` measures some."))
        return
    for row in matrix.rows:
        cells = matrix.of(row)
        console.print(Text(heading(row, cells), style="bold"))
        console.print(_table(cells, row_end(cells).knee))
        for each in cells:
            if each.invalid:
                console.print(Text(f"  {each.concurrency} at once is not used: {'; '.join(each.invalid)}"))
        console.print(Text(f"  {knee_of(cells)}"))
    console.print(Text(START))


def asked(matrix: Matrix) -> str:
    """What all cells have in common, in a sentence."""
    told = matrix.question
    source = "made of words" if told.source == "made" else f"of the corpus {told.source}"
    return (
        f"SLO: TTFT {told.ttft_seconds * 1e3:g} ms, TPOT {told.tpot_seconds * 1e3:g} ms; prompts "
        f"{source}, answers of {told.output_tokens:,} tokens; {told.window_seconds:g} s each"
    )


def heading(row: Row, cells: Sequence[Cell]) -> str:
    """The row, and what its prompts have by the engine's count."""
    told = prompt_tokens(cells)
    return f"prompts of {row}" + ("" if told is None else f" (counted {told:,.0f})")


def knee_of(cells: Sequence[Cell]) -> str:
    """The knee with its reason, or why there is none."""
    end = row_end(cells)
    if end.knee is None:
        return end.reason
    return f"knee{', not sure' if end.again else ''}: {end.knee} at once; {end.reason}"


def sentence(cell: Cell) -> str:
    """One cell, as progress tells it."""
    if cell.invalid:
        return f"not used: {'; '.join(cell.invalid)}"
    return (
        f"TTFT P95 {milliseconds(cell.ttft)} ms, TPOT P95 {milliseconds(cell.tpot)} ms, "
        f"{cell.throughput:,.4g} tokens/s of which {cell.goodput:,.4g} count "
        f"({share(cell.pass_rate)} met the SLO)"
    )


Column = tuple[str, Callable[[Cell], str]]
"""A column: its head, and its text in each row."""
COLUMNS: tuple[Column, ...] = (
    ("at once", lambda cell: f"{cell.concurrency:,}"),
    ("TTFT P95, ms", lambda cell: milliseconds(cell.ttft)),
    ("TPOT P95, ms", lambda cell: milliseconds(cell.tpot)),
    ("met", lambda cell: share(cell.pass_rate)),
    ("tokens/s", lambda cell: f"{cell.throughput:,.1f}"),
    ("that count", lambda cell: f"{cell.goodput:,.1f}"),
    ("KV", lambda cell: share(cell.kv_usage)),
    ("waiting", lambda cell: number(cell.waiting, 1)),
    ("preempted", lambda cell: number(cell.preemptions, 0)),
    ("evicted", lambda cell: number(cell.evictions, 0)),
    ("memory", lambda cell: NONE if cell.memory is None else readable(round(cell.memory))),
)
ALWAYS = 6
"""Columns that stand there in any case; the others where an engine tells them."""


def _table(cells: Sequence[Cell], knee: int | None) -> Any:
    known = usable(cells)
    columns = [
        each
        for place, each in enumerate(COLUMNS)
        if place < ALWAYS or any(each[1](cell) != NONE for cell in known)
    ]
    table = table_of(*(head for head, _ in columns), "")
    for each in known:
        texts = [text(each) for _, text in columns]
        table.add_row(*texts, "knee" if each.concurrency == knee else "")
    return table


def milliseconds(times: Times) -> str:
    """P95 with its limits, where there are enough requests for some."""
    if times.p95 is None:
        return NONE
    if times.lower is None or times.upper is None:
        return f"{times.p95 * 1e3:,.1f}"
    return f"{times.p95 * 1e3:,.1f} [{times.lower * 1e3:,.1f}, {times.upper * 1e3:,.1f}]"


def share(told: float | None) -> str:
    """In per cent."""
    return NONE if told is None else f"{told:.0%}"


def number(told: float | None, digits: int) -> str:
    """With thousands apart."""
    return NONE if told is None else f"{told:,.{digits}f}"
