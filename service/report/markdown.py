"""A page as Markdown, as GitHub and GitLab show it: tables instead of charts, nothing lost but the drawing.

Every text is escaped, so that a name cannot become markup, a link, or HTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from service.charts.canvas import visible
from service.report.blocks import Block, Bullets, Drawing, Folded, Formula, Page, Paragraph, Table

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#+!|~&$@])")
_LEADING = re.compile(r"^(\s*)(\d+(?=[.)])|(?=[-=]))(.)")
"""What would begin a list or underline a heading."""
_ADDRESS = re.compile(r"(?i)\b(https?|ftp|www)([:.])")
"""What is made a link by itself: a space of no width keeps it text."""


def markdown(page: Page) -> str:
    """The whole document."""
    lines = [f"# {escaped(page.title)}", ""]
    lines += [f"- **{escaped(badge.tier)}**: {escaped(badge.text)}" for badge in page.badges]
    lines += ["", *(f"- {escaped(name)}: {escaped(text)}" for name, text in page.facts)]
    lines += ["", f"## {escaped(page.conclusion_title)}", "", escaped(page.conclusion), ""]
    for section in page.sections:
        lines += [f"## {escaped(section.title)}", ""]
        for block in section.blocks:
            lines += [*_block(block), ""]
    lines += ["---", "", escaped(page.footer)]
    text = "\n".join(lines)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _block(block: Block) -> Iterator[str]:
    match block:
        case Paragraph():
            yield escaped(block.text)
        case Bullets():
            yield from (f"- {escaped(item)}" for item in block.items)
        case Formula():
            yield from _code("\n".join([block.text, *block.worked]))
            if block.where:
                yield ""
                yield escaped(block.where)
        case Table():
            yield from _table(block.caption, block.head, [row.cells for row in block.rows])
        case Folded():
            yield f"### {escaped(block.title)}"
            for inner in block.blocks:
                yield ""
                yield from _block(inner)
        case Drawing():
            yield f"### {escaped(block.chart.title)}"
            yield ""
            yield escaped(block.chart.text)
            yield ""
            yield from _table(block.numbers_title, block.chart.head, block.chart.rows)


def _table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"**{escaped(caption)}**"
    yield ""
    yield "| " + " | ".join(escaped(name) for name in head) + " |"
    yield "|" + " --- |" * len(head)
    for row in rows:
        yield "| " + " | ".join(escaped(cell) for cell in row) + " |"


def _code(text: str) -> Iterator[str]:
    """Fenced, by more backticks than stand in a row in the text."""
    shown = [visible(line) for line in text.split("\n")]
    longest = max((len(run) for line in shown for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (fence, *shown, fence)


def escaped(text: str) -> str:
    """Plain text that stays plain."""
    shown = _MARKUP.sub(r"\\\1", visible(text))
    shown = _LEADING.sub(r"\1\2\\\3", shown)
    return _ADDRESS.sub("\\1\u200b\\2", shown)
