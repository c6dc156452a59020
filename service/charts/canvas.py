"""A canvas: marks and words at places, as SVG in which every text is escaped.

Elements carry classes and geometry only. Colours, weights and fonts stand in `style.css`, so that a page may
forbid inline styles, turn dark, or be printed.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from xml.etree import ElementTree as ET

FONT = 12.0
"""Size of a word in the canvas' own units, which are CSS pixels at full width."""
_SPELLED = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Unicode categories that change what stands beside them instead of being seen."""

Point = tuple[float, float]


@dataclass(slots=True, kw_only=True)
class Canvas:
    """One drawing; `name` is unique on its page."""

    name: str
    width: float
    height: float
    title: str
    description: str
    """What a reader who does not see it needs to know."""
    _root: ET.Element = field(init=False)

    def __post_init__(self) -> None:
        self._root = ET.Element(
            "svg",
            {
                "class": "chart-drawing",
                "role": "img",
                "aria-labelledby": f"{self.name}-title {self.name}-description",
                "viewBox": f"0 0 {place(self.width)} {place(self.height)}",
                "width": place(self.width),
                "height": place(self.height),
            },
        )
        ET.SubElement(self._root, "title", id=f"{self.name}-title").text = visible(self.title)
        ET.SubElement(self._root, "desc", id=f"{self.name}-description").text = visible(self.description)

    def line(self, x1: float, y1: float, x2: float, y2: float, style: str, *, tip: str = "") -> None:
        """A straight line."""
        ends = {"x1": place(x1), "y1": place(y1), "x2": place(x2), "y2": place(y2)}
        self._add("line", style, ends, tip)

    def box(
        self, x: float, y: float, width: float, height: float, style: str, *, radius: float = 0, tip: str = ""
    ) -> None:
        """A rectangle; one without extent is drawn as a hair."""
        sides = {
            "x": place(x),
            "y": place(y),
            "width": place(max(width, 0.5)),
            "height": place(max(height, 0.5)),
        }
        self._add("rect", style, sides | ({"rx": place(radius)} if radius else {}), tip)

    def dot(self, x: float, y: float, radius: float, style: str, *, tip: str = "") -> None:
        """A circle."""
        self._add("circle", style, {"cx": place(x), "cy": place(y), "r": place(radius)}, tip)

    def mark(self, x: float, y: float, shape: int, style: str, *, size: float = 3.5, tip: str = "") -> None:
        """One of five shapes, so that series can be told apart without colour."""
        if shape % 5 == 0:
            self.dot(x, y, size, style, tip=tip)
            return
        corners = [(x + size * dx, y + size * dy) for dx, dy in _SHAPES[shape % 5]]
        self.area(corners, style, tip=tip)

    def path(self, points: Iterable[Point], style: str, *, tip: str = "") -> None:
        """A line through points."""
        listed = " ".join(f"{place(x)},{place(y)}" for x, y in points)
        if listed:
            self._add("polyline", style, {"points": listed}, tip)

    def area(self, corners: Iterable[Point], style: str, *, tip: str = "") -> None:
        """A filled polygon."""
        listed = " ".join(f"{place(x)},{place(y)}" for x, y in corners)
        if listed:
            self._add("polygon", style, {"points": listed}, tip)

    def ribbon(
        self, left: Point, right: Point, before: float, after: float, style: str, *, tip: str = ""
    ) -> None:
        """A band that flows from one upright edge to another; `before` and `after` are its heights."""
        (x1, y1), (x2, y2) = left, right
        middle = (x1 + x2) / 2
        drawn = (
            f"M{place(x1)},{place(y1)}"
            f"C{place(middle)},{place(y1)} {place(middle)},{place(y2)} {place(x2)},{place(y2)}"
            f"V{place(y2 + after)}C{place(middle)},{place(y2 + after)} {place(middle)},{place(y1 + before)} "
            f"{place(x1)},{place(y1 + before)}Z"
        )
        self._add("path", style, {"d": drawn}, tip)

    def word(
        self,
        x: float,
        y: float,
        text: str,
        style: str = "",
        *,
        anchor: str = "start",
        room: float | None = None,
        whole: str = "",
    ) -> None:
        """A text on the base line `y`, cut to `room`; a tip has what is missing of it, or of the `whole`."""
        text = visible(text)
        shown = text if room is None else fitted(text, room)
        where = {"x": place(x), "y": place(y)} | ({} if anchor == "start" else {"text-anchor": anchor})
        told = visible(whole) or text
        element = self._add("text", style, where, "" if shown == told else told)
        if len(element):
            element[0].tail = shown
        else:
            element.text = shown

    def markup(self) -> str:
        """The SVG, for a page of HTML."""
        return ET.tostring(self._root, encoding="unicode")

    def _add(self, tag: str, style: str, geometry: dict[str, str], tip: str) -> ET.Element:
        named = {"class": " ".join(f"c-{each}" for each in style.split())} if style else {}
        element = ET.SubElement(self._root, tag, named | geometry)
        if tip:
            ET.SubElement(element, "title").text = visible(tip)
        return element


_SHAPES: tuple[tuple[Point, ...], ...] = (
    (),
    ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    ((0, -1.2), (1.2, 0), (0, 1.2), (-1.2, 0)),
    ((0, -1.2), (1.1, 0.8), (-1.1, 0.8)),
    ((0, 1.2), (1.1, -0.8), (-1.1, -0.8)),
)


def place(number: float) -> str:
    """A coordinate, to a tenth of a pixel."""
    text = f"{number:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def visible(text: str) -> str:
    """The text with what is not seen spelled out: controls, bidirectional marks, lone surrogates."""
    return "".join(f"\\u{ord(each):04x}" if unicodedata.category(each) in _SPELLED else each for each in text)


def breadth(text: str) -> float:
    """About how wide a word is; ideographs fill a square."""
    return FONT * sum(
        1.0 if unicodedata.east_asian_width(each) in "WF" else 0.34 if each in " .,:;'|!ijlt[]()" else 0.58
        for each in text
    )


def fitted(text: str, room: float) -> str:
    """As much of a text as has room, with an ellipsis where something is missing."""
    if breadth(text) <= room:
        return text
    for end in range(len(text) - 1, 0, -1):
        shown = f"{text[:end].rstrip()}…"
        if breadth(shown) <= room:
            return shown
    return "…"


def wrapped(text: str, room: float, most: int) -> list[str]:
    """The text in so many lines at most, broken after a blank or a sign where it can be."""
    rest = visible(text)
    lines: list[str] = []
    while rest and len(lines) + 1 < most and breadth(rest) > room:
        end = next((end for end in range(len(rest) - 1, 0, -1) if breadth(rest[:end]) <= room), 1)
        parted = max((place + 1 for place in range(end) if rest[place] in " -_/.:"), default=0)
        end = parted if parted > end // 2 else end
        lines.append(rest[:end].rstrip())
        rest = rest[end:].lstrip()
    return [*lines, fitted(rest, room)]
