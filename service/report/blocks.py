"""What a page is made of, whatever it is written in: paragraphs, lists, tables, formulas, charts.

Texts are plain: whoever writes them out escapes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from service.charts.chart import Chart


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph:
    """A text; `tone` is `good`, `wait` or `bad` where it is a judgement, `foreign` is in another language."""

    text: str
    tone: str = ""
    foreign: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bullets:
    """A list of texts."""

    items: tuple[str, ...]
    foreign: frozenset[str] = frozenset()
    """Those of them that are in English, whatever the page is in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Formula:
    """How a number comes about, with its symbols explained; `worked` has the run's own numbers."""

    text: str
    where: str = ""
    worked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One row; `tone` as of a paragraph."""

    cells: tuple[str, ...]
    tone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table whose first column names its rows."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[TableRow, ...]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row.cells) != len(self.head):
                raise ValueError(
                    f"{self.caption}: a row has {len(row.cells)} cells, the head {len(self.head)}"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """Blocks that are opened when wanted, and printed in any case."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A chart and the table of its numbers."""

    chart: Chart
    numbers_title: str
    """Names the table of its numbers."""
    open: bool = False
    """The table stands there at once, not only when wanted."""


Block = Paragraph | Bullets | Formula | Table | Folded | Drawing


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the page, with a name that links lead to."""

    anchor: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Badge:
    """A tier and what was decided of it."""

    tier: str
    text: str
    tone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A whole report, ready to be written out in one language."""

    language: str
    """As HTML's `lang` has it."""
    title: str
    facts: tuple[tuple[str, str], ...]
    """Name and text: which run, when, how long."""
    badges: tuple[Badge, ...]
    conclusion_title: str
    conclusion: str
    contents_title: str
    sections: tuple[Section, ...]
    footer: str


def rows(*cells: tuple[str, ...]) -> tuple[TableRow, ...]:
    """Rows without a judgement."""
    return tuple(TableRow(cells=each) for each in cells)


def beside(
    caption: str, corner: str, columns: tuple[str, ...], lines: Sequence[tuple[str, Sequence[str]]]
) -> Table:
    """A table with a column a tier and a line a figure: it stays narrow however many figures there are."""
    return Table(
        caption=caption,
        head=(corner, *columns),
        rows=tuple(TableRow(cells=(name, *cells)) for name, cells in lines),
    )
