"""Pairs that are in a stratum of their own besides those of their unit: recall questions, by depth."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Within(NamedTuple):
    """The scored pairs of one unit that are in a stratum of their own."""

    stratum: str
    pairs: int
    harm: int
    benefit: int
    both_failed: int


def own_parts(judged: Iterable[tuple[str, bool, bool]]) -> tuple[Within, ...]:
    """Scored pairs by their own stratum: its name, and whether baseline and candidate passed."""
    found: dict[str, list[tuple[bool, bool]]] = {}
    for stratum, baseline, candidate in judged:
        if stratum:
            found.setdefault(stratum, []).append((baseline, candidate))
    return tuple(
        Within(
            stratum,
            len(pairs),
            pairs.count((True, False)),
            pairs.count((False, True)),
            pairs.count((False, False)),
        )
        for stratum, pairs in sorted(found.items())
    )
