"""What adds up to a total: bars that begin where the one before ended, laid down so that labels have room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from service.charts.canvas import Canvas
from service.charts.chart import Draw
from service.charts.frame import LINE, tick
from service.charts.scale import Scale, spread, written

ROW = 34.0
_NARROW_ROW = 46.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One bar: a change of the sum, or a total that begins at 0."""

    label: str
    numbers: str
    """The amount as text, with its unit and limits."""
    amount: float
    total: bool = False
    lower: float | None = None
    upper: float | None = None
    """Limits of where the bar ends."""
    tone: str = ""
    """`good` or `bad`; without one, a change up is good and one down is bad, a total neither."""


def waterfall(steps: Sequence[Step], *, x_name: str, nothing: str = "") -> Draw:
    """Draws the steps in their order."""
    ends: list[tuple[float, float]] = []
    at = 0.0
    for step in steps:
        begin = 0.0 if step.total else at
        at = step.amount if step.total else at + step.amount
        ends.append((begin, at))
    low, high = spread(
        [number for pair in ends for number in pair]
        + [number for step in steps for number in (step.lower, step.upper) if number is not None],
        from_zero=True,
    )

    def draw(width: float, name: str, title: str, description: str) -> Canvas:
        narrow = width < 500
        row_height = _NARROW_ROW if narrow else ROW
        top = 6.0
        bottom = top + max(1, len(steps)) * row_height
        canvas = Canvas(
            name=name, width=width, height=bottom + 2 * LINE + 8, title=title, description=description
        )
        if not steps:
            canvas.word(width / 2, top + LINE, nothing, "note", anchor="middle")
            return canvas
        left, right = (2.0, width - 2) if narrow else (200.0, width - 262)
        scale = Scale(low=low, high=high, start=left, end=right)
        marks = scale.ticks(4 if narrow else 6)
        for number, text in zip(marks, written(marks), strict=True):
            canvas.line(scale(number), top, scale(number), bottom, "grid")
            tick(canvas, scale(number), bottom + 17, text)
        for order, (step, (begin, end)) in enumerate(zip(steps, ends, strict=True)):
            y = top + order * row_height
            bar = y + (20 if narrow else 7)
            tall = row_height - (26 if narrow else 14)
            tone = step.tone or ("sum" if step.total else "good" if step.amount >= 0 else "bad")
            x1, x2 = sorted((scale(begin), scale(end)))
            canvas.box(x1, bar, x2 - x1, tall, f"bar {tone}", radius=2, tip=f"{step.label}: {step.numbers}")
            if step.lower is not None and step.upper is not None:
                _whisker(canvas, scale(step.lower), scale(step.upper), bar + tall / 2)
            if order + 1 < len(steps) and not steps[order + 1].total:
                canvas.line(scale(end), bar, scale(end), bar + row_height + tall, "link")
            base = y + 14 if narrow else bar + tall / 2 + 4
            strong = " strong" if step.total else ""
            room = 0.4 * width if narrow else 192
            canvas.word(0, base, step.label, f"label{strong}", room=room)
            room = 0.6 * width if narrow else 256
            canvas.word(width, base, step.numbers, f"number{strong}", anchor="end", room=room)
        canvas.line(scale(0), top, scale(0), bottom, "zero")
        canvas.word(right, bottom + 17 + LINE, x_name, "axis-name", anchor="end", room=width - 16)
        return canvas

    return draw


def _whisker(canvas: Canvas, left: float, right: float, middle: float) -> None:
    canvas.line(left, middle, right, middle, "whisker ink")
    for end in (left, right):
        canvas.line(end, middle - 5, end, middle + 5, "whisker ink")
