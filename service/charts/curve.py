"""Series over a number: goodput over rate, TPOT over concurrency, an engine's metrics over a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from service.charts.canvas import Canvas
from service.charts.chart import Draw
from service.charts.frame import PLOT_HEIGHT, Axis, Frame, Legend, framed, level, style_of, upright
from service.charts.scale import spread

MOST_MARKS = 40
"""A series with more points is a line alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """One measured point; without `y` the line is broken there."""

    x: float
    y: float | None
    lower: float | None = None
    upper: float | None = None
    hollow: bool = False
    """It was measured and does not count."""
    marked: bool = True
    """Has a mark of its own; otherwise the line only passes."""
    tip: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points in the order in which they are joined."""

    label: str
    points: tuple[CurvePoint, ...]
    style: int = 0
    """The same number is the same colour and shape in every chart of a page."""
    stepped: bool = False
    """A value stands until the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A number that the series are held to."""

    at: float
    label: str
    across: bool = True
    """Over the whole plot at a height; otherwise upright."""
    style: str = "limit"


def curve(
    series: Sequence[Series],
    *,
    x_name: str,
    y_name: str,
    references: Sequence[Reference] = (),
    x_from_zero: bool = False,
    y_from_zero: bool = True,
    x_limits: tuple[float, float] | None = None,
    y_limits: tuple[float, float] | None = None,
    logarithmic_x: bool = False,
    height: float = PLOT_HEIGHT,
    nothing: str = "",
) -> Draw:
    """Draws the series; `nothing` is written where there is no point at all."""
    x_low, x_high = x_limits or spread(
        [each.x for one in series for each in one.points if not logarithmic_x or each.x > 0]
        + [each.at for each in references if not each.across],
        room=0 if logarithmic_x else 0.03,
        from_zero=x_from_zero,
    )
    if logarithmic_x:
        x_low, x_high = max(x_low, 1e-9), max(x_high, x_low * 1.01, 1e-6)
    y_low, y_high = y_limits or spread(
        [
            number
            for one in series
            for each in one.points
            for number in (each.y, each.lower, each.upper)
            if number is not None
        ]
        + [each.at for each in references if each.across],
        from_zero=y_from_zero,
    )

    def draw(width: float, name: str, title: str, description: str) -> Canvas:
        frame = framed(
            width,
            name,
            title,
            description,
            x=Axis(name=x_name, low=x_low, high=x_high, logarithmic=logarithmic_x),
            y=Axis(name=y_name, low=y_low, high=y_high),
            legend=[Legend(label=each.label, series=each.style) for each in series],
            height=height,
        )
        for each in references:
            (level if each.across else upright)(frame, each.at, each.label, each.style)
        for one in series:
            _band(frame, one)
        for one in series:
            _line(frame, one)
        if nothing and not any(each.y is not None for one in series for each in one.points):
            middle = (frame.left + frame.right) / 2
            frame.canvas.word(middle, (frame.top + frame.bottom) / 2, nothing, "note", anchor="middle")
        return frame.canvas

    return draw


def _band(frame: Frame, one: Series) -> None:
    """The limits: a shade between neighbours, a whisker at each mark."""
    known = [
        (frame.x(each.x), frame.y(each.lower), frame.y(each.upper))
        for each in one.points
        if each.lower is not None and each.upper is not None and not each.hollow
    ]
    if len(known) > 1:
        upper = [(x, high) for x, _, high in known]
        lower = [(x, low) for x, low, _ in reversed(known)]
        frame.canvas.area([*upper, *lower], f"band f{style_of(one.style)}")
    if len(known) <= MOST_MARKS:
        for x, low, high in known:
            frame.canvas.line(x, low, x, high, f"whisker s{style_of(one.style)}")


def _line(frame: Frame, one: Series) -> None:
    style = style_of(one.style)
    run: list[tuple[float, float]] = []
    for each in one.points:
        if each.y is None or not math.isfinite(each.y):
            frame.canvas.path(run, f"line s{style}")
            run = []
            continue
        if each.hollow:
            continue
        place = frame.x(each.x), frame.y(each.y)
        if one.stepped and run:
            run.append((place[0], run[-1][1]))
        run.append(place)
    frame.canvas.path(run, f"line s{style}")
    measured = [each for each in one.points if each.marked and each.y is not None and math.isfinite(each.y)]
    if len(measured) > MOST_MARKS:
        return
    for each in measured:
        assert each.y is not None
        look = f"hollow s{style}" if each.hollow else f"fill f{style}"
        frame.canvas.mark(frame.x(each.x), frame.y(each.y), one.style, look, tip=each.tip)
