"""Reading pages strictly: HTML as XML, its texts, its numbers."""

from __future__ import annotations

import re
from collections import Counter
from xml.etree import ElementTree as ET

from service.report.blocks import Block, Bullets, Drawing, Folded, Formula, Page, Paragraph, Table


def parsed(html: str) -> ET.Element:
    """The page as the XML that it is as well."""
    assert html.startswith("<!DOCTYPE html>")
    return ET.fromstring(html.removeprefix("<!DOCTYPE html>"))


def text_of(root: ET.Element) -> str:
    return " ".join("".join(root.itertext()).split())


def texts(page: Page) -> list[str]:
    """Every text of a page, of charts those in their tables and beside them."""
    found = [page.title, page.conclusion_title, page.conclusion, page.contents_title, page.footer]
    found += [text for fact in page.facts for text in fact]
    found += [text for badge in page.badges for text in (badge.tier, badge.text)]
    for section in page.sections:
        found.append(section.title)
        for block in section.blocks:
            found += _of(block)
    return found


def _of(block: Block) -> list[str]:
    match block:
        case Paragraph():
            return [block.text]
        case Bullets():
            return list(block.items)
        case Formula():
            return [block.text, block.where, *block.worked]
        case Table():
            return [block.caption, *block.head, *(cell for row in block.rows for cell in row.cells)]
        case Folded():
            return [block.title, *(text for inner in block.blocks for text in _of(inner))]
        case Drawing():
            cells = [cell for row in block.chart.rows for cell in row]
            return [block.chart.title, block.chart.text, block.numbers_title, *block.chart.head, *cells]


NUMBER = re.compile(r"(?<![A-Za-z\d.])[+−-]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?")
"""Not a digit within a name, such as W4A16."""


def numbers(told: list[str]) -> Counter[str]:
    """All numbers that are written anywhere."""
    return Counter(number for text in told for number in NUMBER.findall(text))
