"""Where two texts differ, by words: bounded in time and memory whatever the texts are. Pure.

A word is a run of letters and digits, an ideograph by itself, a run of blanks, a line end, or any other
single character. What both begin and end with is set apart first. The rest is compared by the shortest
script of edits (Myers 1986, "An O(ND) difference algorithm and its variations") where it is short, and cut
at words that each text has exactly once where it is long (the patience rule of Bram Cohen). Once the effort
of a comparison is spent, what is left of it stands there as changed: coarser, and true.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

MOST_WORDS = 2_000
"""Of both sides of a range together, up to which the shortest script is tried first."""
MOST_EDITS = 400
"""Words put in or taken out of one range before the shortest script is given up."""
EFFORT = 500_000
"""Steps of all ranges of one comparison: about half a second."""
LONGEST_WORD = 64
"""Characters; longer ones are cut, so that one long line is not one word."""

_WIDE = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_WORDS = re.compile(rf"\n|[^\S\n]+|(?:(?![{_WIDE}])\w){{1,{LONGEST_WORD}}}|.", re.DOTALL)
_WORDLESS = re.compile(r"[^\w\n]{1,3}")
"""Blanks and points between two changes: as much a part of the change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """What stands in the same place of both texts."""

    baseline: str
    candidate: str

    @property
    def is_same(self) -> bool:
        return self.baseline == self.candidate


def stretches(baseline: str, candidate: str, *, effort: int = EFFORT) -> list[Stretch]:
    """Both texts from beginning to end, the same and changed in turn; put together, they are the texts.

    `effort` is in steps; whoever compares many texts for one page shares it out.
    """
    start = _common_start(baseline, candidate)
    end = _common_end(baseline, candidate, start)
    until, till = len(baseline) - end, len(candidate) - end
    middle = _middle(baseline[start:until], candidate[start:till], effort)
    whole = [
        Stretch(baseline=baseline[:start], candidate=candidate[:start]),
        *middle,
        Stretch(baseline=baseline[until:], candidate=candidate[till:]),
    ]
    return _joined(_without_crumbs(_joined(whole)))


def words_of(text: str) -> list[str]:
    """The words; put together, they are the text."""
    return _WORDS.findall(text)


def _middle(baseline: str, candidate: str, effort: int) -> Iterator[Stretch]:
    one, other = words_of(baseline), words_of(candidate)
    numbers: dict[str, int] = {}
    first, second = ([numbers.setdefault(word, len(numbers)) for word in each] for each in (one, other))
    at, beside = 0, 0
    for place, across in (*_aligned(first, second, effort), (len(one), len(other))):
        if place > at or across > beside:
            yield Stretch(baseline="".join(one[at:place]), candidate="".join(other[beside:across]))
        if place < len(one):
            yield Stretch(baseline=one[place], candidate=other[across])
        at, beside = place + 1, across + 1


def _joined(told: Iterable[Stretch]) -> list[Stretch]:
    """Neighbours of one kind as one, and nothing empty."""
    groups: list[tuple[bool, list[Stretch]]] = []
    for each in told:
        if not each.baseline and not each.candidate:
            continue
        if not groups or groups[-1][0] is not each.is_same:
            groups.append((each.is_same, []))
        groups[-1][1].append(each)
    return [
        Stretch(
            baseline="".join(each.baseline for each in group),
            candidate="".join(each.candidate for each in group),
        )
        for _, group in groups
    ]


def _without_crumbs(told: Sequence[Stretch]) -> Iterator[Stretch]:
    """A blank or a comma between two changes belongs to the change: so three words read as one."""
    for place, each in enumerate(told):
        inside = 0 < place < len(told) - 1
        if inside and each.is_same and _WORDLESS.fullmatch(each.baseline):
            # Told as changed by what is put together with it: its neighbours are changes.
            yield Stretch(baseline=each.baseline, candidate="")
            yield Stretch(baseline="", candidate=each.candidate)
        else:
            yield each


def _aligned(one: Sequence[int], other: Sequence[int], effort: int = EFFORT) -> list[tuple[int, int]]:
    """Places of words that stand for each other, rising in both."""
    left = effort
    found: list[tuple[int, int]] = []
    waiting = [(0, len(one), 0, len(other))]
    while waiting:
        a, b, c, d = waiting.pop()
        while a < b and c < d and one[a] == other[c]:
            found.append((a, c))
            a, c = a + 1, c + 1
        while a < b and c < d and one[b - 1] == other[d - 1]:
            b, d = b - 1, d - 1
            found.append((b, d))
        if a == b or c == d:
            continue
        if b - a + d - c <= MOST_WORDS:
            script, steps = _shortest(one[a:b], other[c:d], left)
            left -= steps
            if script is not None:
                found.extend((a + place, c + across) for place, across in script)
                continue
        left -= (b - a + d - c) // 8
        if left <= 0:
            break
        anchors = [(a + place, c + across) for place, across in _anchors(one[a:b], other[c:d])]
        if not anchors:
            continue
        found.extend(anchors)
        borders = [(a - 1, c - 1), *anchors, (b, d)]
        waiting += [
            (place + 1, until, across + 1, till) for (place, across), (until, till) in pairwise(borders)
        ]
    return sorted(found)


def _shortest(
    one: Sequence[int], other: Sequence[int], most: int
) -> tuple[list[tuple[int, int]] | None, int]:
    """What the shortest script of edits leaves in place, and its steps; None where it takes too many."""
    rows, columns = len(one), len(other)
    reached, trace, steps = {1: 0}, [], 0
    for edits in range(min(rows + columns, MOST_EDITS) + 1):
        trace.append(dict(reached))
        for diagonal in range(-edits, edits + 1, 2):
            came = _from(reached, diagonal, edits)
            row = reached[came] + (came < diagonal)
            column = row - diagonal
            while row < rows and column < columns and one[row] == other[column]:
                row, column = row + 1, column + 1
            reached[diagonal] = row
            if diagonal == rows - columns and row >= rows:
                return _traced(trace, rows, columns), steps
        steps += 2 * edits + 1
        if steps > most:
            break
    return None, steps


def _from(reached: dict[int, int], diagonal: int, edits: int) -> int:
    """The diagonal from which this one is reached furthest."""
    down = diagonal == -edits or (diagonal != edits and reached[diagonal - 1] < reached[diagonal + 1])
    return diagonal + 1 if down else diagonal - 1


def _traced(trace: Sequence[dict[int, int]], row: int, column: int) -> list[tuple[int, int]]:
    kept: list[tuple[int, int]] = []
    for edits in range(len(trace) - 1, -1, -1):
        came = _from(trace[edits], row - column, edits)
        start = trace[edits][came]
        while row > start and column > start - came:
            row, column = row - 1, column - 1
            kept.append((row, column))
        row, column = start, start - came
    return kept


def _anchors(one: Sequence[int], other: Sequence[int]) -> list[tuple[int, int]]:
    """Words that each side has once, as many as stand in the same order on both."""
    once, twice = Counter(one), Counter(other)
    across = {word: place for place, word in enumerate(other) if twice[word] == 1}
    places = [(place, across[word]) for place, word in enumerate(one) if once[word] == 1 and word in across]
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for number, (_, column) in enumerate(places):
        at = bisect_left(ends, column)
        before.append(last[at - 1] if at else -1)
        if at == len(ends):
            ends.append(column)
            last.append(number)
        else:
            ends[at], last[at] = column, number
    chain = []
    number = last[-1] if last else -1
    while number >= 0:
        chain.append(places[number])
        number = before[number]
    return chain[::-1]


def _common_start(one: str, other: str) -> int:
    """Characters that both begin with, back to the border of a word."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if other.startswith(one[:middle]) else (low, middle - 1)
    at = low
    if at < max(len(one), len(other)):
        while at > 0 and low - at < LONGEST_WORD and (_cuts(one, at) or _cuts(other, at)):
            at -= 1
    return at


def _common_end(one: str, other: str, start: int) -> int:
    """Characters after `start` that both end with, on to the border of a word."""
    low, high = 0, min(len(one), len(other)) - start
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if other.endswith(one[len(one) - middle :]) else (low, middle - 1)
    end = low
    while end > 0 and low - end < LONGEST_WORD:
        if not (_cuts(one, len(one) - end) or _cuts(other, len(other) - end)):
            break
        end -= 1
    return end


def _cuts(text: str, at: int) -> bool:
    """Whether a place lies within a word or a run of blanks."""
    if not 0 < at < len(text):
        return False
    return _WORDS.fullmatch(text[at - 1 : at + 1]) is not None
