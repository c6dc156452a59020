"""Differences with their limits, each beside its margin: the forest plot of a verdict.

One row a criterion. The ground behind a row is shaded beyond its margin, and lightly between no difference
and the margin, where limits that leave out 0 are a warning; a limit that runs off the axis ends in an arrow.
Positive is worse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from service.charts.canvas import Canvas, breadth
from service.charts.chart import Draw
from service.charts.frame import LINE, tick
from service.charts.scale import Scale, written

ROW = 46.0
_NARROW_ROW = 62.0
_MOST_MARGINS = 6.0
"""An axis that shows the first, vast limits whole would hide where the margin is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForestRow:
    """One difference; shares, positive is worse."""

    label: str
    note: str
    """In small letters under the label, such as the number of pairs."""
    numbers: str
    """Estimate and limits as text."""
    estimate: float | None
    lower: float
    upper: float
    margin: float
    both_ways: bool = False
    """A fall beyond the margin is harm as well."""
    tone: str = "wait"
    """`good`, `wait` or `bad`: what was decided."""
    faint: bool = False
    """Shown only: it decides nothing."""


def forest(
    rows: Sequence[ForestRow], *, x_name: str, margin_label: str, zero_label: str, nothing: str = ""
) -> Draw:
    """Draws the rows in their order, on one axis in percentage points."""

    def draw(width: float, name: str, title: str, description: str) -> Canvas:
        narrow = width < 500
        row_height = _NARROW_ROW if narrow else ROW
        top = LINE + 10
        canvas = Canvas(
            name=name,
            width=width,
            height=top + max(1, len(rows)) * row_height + 2 * LINE + 8,
            title=title,
            description=description,
        )
        low, high = _limits(rows)
        most = max((breadth(row.numbers) for row in rows), default=0.0)
        left, right = (2.0, width - 2) if narrow else (200.0, width - max(190.0, 1.1 * most + 8))
        scale = Scale(low=low, high=high, start=left, end=right)
        if not rows:
            canvas.word(width / 2, top + LINE, nothing, "note", anchor="middle")
            return canvas
        bottom = top + len(rows) * row_height
        for order, row in enumerate(rows):
            _row(canvas, scale, row, top + order * row_height, row_height, narrow=narrow)
        margin = rows[0].margin
        if not narrow:
            _heading(canvas, scale(0), zero_label, "tick", "end", left)
        _heading(canvas, scale(100 * margin), margin_label, "limit-name", "start", right)
        canvas.line(left, bottom, right, bottom, "axis")
        marks = scale.ticks(4 if narrow else 6)
        for number, text in zip(marks, written(marks), strict=True):
            canvas.line(scale(number), bottom, scale(number), bottom + 4, "axis")
            tick(canvas, scale(number), bottom + 17, text)
        canvas.word(right, bottom + 17 + LINE, x_name, "axis-name", anchor="end", room=width - 16)
        return canvas

    return draw


def _heading(canvas: Canvas, column: float, text: str, style: str, anchor: str, end: float) -> None:
    if text:
        gap = -4 if anchor == "end" else 4
        room = abs(end - column)
        # A name that is cut says less than the line by itself, whose meaning the axis tells.
        if breadth(text) <= room:
            canvas.word(column + gap, LINE - 2, text, style, anchor=anchor)


def _limits(rows: Sequence[ForestRow]) -> tuple[float, float]:
    """In percentage points: every estimate and margin, and limits as far as six margins."""
    low = high = 0.0
    for row in rows:
        most = _MOST_MARGINS * row.margin
        low = min(low, max(row.lower, -most), row.estimate or 0.0, -row.margin)
        high = max(high, min(row.upper, most), row.estimate or 0.0, 1.6 * row.margin)
    room = 0.05 * (high - low) or 0.01
    return 100 * (low - room), 100 * (high + room)


def _row(canvas: Canvas, scale: Scale, row: ForestRow, top: float, height: float, *, narrow: bool) -> None:
    middle = top + (height - 18 if narrow else height / 2)
    half = 13.0
    edge = scale(100 * row.margin)
    canvas.box(edge, middle - half, scale.end - edge, 2 * half, "beyond")
    start = scale(-100 * row.margin) if row.both_ways else scale.start
    canvas.box(start, middle - half, edge - start, 2 * half, "within")
    near = scale(0)
    canvas.box(near, middle - half, edge - near, 2 * half, "near")
    if row.both_ways:
        canvas.box(start, middle - half, near - start, 2 * half, "near")
        canvas.box(scale.start, middle - half, start - scale.start, 2 * half, "beyond")
        canvas.line(start, middle - half, start, middle + half, "limit")
    canvas.line(edge, middle - half, edge, middle + half, "limit")
    canvas.line(scale(0), middle - half, scale(0), middle + half, "zero")
    _interval(canvas, scale, row, middle)
    faint = " faint" if row.faint else ""
    if narrow:
        # A number that is cut is another one; a label has its whole as a tip.
        room = canvas.width - 1.1 * breadth(row.numbers) - 12
        canvas.word(scale.start, top + 14, row.label, f"label{faint}", room=room)
        canvas.word(scale.end, top + 14, row.numbers, "number", anchor="end")
        canvas.word(scale.start, top + 28, row.note, "note", room=scale.end - scale.start)
    else:
        canvas.word(0, middle - 2, row.label, f"label{faint}", room=190)
        canvas.word(0, middle + 14, row.note, "note", room=190)
        canvas.word(canvas.width, middle + 4, row.numbers, "number", anchor="end")


def _interval(canvas: Canvas, scale: Scale, row: ForestRow, middle: float) -> None:
    lower, upper = 100 * row.lower, 100 * row.upper
    tip = f"{row.label}: {row.numbers}"
    left, right = scale(lower), scale(upper)
    canvas.line(left, middle, right, middle, f"interval {row.tone}", tip=tip)
    for number, at, way in ((lower, left, -1), (upper, right, 1)):
        if scale.holds(number):
            canvas.line(at, middle - 5, at, middle + 5, f"interval {row.tone}")
        else:
            corners = [(at, middle), (at - 7 * way, middle - 5), (at - 7 * way, middle + 5)]
            canvas.area(corners, f"solid {row.tone}")
    if row.estimate is not None:
        canvas.mark(scale(100 * row.estimate), middle, 2, f"solid {row.tone}", size=4.5, tip=tip)
