"""Which share of requests was done by when: one line an arm, the goal as a line across.

Where a line meets the goal is the share that met it; where it meets 95 % is P95. Requests that never came
keep a line below 100 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from service.charts.chart import Draw
from service.charts.curve import CurvePoint, Reference, Series, curve


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """One arm's latencies: (share of requests, number) in rising order, shares in [0, 1]."""

    label: str
    points: tuple[tuple[float, float], ...]
    style: int = 0
    marked: tuple[float, ...] = (0.5, 0.95, 0.99)
    """Shares that are marked with the arm's shape."""


def distribution(
    arms: Sequence[Spread],
    *,
    x_name: str,
    y_name: str,
    goal: float | None = None,
    goal_label: str = "",
    nothing: str = "",
) -> Draw:
    """Draws shares over a logarithmic axis of numbers, all of which must be above 0 to be seen."""
    lines = [
        Series(
            label=each.label,
            style=each.style,
            points=tuple(
                CurvePoint(x=number, y=100 * share, marked=share in each.marked)
                for share, number in each.points
                if number > 0
            ),
        )
        for each in arms
    ]
    numbers = [point.x for each in lines for point in each.points] + ([goal] if goal else [])
    low, high = (min(numbers), max(numbers)) if numbers else (1.0, 10.0)
    return curve(
        lines,
        x_name=x_name,
        y_name=y_name,
        references=[
            Reference(at=95, label="95 %", style="guide"),
            *([Reference(at=goal, label=goal_label, across=False)] if goal else []),
        ],
        x_limits=(low / 1.15, high * 1.15),
        y_limits=(0, 100),
        logarithmic_x=True,
        nothing=nothing,
    )
