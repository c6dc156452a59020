"""An account that adds up, as a flow: every amount is split into what became of it, until nothing is split.

Wide, amounts are bars in columns with bands between them; narrow, one bar a line below the other, each where
it lies within the whole. Losses have a colour of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from service.charts.canvas import Canvas
from service.charts.chart import Draw
from service.charts.frame import LINE

_BAR = 12.0
_GAP = 12.0
_LEAST_TALL = 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """So many, and what they became; the parts add up to no more than the whole."""

    label: str
    count: int
    text: str
    """The count as text."""
    parts: tuple[Amount, ...] = ()
    tone: str = "through"
    """`through` goes on, `aside` was left out, `bad` was lost, `good` arrived, `wait` is under way."""

    def __post_init__(self) -> None:
        told = sum(part.count for part in self.parts)
        if self.count < 0 or told > self.count:
            raise ValueError(f"the parts of {self.label} add up to {told}, more than {self.count}")


@dataclass(slots=True, kw_only=True)
class _Placed:
    """One amount with its place in the wide layout."""

    amount: Amount
    depth: int
    parent: _Placed | None
    y: float = 0.0
    tall: float = 0.0
    taken: float = field(default=0.0)
    """How much of its right edge bands have left."""


def flow(whole: Amount, *, nothing: str = "") -> Draw:
    """Draws the whole and its parts."""

    def draw(width: float, name: str, title: str, description: str) -> Canvas:
        if not whole.count:
            canvas = Canvas(name=name, width=width, height=3 * LINE, title=title, description=description)
            canvas.word(width / 2, 2 * LINE, nothing, "note", anchor="middle")
            return canvas
        layout = _narrow if width < 500 else _wide
        return layout(whole, width, name, title, description)

    return draw


def _wide(whole: Amount, width: float, name: str, title: str, description: str) -> Canvas:
    columns = _columns(whole)
    most = max(len(column) for column in columns)
    tall = max(_LEAST_TALL, most * (2 * LINE + 4))
    room = min(tall - (len(column) - 1) * (LINE + _GAP) for column in columns)
    unit = max(room, 40.0) / whole.count
    for column in columns:
        _settle(column, unit)
    height = max(each.y + max(each.tall, LINE) for column in columns for each in column) + LINE
    canvas = Canvas(name=name, width=width, height=height + 8, title=title, description=description)
    words = 140.0
    stride = (width - words - _BAR) / max(1, len(columns) - 1)
    for column in columns:
        for each in column:
            if each.parent is not None:
                before = each.amount.count * unit
                canvas.ribbon(
                    ((each.depth - 1) * stride + _BAR, each.parent.y + each.parent.taken),
                    (each.depth * stride, each.y),
                    before,
                    each.tall,
                    f"band {each.amount.tone}",
                    tip=f"{each.amount.label}: {each.amount.text}",
                )
                each.parent.taken += before
    for column in columns:
        for each in column:
            left = each.depth * stride
            canvas.box(left, each.y, _BAR, each.tall, f"bar {each.amount.tone}")
            space = (words if each.depth == len(columns) - 1 else stride - _BAR) - 10
            canvas.word(left + _BAR + 6, each.y + 11, each.amount.label, "label", room=space)
            canvas.word(left + _BAR + 6, each.y + 11 + LINE - 3, each.amount.text, "note", room=space)
    return canvas


def _columns(whole: Amount) -> list[list[_Placed]]:
    """By depth; each column in the order of its parents, so that bands do not cross."""
    columns = [[_Placed(amount=whole, depth=0, parent=None)]]
    while True:
        following = [
            _Placed(amount=part, depth=len(columns), parent=placed)
            for placed in columns[-1]
            for part in placed.amount.parts
            if part.count
        ]
        if not following:
            return columns
        columns.append(following)


def _settle(column: Sequence[_Placed], unit: float) -> None:
    """From the top: never above where the parent begins, never over the words of the one before."""
    free = 0.0
    begun: dict[int, float] = {}
    for each in column:
        each.tall = max(each.amount.count * unit, 1.5)
        wanted = 0.0
        if each.parent is not None:
            wanted = each.parent.y + begun.get(id(each.parent), 0.0)
            begun[id(each.parent)] = begun.get(id(each.parent), 0.0) + each.amount.count * unit
        each.y = max(wanted, free)
        free = each.y + max(each.tall, 2 * LINE - 8) + _GAP


def _narrow(whole: Amount, width: float, name: str, title: str, description: str) -> Canvas:
    lines = list(_lines(whole, 0, 0))
    row = 36.0
    canvas = Canvas(name=name, width=width, height=len(lines) * row + 6, title=title, description=description)
    unit = width / whole.count
    for order, (amount, depth, begin) in enumerate(lines):
        base = order * row + 14
        indent = depth * 12.0
        canvas.word(indent, base, amount.label, "label", room=0.66 * width - indent)
        canvas.word(width, base, amount.text, "number", anchor="end", room=0.34 * width)
        canvas.box(0, base + 5, width, 9, "track")
        tip = f"{amount.label}: {amount.text}"
        canvas.box(begin * unit, base + 5, max(amount.count * unit, 1.5), 9, f"bar {amount.tone}", tip=tip)
    return canvas


def _lines(amount: Amount, depth: int, begin: int) -> Iterator[tuple[Amount, int, int]]:
    yield amount, depth, begin
    for part in amount.parts:
        if part.count:
            yield from _lines(part, depth + 1, begin)
        begin += part.count
