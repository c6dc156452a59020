"""The frame of a chart over two axes: grid, ticks, names of axes, a legend that wraps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from service.charts.canvas import FONT, Canvas, breadth
from service.charts.scale import Scale, brief, written

LINE = FONT + 6
"""Height of a line of words."""
PLOT_HEIGHT = 230.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One axis: its limits in the unit that its name tells."""

    name: str
    low: float
    high: float
    logarithmic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Legend:
    """One line of a legend: what a series looks like and what it is."""

    label: str
    series: int
    """Which of the styles; of series beyond six, the first ones' again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Where the numbers of both axes lie on a canvas."""

    canvas: Canvas
    x: Scale
    y: Scale

    @property
    def left(self) -> float:
        return self.x.start

    @property
    def right(self) -> float:
        return self.x.end

    @property
    def top(self) -> float:
        return self.y.end

    @property
    def bottom(self) -> float:
        return self.y.start


def style_of(series: int) -> int:
    """Which of the six styles a series has."""
    return series % 6


def framed(
    width: float,
    name: str,
    title: str,
    description: str,
    *,
    x: Axis,
    y: Axis,
    legend: Sequence[Legend] = (),
    height: float = PLOT_HEIGHT,
) -> Frame:
    """A new canvas with axes and legend; the series are still to be drawn."""
    lines = _legend_lines(legend, width)
    top = len(lines) * LINE + LINE + 6
    marks_y = Scale(low=y.low, high=y.high, start=0, end=1, logarithmic=y.logarithmic).ticks(5)
    texts_y = _texts(marks_y, y)
    left = max((breadth(text) for text in texts_y), default=0) + 12
    canvas = Canvas(
        name=name, width=width, height=top + height + 2 * LINE + 10, title=title, description=description
    )
    frame = Frame(
        canvas=canvas,
        x=Scale(low=x.low, high=x.high, start=left, end=width - 14, logarithmic=x.logarithmic),
        y=Scale(low=y.low, high=y.high, start=top + height, end=top, logarithmic=y.logarithmic),
    )
    _draw_legend(canvas, lines)
    canvas.word(0, top - 10, y.name, "axis-name", room=width)
    for number, text in zip(marks_y, texts_y, strict=True):
        level = frame.y(number)
        canvas.line(frame.left, level, frame.right, level, "grid")
        canvas.word(frame.left - 6, level + 4, text, "tick", anchor="end")
    marks_x = frame.x.ticks(4 if width < 500 else 8)
    for number, text in zip(marks_x, _texts(marks_x, x), strict=True):
        column = frame.x(number)
        canvas.line(column, frame.bottom, column, frame.bottom + 4, "axis")
        tick(canvas, column, frame.bottom + 17, text)
    canvas.line(frame.left, frame.bottom, frame.right, frame.bottom, "axis")
    canvas.word(frame.right, frame.bottom + 17 + LINE, x.name, "axis-name", anchor="end", room=width - 20)
    return frame


def tick(canvas: Canvas, column: float, base: float, text: str) -> None:
    """A number below its place on an axis, and never beyond the canvas."""
    half = breadth(text) / 2
    canvas.word(min(max(column, half), canvas.width - half), base, text, "tick", anchor="middle")


def upright(frame: Frame, number: float, label: str, style: str = "limit") -> None:
    """A line across the plot at a number of the x axis, with its name beside it."""
    if not frame.x.holds(number):
        return
    column = frame.x(number)
    frame.canvas.line(column, frame.top, column, frame.bottom, style)
    beside = frame.right - column > breadth(label) + 6
    frame.canvas.word(
        column + (5 if beside else -5),
        frame.bottom - 6,
        label,
        f"{style}-name",
        anchor="start" if beside else "end",
        room=frame.right - column if beside else column - frame.left,
    )


def level(frame: Frame, number: float, label: str, style: str = "limit") -> None:
    """A line across the plot at a number of the y axis, with its name on it."""
    if not frame.y.holds(number):
        return
    height = frame.y(number)
    frame.canvas.line(frame.left, height, frame.right, height, style)
    # A guide's name hangs below it: the limit beside it, such as the margin, has its own above.
    above = height - frame.top > LINE and style != "guide"
    frame.canvas.word(
        frame.right,
        height + (-5 if above else FONT + 3),
        label,
        f"{style}-name",
        anchor="end",
        room=frame.right - frame.left,
    )


def _texts(marks: Sequence[float], axis: Axis) -> list[str]:
    return [brief(number) for number in marks] if axis.logarithmic else written(marks)


def _legend_lines(legend: Sequence[Legend], width: float) -> list[list[tuple[float, Legend]]]:
    lines: list[list[tuple[float, Legend]]] = []
    at = 0.0
    for each in legend:
        wants = min(breadth(each.label) + 44, width)
        if not lines or at + wants > width:
            lines.append([])
            at = 0.0
        lines[-1].append((at, each))
        at += wants
    return lines


def _draw_legend(canvas: Canvas, lines: Sequence[Sequence[tuple[float, Legend]]]) -> None:
    for row, line in enumerate(lines):
        base = (row + 1) * LINE - 5
        for at, each in line:
            style = style_of(each.series)
            canvas.line(at, base - 4, at + 22, base - 4, f"line s{style}")
            canvas.mark(at + 11, base - 4, each.series, f"fill f{style}")
            canvas.word(at + 28, base, each.label, "legend", room=canvas.width - at - 28)
