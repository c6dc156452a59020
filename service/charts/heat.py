"""A table in colours: rows and columns by name, each cell a number as text and how much it speaks of harm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from service.charts.canvas import Canvas
from service.charts.chart import Draw
from service.charts.frame import LINE

STEPS = 4
"""Shades of harm, and as many of benefit."""
_ROW = 28.0


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


def heat(
    rows: Sequence[tuple[str, Sequence[Cell | None]]], columns: Sequence[str], *, nothing: str = ""
) -> Draw:
    """Draws the rows in their order; ValueError when a row has not as many cells as there are columns."""
    for label, cells in rows:
        if len(cells) != len(columns):
            raise ValueError(f"row {label} has {len(cells)} cells for {len(columns)} columns")

    def draw(width: float, name: str, title: str, description: str) -> Canvas:
        narrow = width < 500
        row_height = _ROW + (LINE if narrow else 0)
        top = 2 * LINE
        canvas = Canvas(
            name=name,
            width=width,
            height=top + max(1, len(rows)) * row_height + 6,
            title=title,
            description=description,
        )
        if not rows or not columns:
            canvas.word(width / 2, top, nothing, "note", anchor="middle")
            return canvas
        left = 0.0 if narrow else 230.0
        wide = (width - left) / len(columns)
        for order, column in enumerate(columns):
            middle = left + (order + 0.5) * wide
            canvas.word(middle, top - 8, column, "axis-name", anchor="middle", room=wide - 4)
        for order, (label, cells) in enumerate(rows):
            y = top + order * row_height
            if narrow:
                canvas.word(0, y + 13, label, "label", room=width)
                y += LINE
            else:
                canvas.word(0, y + _ROW / 2 + 4, label, "label", room=left - 10)
            for place, cell in enumerate(cells):
                x = left + place * wide
                shade = "none" if cell is None or not cell.text else cell.shade
                tip = "" if cell is None else cell.tip
                canvas.box(x + 1, y + 1, wide - 2, _ROW - 2, f"cell {shade}", radius=2, tip=tip)
                text = "–" if cell is None or not cell.text else cell.text
                canvas.word(
                    x + wide / 2, y + _ROW / 2 + 4, text, f"on-{shade}", anchor="middle", room=wide - 6
                )
        return canvas

    return draw
