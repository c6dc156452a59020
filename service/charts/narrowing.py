"""How a confidence sequence narrowed: its limits at each look, the margin, and what was decided when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from service.charts.chart import Draw
from service.charts.curve import CurvePoint, Reference, Series, curve


@dataclass(frozen=True, slots=True, kw_only=True)
class LookPoint:
    """One look; shares, positive is worse."""

    at: float
    """Pairs so far, or days since the first, as the name of the axis says."""
    estimate: float | None
    lower: float
    upper: float
    tip: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Something that was decided at a time."""

    at: float
    label: str


def narrowing(
    looks: Sequence[LookPoint],
    *,
    label: str,
    margin: float,
    margin_label: str,
    zero_label: str,
    x_name: str,
    y_name: str,
    moments: Sequence[Moment] = (),
    style: int = 1,
    widest: float | None = None,
    nothing: str = "",
) -> Draw:
    """Draws the sequence in percentage points; limits wider than `widest` (a share) run off the plot.

    The first looks are all but as wide as the axis can be: without `widest`, six margins are shown.
    """
    most = 100 * (6 * margin if widest is None else widest)
    points = tuple(
        CurvePoint(
            x=each.at,
            y=None if each.estimate is None else _within(100 * each.estimate, most),
            lower=_within(100 * each.lower, most),
            upper=_within(100 * each.upper, most),
            tip=each.tip,
        )
        for each in looks
    )
    return curve(
        [Series(label=label, points=points, style=style)],
        x_name=x_name,
        y_name=y_name,
        references=[
            Reference(at=100 * margin, label=margin_label),
            Reference(at=0, label=zero_label, style="guide"),
            *(Reference(at=each.at, label=each.label, across=False, style="event") for each in moments),
        ],
        y_from_zero=False,
        nothing=nothing,
    )


def _within(number: float, most: float) -> float:
    return min(most, max(-most, number))
