"""A figure that is to be reached, what was found, and whether that will do."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.benchmarks.rig import quantile

WIDEST = 0.15
"""How far from 1 the A/A ratios' 95 % range may reach; beyond it a run says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of a report."""

    what: str
    found: str
    figure: str
    met: bool | None
    """None: it decides nothing."""

    @classmethod
    def at_most(cls, what: str, found: float, bound: float, unit: str, *, digits: int = 2) -> Figure:
        """An amount and its upper bound."""
        return cls(
            what=what,
            found=f"{found:.{digits}f} {unit}",
            figure=f"<= {bound:g} {unit}",
            met=found <= bound,
        )

    @classmethod
    def holds(cls, what: str, found: str, holds: bool) -> Figure:
        """Something that is so or not."""
        return cls(what=what, found=found, figure="exact", met=holds)


def middle(ratios: Sequence[float]) -> tuple[float, float]:
    """The 95 % range."""
    return quantile(ratios, 0.025), quantile(ratios, 0.975)


def either_way(again: Sequence[float]) -> list[float]:
    """A/A ratios and their inverses: which of the two visits is called the first is arbitrary."""
    return [*again, *(1 / ratio for ratio in again)]


def is_void(again: Sequence[float]) -> bool:
    """Whether A/A ratios stray too far for any other ratio of the run to mean something."""
    low, high = middle(again)
    return low < 1 - WIDEST or high > 1 + WIDEST


def table(figures: Iterable[Figure]) -> str:
    """In Markdown."""
    words = {True: "met", False: "MISSED", None: "-"}
    lines = ["| what | found | figure | |", "|---|---|---|---|"]
    lines += [f"| {each.what} | {each.found} | {each.figure} | {words[each.met]} |" for each in figures]
    return "\n".join(lines)


def end(figures: Iterable[Figure], *, void: bool = False) -> None:
    """Exit with 1 when a figure was missed, or when the run is void."""
    missed = [each.what for each in figures if each.met is False]
    if void:
        sys.exit(f"void: the A/A ratios stray more than {WIDEST:.0%}; run it on a quieter machine")
    if missed:
        sys.exit(f"missed: {'; '.join(missed)}")
