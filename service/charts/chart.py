"""What a page embeds: one chart in two layouts, what it says in words, and its numbers as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from service.charts.canvas import Canvas

WIDE = 720.0
"""Pixels of the layout for laptops and print."""
NARROW = 340.0
"""Pixels of the layout for phones."""

Draw = Callable[[float, str, str, str], Canvas]
"""Draws at a width, under a name that is unique on the page, with a title and a description."""
Datum = str | float | None
"""A cell of a file: a number without its unit, which the name of its column tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A drawing that is complete without being seen."""

    name: str
    """Unique on its page."""
    title: str
    text: str
    """The text alternative: what the chart shows, with its numbers."""
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """Every number, as text with its unit; of a line of many points, those that are marked."""
    data: tuple[tuple[str, ...], ...]
    """For programs: names of columns, then a line each, with every number that is drawn; empty where the rows
    are as good."""
    wide: str
    """SVG for 720 pixels and more."""
    narrow: str
    """SVG for a phone."""


def chart(
    draw: Draw,
    *,
    name: str,
    title: str,
    text: str,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    data: Sequence[Sequence[Datum]] = (),
) -> Chart:
    """The chart in both layouts; ValueError when a row has not as many cells as the head."""
    for told, first in ((rows, head), (data, data[0] if data else ())):
        for row in told:
            if len(row) != len(first):
                raise ValueError(f"chart {name}: a row has {len(row)} cells, its head {len(first)}")
    return Chart(
        name=name,
        title=title,
        text=text,
        head=tuple(head),
        rows=tuple(tuple(row) for row in rows),
        data=tuple(tuple(map(plain, row)) for row in data),
        wide=draw(WIDE, f"{name}-wide", title, text).markup(),
        narrow=draw(NARROW, f"{name}-narrow", title, text).markup(),
    )


def plain(cell: Datum) -> str:
    """As a file has it: a number to ten digits, nothing where there is none."""
    if cell is None:
        return ""
    return cell if isinstance(cell, str) else str(cell) if isinstance(cell, int) else f"{cell:.10g}"
