"""What adds up to a total: bars that begin where the one before ended, laid down so that labels have room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from service.charts.canvas import Canvas, breadth
from service.charts.chart import Draw
from service.charts.frame import LINE, tick
from service.charts.scale import Scale, spread, written

ROW = 34.0
_NARROW_ROW = 46.0
_BOLD = 1.2
"""How much wider bold letters are, at most."""


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
        # Numbers are never cut: where they do not fit beside their label, they stand below it.
        below = [
            narrow and _BOLD * (breadth(step.label) + breadth(step.numbers)) + 10 > width for step in steps
        ]
        tops = [6.0]
        for apart in below:
            tops.append(tops[-1] + (_NARROW_ROW if narrow else ROW) + (LINE if apart else 0))
        top, bottom = tops[0], tops[-1] if steps else tops[0] + ROW
        canvas = Canvas(
            name=name, width=width, height=bottom + 2 * LINE + 8, title=title, description=description
        )
        if not steps:
            canvas.word(width / 2, top + LINE, nothing, "note", anchor="middle")
            return canvas
        most = max(256.0, *(_BOLD * breadth(step.numbers) for step in steps))
        left, right = (2.0, width - 2) if narrow else (200.0, max(width - most - 6, 320.0))
        scale = Scale(low=low, high=high, start=left, end=right)
        marks = scale.ticks(4 if narrow else 6)
        for number, text in zip(marks, written(marks), strict=True):
            canvas.line(scale(number), top, scale(number), bottom, "grid")
            tick(canvas, scale(number), bottom + 17, text)
        for order, (step, (begin, end)) in enumerate(zip(steps, ends, strict=True)):
            y, tall = tops[order], 20.0
            bar = _bar(tops, order, narrow=narrow, below=below[order])
            tone = step.tone or ("sum" if step.total else "good" if step.amount >= 0 else "bad")
            x1, x2 = sorted((scale(begin), scale(end)))
            canvas.box(x1, bar, x2 - x1, tall, f"bar {tone}", radius=2, tip=f"{step.label}: {step.numbers}")
            if step.lower is not None and step.upper is not None:
                _whisker(canvas, scale(step.lower), scale(step.upper), bar + tall / 2)
            if order + 1 < len(steps) and not steps[order + 1].total:
                following = _bar(tops, order + 1, narrow=narrow, below=below[order + 1])
                canvas.line(scale(end), bar, scale(end), following + tall, "link")
            base = y + 14 if narrow else bar + tall / 2 + 4
            strong = " strong" if step.total else ""
            canvas.word(0, base, step.label, f"label{strong}", room=width if narrow else 192)
            lower = base + (LINE if below[order] else 0)
            canvas.word(width, lower, step.numbers, f"number{strong}", anchor="end")
        canvas.line(scale(0), top, scale(0), bottom, "zero")
        canvas.word(right, bottom + 17 + LINE, x_name, "axis-name", anchor="end", room=width - 16)
        return canvas

    return draw


def _bar(tops: Sequence[float], order: int, *, narrow: bool, below: bool) -> float:
    """Where a step's bar begins: under its words, or beside them."""
    return tops[order] + (20 if narrow else 7) + (LINE if below else 0)


def _whisker(canvas: Canvas, left: float, right: float, middle: float) -> None:
    canvas.line(left, middle, right, middle, "whisker ink")
    for end in (left, right):
        canvas.line(end, middle - 5, end, middle + 5, "whisker ink")
