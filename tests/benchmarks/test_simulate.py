"""The simulation draws what it says, writes whole lines, and notices an error rate above its bound."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks.procedure import Rates
from tests.benchmarks.rows import Row, Sizes, share, typical
from tests.benchmarks.simulate import PARTS, written
from tests.benchmarks.streams import conversations

FEW = Sizes(
    boundary=4,
    clustered=4,
    pairs=4,
    ladders=4,
    delays=4,
    gates=4,
    turns=4,
    years=4,
    strata=4,
    gated=4,
    horizon=4000,
    ladder_horizon=1000,
    alarm_horizon=1000,
)

BRIEF = replace(
    FEW,
    pairs=8,
    delays=2,
    gated=2,
    horizon=Sizes().horizon,
    ladder_horizon=Sizes().ladder_horizon,
    alarm_horizon=Sizes().alarm_horizon,
)
"""As few repeats, each as long as those that are documented."""


@pytest.mark.parametrize("correlation", [0.0, 0.2, 0.5])
def test_pairs_of_a_conversation_have_the_correlation_asked_for(correlation: float) -> None:
    pairs, owner = conversations(
        np.random.default_rng(1), 40_000, Rates(harm=0.15, benefit=0.05), correlation
    )
    assert pairs.mean() == pytest.approx(0.1, abs=0.01)
    sizes, sums = np.bincount(owner), np.bincount(owner, pairs - pairs.mean())
    squares = np.bincount(owner, (pairs - pairs.mean()) ** 2)
    within = (sums**2 - squares).sum() / (sizes * (sizes - 1)).sum()
    assert within / pairs.var() == pytest.approx(correlation, abs=0.02)
    assert sizes.mean() == pytest.approx(4, abs=0.05)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_every_part_fills_its_lines_and_repeats_with_its_seed(part: object) -> None:
    assert callable(part)
    rows = list(part(np.random.default_rng(2), FEW))
    assert rows
    for row in rows:
        assert written(row).count("|") == 8
        assert all(cell.strip() for cell in (row.measured, row.case))
    assert [written(row) for row in part(np.random.default_rng(2), FEW)] == [written(row) for row in rows]


def of_a_row(cells: str) -> tuple[str, ...]:
    """What does not come of chance: measured, case, bound, reference, source."""
    measured, case, _, _, *rest = (cell.strip() for cell in cells.strip("| ").split(" | "))
    return measured, case, *rest


@pytest.mark.parametrize("heading", ["default", "long"])
def test_the_documented_tables_have_the_lines_of_the_simulation(heading: str) -> None:
    """Their figures take minutes; that they are of the same cases, bounds and references is seen at once."""
    text = (Path(__file__).parents[2] / "docs" / "simulation.md").read_text()
    table = text.split(f"## Table of a {heading} run")[1].split("\n## ")[0]
    told = [of_a_row(each) for each in table.splitlines() if each.startswith("| ")][1:]
    assert told == lines_now()


@cache
def lines_now() -> list[tuple[str, ...]]:
    return [of_a_row(written(row)) for part in PARTS for row in part(np.random.default_rng(2), BRIEF)]


def line(found: float, error: float, bound: float | None) -> Row:
    return Row(measured="a", case="b", found=found, error=error, reference="-", source="-", bound=bound)


def test_a_rate_is_above_its_bound_only_beyond_chance() -> None:
    assert line(0.09, 0.01, 0.05).exceeded
    assert not line(0.07, 0.01, 0.05).exceeded
    assert not line(0.9, 0.01, None).exceeded


def test_rates_and_pairs_are_written_as_such() -> None:
    words = {"measured": "a", "case": "b", "reference": "c", "source": "d"}
    assert written(share([True, False, False, False], bound=0.05, **words)) == (
        "| a | b | 0.250 | 0.2165 | at most 0.05 | c | d |"
    )
    some = [1000.0, 2000.0, 3000.0, 4000.0, math.inf]
    assert "| 3,000 |" in written(typical(some, **words))
    assert "| never |" in written(typical([1.0, math.inf, math.inf], **words))
