"""Tango's score test against R and the published tables."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.decision import tango

ORACLES = Path(__file__).parent / "oracles"
COMPUTED = json.loads((ORACLES / "paired_binary_R.json").read_text())
PUBLISHED = json.loads((ORACLES / "published.json").read_text())
CASES = [pytest.param(case, id=f"{case['b']}-{case['c']}-{case['n']}") for case in COMPUTED["cases"]]
LIMITS = {
    "tango_ci95_ratesci": 0.95,
    "tango_ci90_ratesci": 0.90,
    "tango_ci95_PropCIs": 0.95,
    "tango_ci95_contingencytables": 0.95,
}
TABLES = [pytest.param(case, id=case["src"]) for case in PUBLISHED["cases"] if case["method"] == "tango"]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    ("bound", "column"), [(0.01, "z_d0_p0.01"), (0.02, "z_d0_p0.02"), (0.0, "z_d0_0"), (-0.01, "z_d0_m0.01")]
)
def test_z_agrees_with_r(case: dict[str, Any], bound: float, column: str) -> None:
    found = tango.z(case["b"], case["c"], case["n"], bound)
    assert found == pytest.approx(case[column], abs=COMPUTED["tolerance"]["z"])


@pytest.mark.parametrize("case", CASES)
def test_at_no_difference_the_score_is_mcnemars(case: dict[str, Any]) -> None:
    two_sided = 2 * tango.noninferiority_p(
        min(case["b"], case["c"]), max(case["b"], case["c"]), case["n"], 0.0
    )
    if case["mcnemar_asym"] is not None:
        assert two_sided == pytest.approx(case["mcnemar_asym"], abs=COMPUTED["tolerance"]["p"])


def test_at_no_difference_the_score_is_the_published_mcnemar() -> None:
    (case,) = (each for each in PUBLISHED["mcnemar"] if "asymptotic" in each)
    two_sided = 2 * tango.noninferiority_p(case["b"], case["c"], 161, 0.0)
    assert two_sided == pytest.approx(case["asymptotic"], abs=case["tol"])


@pytest.mark.parametrize(
    ("case", "column", "level"),
    [
        pytest.param(case, column, level, id=f"{case['b']}-{case['c']}-{case['n']}-{column}")
        for case in COMPUTED["cases"]
        for column, level in LIMITS.items()
        if case.get(column) is not None
    ],
)
def test_limits_agree_with_three_r_packages(case: dict[str, Any], column: str, level: float) -> None:
    found = tango.interval(case["b"], case["c"], case["n"], level)
    assert found == pytest.approx(case[column], abs=COMPUTED["tolerance"]["ci"])


@pytest.mark.parametrize("case", TABLES)
def test_limits_agree_with_the_published_tables(case: dict[str, Any]) -> None:
    both, first, second, neither = case["x"]
    found = tango.interval(first, second, both + first + second + neither, case["conf"])
    assert found == pytest.approx(case["ci"], abs=case["tol"])


def test_zero_discordance_passes_one_point_from_268_pairs() -> None:
    assert tango.noninferiority_p(0, 0, 267, 0.01) > 0.05
    assert tango.noninferiority_p(0, 0, 268, 0.01) <= 0.05


def test_at_zero_it_is_mcnemar() -> None:
    assert tango.z(30, 10, 2000, 0.0) ** 2 == pytest.approx((30 - 10) ** 2 / (30 + 10), rel=1e-12)


def test_without_pairs_nothing_is_shown() -> None:
    assert tango.noninferiority_p(0, 0, 0, 0.01) == 1
    assert tango.harm_p(0, 0, 0, 0.01) == 1
    assert tango.interval(0, 0, 0, 0.9) == (-1.0, 1.0)
    assert tango.score(np.zeros(3), np.zeros(3), 0, 0.01) == pytest.approx([0, 0, 0])


def test_no_discordance_and_no_bound_is_no_evidence() -> None:
    assert tango.z(0, 0, 100, 0.0) == 0


def test_harm_and_noninferiority_split_the_certainty() -> None:
    assert tango.harm_p(12, 10, 1000, 0.01) + tango.noninferiority_p(12, 10, 1000, 0.01) == pytest.approx(1)


def test_a_design_effect_is_the_same_as_fewer_pairs() -> None:
    whole = tango.z(12, 10, 1000, 0.01, design_effect=2.0)
    assert whole == pytest.approx(tango.z(6, 5, 500, 0.01), rel=1e-12)
    wider = tango.interval(12, 10, 1000, 0.9, design_effect=2.0)
    assert wider == pytest.approx(tango.interval(6, 5, 500, 0.9), abs=1e-9)


@pytest.mark.parametrize("level", [0.0, 1.0, math.nan])
def test_a_level_is_a_probability(level: float) -> None:
    with pytest.raises(ValueError, match="level"):
        tango.interval(1, 1, 10, level)


@given(st.integers(0, 10**7), st.integers(0, 10**7), st.integers(0, 10**7), st.floats(-0.99, 0.99))
def test_every_valid_table_has_a_z_and_ordered_limits(
    harm: int, benefit: int, concordant: int, bound: float
) -> None:
    n = harm + benefit + concordant
    assert math.isfinite(tango.z(harm, benefit, n, bound))
    lower, upper = tango.interval(harm, benefit, n, 0.9)
    assert -1 <= lower <= upper <= 1
    if n:
        assert lower - 1e-9 <= (harm - benefit) / n <= upper + 1e-9
