"""The valid word nearest to one that is not, by the fewest single-letter changes."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, valid: Iterable[str]) -> str:
    """The closest of the valid words; ValueError when there are none."""
    return min(valid, key=lambda other: (distance(word.lower(), other.lower()), other))


def distance(one: str, other: str) -> int:
    """Insertions, deletions, replacements and swaps of neighbours that lead from one word to the other.

    Optimal string alignment: Damerau (1964), each letter changed once.
    """
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, left in enumerate(one, 1):
        row = [i]
        for j, right in enumerate(other, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (left != right))
            if i > 1 and j > 1 and left == other[j - 2] and one[i - 2] == right:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    return last[-1]
