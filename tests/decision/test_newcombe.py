"""Newcombe's method 10 against R and the published tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.decision import newcombe

ORACLES = Path(__file__).parent / "oracles"
COMPUTED = json.loads((ORACLES / "paired_binary_R.json").read_text())
PUBLISHED = json.loads((ORACLES / "published.json").read_text())


@pytest.mark.parametrize("case", COMPUTED["cases"], ids=lambda case: f"{case['b']}-{case['c']}-{case['n']}")
def test_limits_agree_with_r(case: dict[str, Any]) -> None:
    found = newcombe.interval(
        both_failed=case["a"], harm=case["b"], benefit=case["c"], n=case["n"], level=0.95
    )
    assert found == pytest.approx(case["newcombe10_ci95"], abs=COMPUTED["tolerance"]["ci"])


@pytest.mark.parametrize(
    "case",
    [case for case in PUBLISHED["cases"] if case["method"] == "newcombe10"],
    ids=lambda case: case["src"],
)
def test_limits_agree_with_the_published_tables(case: dict[str, Any]) -> None:
    both, first, second, neither = case["x"]
    found = newcombe.interval(
        both_failed=both, harm=first, benefit=second, n=both + first + second + neither, level=case["conf"]
    )
    assert found == pytest.approx(case["ci"], abs=case["tol"])


def test_without_pairs_nothing_is_known() -> None:
    assert newcombe.interval(both_failed=0, harm=0, benefit=0, n=0, level=0.9) == (-1.0, 1.0)


def test_more_failures_than_pairs_are_refused() -> None:
    with pytest.raises(ValueError, match="more failures than pairs"):
        newcombe.interval(both_failed=8, harm=2, benefit=1, n=10, level=0.9)


@pytest.mark.parametrize("level", [0.0, 1.0])
def test_a_level_is_a_probability(level: float) -> None:
    with pytest.raises(ValueError, match="level"):
        newcombe.interval(both_failed=0, harm=0, benefit=0, n=5, level=level)


@given(st.integers(0, 10**7), st.integers(0, 10**7), st.integers(0, 10**7), st.integers(0, 10**7))
def test_every_valid_table_has_ordered_limits_around_the_estimate(a: int, b: int, c: int, d: int) -> None:
    n = a + b + c + d
    lower, upper = newcombe.interval(both_failed=a, harm=b, benefit=c, n=n, level=0.9)
    assert -1 <= lower <= upper <= 1
    if n:
        assert lower - 1e-12 <= (b - c) / n <= upper + 1e-12
