"""A workload matrix as one page with heat maps: lengths down, requests at once across."""

from __future__ import annotations

import math
from collections.abc import Callable

from service.capacity.matrix_cells import Cell, Row, usable
from service.capacity.matrix_file import Matrix
from service.charts.chart import chart
from service.charts.heat import Cell as Shaded
from service.charts.heat import heat
from service.cli.capacity_matrix_views import (
    NONE,
    START,
    asked,
    heading,
    knee_of,
    milliseconds,
    number,
    share,
)
from service.cli.capacity_views import readable
from service.report.blocks import Block, Bullets, Drawing, Page, Paragraph, Section, Table, TableRow
from service.report.html import html

FULL = 2.0
"""Times the limit, as a power of 2, at which a cell has the darkest shade."""
NUMBERS = "The numbers of this chart"
HEAD = (
    *("at once", "TTFT P95", "TPOT P95", "met the SLO", "tokens/s", "that count", "KV cache", "waiting"),
    *("preempted", "evicted, tokens", "reused", "memory"),
)

Read = Callable[[Cell], tuple[str, float]]
"""The text of a cell, and how much it speaks of harm, -1 to 1."""


def written(matrix: Matrix) -> str:
    """The whole HTML file; it needs nothing else."""
    return html(page(matrix))


def page(matrix: Matrix) -> Page:
    """Three heat maps, the knees, and every number."""
    question = matrix.question
    return Page(
        language="en",
        title=f"Workload matrix: {question.model} / {question.tier}",
        facts=(
            ("Tier", f"{question.model} / {question.tier}"),
            ("Asked", asked(matrix)),
            ("Cells", f"{len(matrix.cells):,}"),
        ),
        badges=(),
        conclusion_title="Knees",
        conclusion=_conclusion(matrix),
        contents_title="Contents",
        sections=(_maps(matrix), *_tables(matrix)),
        footer="Made by Tiergate. " + START,
    )


def _conclusion(matrix: Matrix) -> str:
    if not matrix.cells:
        return "No cell was measured."
    return " ".join(f"Prompts of {row}: {knee_of(matrix.of(row))}." for row in matrix.rows)


def _maps(matrix: Matrix) -> Section:
    question = matrix.question
    blocks: list[Block] = [
        Paragraph(
            text="Blue keeps the limit or is near the best, red misses it or is far from it. Cells that "
            "were left out, since a row was past its knee, are a dash."
        ),
        _map(
            matrix,
            "ttft",
            f"P95 of TTFT by requests at once, limit {question.ttft_seconds * 1e3:g} ms",
            _late("ttft", question.ttft_seconds),
        ),
        _map(
            matrix,
            "tpot",
            f"P95 of TPOT by requests at once, limit {question.tpot_seconds * 1e3:g} ms",
            _late("tpot", question.tpot_seconds),
        ),
        _map(matrix, "goodput", "Tokens a second that met the SLO, by requests at once", _counted(matrix)),
    ]
    return Section(anchor="maps", title="Heat maps", blocks=tuple(blocks))


def _late(name: str, limit: float) -> Read:
    def read(cell: Cell) -> tuple[str, float]:
        p95 = (cell.ttft if name == "ttft" else cell.tpot).p95
        if p95 is None:
            return "failed", 1.0
        return f"{p95 * 1e3:,.0f} ms", max(-1.0, min(1.0, math.log2(max(p95, 1e-9) / limit) / FULL))

    return read


def _counted(matrix: Matrix) -> Read:
    known = [cell for row in matrix.rows for cell in usable(matrix.of(row))]
    best = max((each.goodput for each in known), default=0.0)

    def read(cell: Cell) -> tuple[str, float]:
        return f"{cell.goodput:,.0f}/s", 1.0 - 2.0 * cell.goodput / best if best else 1.0

    return read


def _map(matrix: Matrix, name: str, title: str, read: Read) -> Drawing:
    counts = sorted({each.concurrency for each in matrix.cells})
    rows: list[tuple[str, list[Shaded | None]]] = []
    numbers: list[tuple[str, ...]] = []
    for row in matrix.rows:
        known = {each.concurrency: each for each in usable(matrix.of(row))}
        shaded: list[Shaded | None] = []
        for count in counts:
            if (cell := known.get(count)) is None:
                shaded.append(None)
                continue
            text, harm = read(cell)
            shaded.append(Shaded(text=text, share=harm, tip=f"{row}, {count} at once: {text}"))
        rows.append((str(row), shaded))
        numbers.append((str(row), *(NONE if each is None else each.text for each in shaded)))
    return Drawing(
        chart=chart(
            heat(rows, [f"{count:,}" for count in counts], nothing="no cell was measured"),
            name=f"matrix-{name}",
            title=title,
            text="; ".join(
                f"{label}: "
                + ", ".join(
                    f"{count} at once {text}"
                    for count, text in zip(counts, texts, strict=True)
                    if text != NONE
                )
                for label, *texts in numbers
            )
            or "no cell was measured",
            head=("prompts", *(f"{count:,} at once" for count in counts)),
            rows=numbers,
        ),
        numbers_title=NUMBERS,
    )


def _tables(matrix: Matrix) -> tuple[Section, ...]:
    return tuple(_table(matrix, row, place) for place, row in enumerate(matrix.rows))


def _table(matrix: Matrix, row: Row, place: int) -> Section:
    cells = matrix.of(row)
    blocks: list[Block] = [
        Paragraph(text=f"{knee_of(cells)}."),
        Table(
            caption=heading(row, cells),
            head=HEAD,
            rows=tuple(TableRow(cells=_numbers(each)) for each in usable(cells)),
        ),
    ]
    if left_out := [each for each in cells if each.invalid]:
        blocks.append(
            Bullets(
                items=tuple(f"{each.concurrency} at once: {'; '.join(each.invalid)}" for each in left_out)
            )
        )
    return Section(anchor=f"row-{place}", title=f"Prompts of {row}", blocks=tuple(blocks))


def _numbers(cell: Cell) -> tuple[str, ...]:
    return (
        f"{cell.concurrency:,}",
        f"{milliseconds(cell.ttft)} ms",
        f"{milliseconds(cell.tpot)} ms",
        share(cell.pass_rate),
        f"{cell.throughput:,.1f}",
        f"{cell.goodput:,.1f}",
        share(cell.kv_usage)
        if cell.kv_bytes is None
        else f"{share(cell.kv_usage)}, {readable(round(cell.kv_bytes))}",
        number(cell.waiting, 1),
        number(cell.preemptions, 0),
        number(cell.evictions, 0),
        share(cell.prefix_rate),
        NONE if cell.memory is None else readable(round(cell.memory)),
    )
