"""Reading SVG strictly: as XML, with the words and the places in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from service.charts.canvas import Canvas
from service.charts.chart import NARROW, WIDE, Draw


def both(draw: Draw) -> list[ET.Element]:
    """The two layouts, parsed."""
    return [parsed(draw(width, "drawn", "A title", "What it says")) for width in (WIDE, NARROW)]


def parsed(canvas: Canvas) -> ET.Element:
    return ET.fromstring(canvas.markup())


def words(root: ET.Element) -> list[str]:
    """What is written on it, without tips."""
    return [(each[0].tail or "") if len(each) else (each.text or "") for each in root.iter("text")]


def of_class(root: ET.Element, *names: str) -> list[ET.Element]:
    """Elements that have all these classes."""
    wanted = {f"c-{name}" for name in names}
    return [each for each in root.iter() if wanted <= set(each.get("class", "").split())]


def extent(root: ET.Element) -> Iterator[tuple[float, float]]:
    """Every place that anything is drawn at."""
    for each in root.iter():
        if each.tag == "line":
            yield float(each.get("x1", 0)), float(each.get("y1", 0))
            yield float(each.get("x2", 0)), float(each.get("y2", 0))
        elif each.tag == "rect":
            x, y = float(each.get("x", 0)), float(each.get("y", 0))
            yield x, y
            yield x + float(each.get("width", 0)), y + float(each.get("height", 0))
        elif each.tag == "circle":
            yield float(each.get("cx", 0)), float(each.get("cy", 0))
        elif each.tag in ("polyline", "polygon"):
            for pair in each.get("points", "").split():
                x_text, y_text = pair.split(",")
                yield float(x_text), float(y_text)
        elif each.tag == "text":
            yield float(each.get("x", 0)), float(each.get("y", 0))
        elif each.tag == "path":
            numbers = [float(told) for told in re.findall(r"-?[\d.]+", each.get("d", ""))]
            yield numbers[0], numbers[1]


def size(root: ET.Element) -> tuple[float, float]:
    _, _, width, height = (float(told) for told in root.get("viewBox", "").split())
    return width, height
