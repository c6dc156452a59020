"""A table in colours: rows and columns by name, each cell a number as text and how much it speaks of harm.

Columns for which there is no room beside the others stand in a further band below, under the same rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from service.charts.canvas import FONT, Canvas, breadth, wrapped
from service.charts.chart import Draw
from service.charts.frame import LINE

STEPS = 4
"""Shades of harm, and as many of benefit."""
LEAST_WIDE = 44.0
"""Pixels of a column whose cells say less than that."""
_ROW = 28.0
_LABEL = 230.0
_HEAD_LINES = 2
_SAMPLE = 14.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell; an empty text is a cell without evidence."""

    text: str
    share: float = 0.0
    """From -1 (all benefit) over 0 to 1 (all harm)."""
    tip: str = ""

    @property
    def shade(self) -> str:
        """Its class: `cold4` to `cold1`, `even`, `hot1` to `hot4`."""
        steps = max(-STEPS, min(STEPS, round(STEPS * self.share)))
        return "even" if not steps else f"{'hot' if steps > 0 else 'cold'}{abs(steps)}"


Rows = Sequence[tuple[str, Sequence[Cell | None]]]


def heat(
    rows: Rows,
    columns: Sequence[str],
    *,
    legend: Sequence[tuple[float, str]] = (),
    together: int = 1,
    again: int = 0,
    nothing: str = "",
) -> Draw:
    """Draws the rows in their order; ValueError when a row has not as many cells as there are columns.

    legend    what shares mean, each with its words
    together  so many columns are never parted by a band
    again     the first columns, which every band begins with
    """
    for label, cells in rows:
        if len(cells) != len(columns):
            raise ValueError(f"row {label} has {len(cells)} cells for {len(columns)} columns")
    longest = max((breadth(cell.text) for _, cells in rows for cell in cells if cell is not None), default=0)

    def draw(width: float, name: str, title: str, description: str) -> Canvas:
        narrow = width < 500
        left = 0.0 if narrow else _LABEL
        row_height = _ROW + (LINE if narrow else 0)
        lines = _legend_lines(legend, width)
        top = len(lines) * LINE + (6 if lines else 0)
        bands = _bands(len(columns), width - left, max(LEAST_WIDE, longest + 10), together, again)
        wide = (width - left) / max((len(band) for band in bands), default=1)
        heads = [[wrapped(columns[place], wide - 6, _HEAD_LINES) for place in band] for band in bands]
        tall = [max((len(head) for head in band), default=1) * (FONT + 2) + 8 for band in heads]
        rest = len(rows) * row_height + 10 if rows else 2 * LINE
        canvas = Canvas(
            name=name,
            width=width,
            height=top + sum(head + rest for head in tall) if bands and rows else 3 * LINE,
            title=title,
            description=description,
        )
        if not rows or not bands:
            canvas.word(width / 2, 2 * LINE, nothing, "note", anchor="middle")
            return canvas
        _draw_legend(canvas, lines)
        for band, band_heads, head in zip(bands, heads, tall, strict=True):
            _heads(canvas, band_heads, left, wide, top + head - 6, [columns[place] for place in band])
            for order, (label, cells) in enumerate(rows):
                y = top + head + order * row_height
                if narrow:
                    canvas.word(0, y + 13, label, "label", room=width)
                    y += LINE
                else:
                    canvas.word(0, y + _ROW / 2 + 4, label, "label", room=left - 10)
                for place, column in enumerate(band):
                    _cell(canvas, cells[column], left + place * wide, y, wide)
            top += head + rest
        return canvas

    return draw


def _bands(columns: int, room: float, wants: float, together: int, again: int) -> list[list[int]]:
    """Places of columns by band, as even as they can be."""
    first, others = list(range(again)), range(again, columns, together)
    most = max(1, (math.floor(room / wants) - again) // together)
    bands = math.ceil(len(others) / most)
    if not bands:
        return [first] if first else []
    each = math.ceil(len(others) / bands)
    groups = [others[begin : begin + each] for begin in range(0, len(others), each)]
    return [
        first + [place for begin in group for place in range(begin, min(begin + together, columns))]
        for group in groups
    ]


def _heads(
    canvas: Canvas,
    heads: Sequence[Sequence[str]],
    left: float,
    wide: float,
    base: float,
    names: Sequence[str],
) -> None:
    for place, (lines, name) in enumerate(zip(heads, names, strict=True)):
        middle = left + (place + 0.5) * wide
        for number, line in enumerate(reversed(lines)):
            height = base - number * (FONT + 2)
            canvas.word(middle, height, line, "axis-name", anchor="middle", whole=name)


def _cell(canvas: Canvas, cell: Cell | None, x: float, y: float, wide: float) -> None:
    shade = "none" if cell is None or not cell.text else cell.shade
    tip = "" if cell is None else cell.tip
    canvas.box(x + 1, y + 1, wide - 2, _ROW - 2, f"cell {shade}", radius=2, tip=tip)
    text = "–" if cell is None or not cell.text else cell.text
    canvas.word(x + wide / 2, y + _ROW / 2 + 4, text, f"on-{shade}", anchor="middle", room=wide - 6)


def _legend_lines(legend: Sequence[tuple[float, str]], width: float) -> list[list[tuple[float, float, str]]]:
    """Where each sample stands, its share and its words; as many lines as they need."""
    lines: list[list[tuple[float, float, str]]] = []
    at = 0.0
    for share, text in legend:
        wants = min(_SAMPLE + 6 + breadth(text) + 18, width)
        if not lines or at + wants > width:
            lines.append([])
            at = 0.0
        lines[-1].append((at, share, text))
        at += wants
    return lines


def _draw_legend(canvas: Canvas, lines: Sequence[Sequence[tuple[float, float, str]]]) -> None:
    for row, line in enumerate(lines):
        base = (row + 1) * LINE - 5
        for at, share, text in line:
            canvas.box(at, base - 10, _SAMPLE, 12, f"sample {Cell(text=text, share=share).shade}", radius=2)
            canvas.word(at + _SAMPLE + 6, base, text, "legend", room=canvas.width - at - _SAMPLE - 6)
