"""Order-statistic limits and standard errors of a quantile, against scipy."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import quantile_test

from service.decision.quantile import fewest_values, limit_ranks, quantile_limits, sample_quantile

ORACLE = json.loads((Path(__file__).parent / "oracles" / "quantile.json").read_text())


def values(case: dict[str, Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The oracle keeps the values, or the generator that made them."""
    if case["x"] is not None:
        return np.array(case["x"])
    return np.round(np.random.default_rng(case["seed"]).lognormal(5, 0.6, case["n"]), 3)


@pytest.mark.parametrize("case", ORACLE["cases"], ids=lambda case: f"n{case['n']}-p{case['p']}")
def test_limits_and_errors_agree_with_scipy(case: dict[str, Any]) -> None:
    found = quantile_limits(values(case), case["p"])
    assert limit_ranks(case["n"], case["p"]) == tuple(case["ranks"])
    assert [found.lower, found.upper] == pytest.approx(case["scipy_quantile_test_ci95"], abs=1e-9)
    assert found.value == pytest.approx(case["type7"], abs=1e-9)
    assert found.standard_error == pytest.approx(case["mj_se_scipy"], rel=1e-9)


@given(n=st.integers(2, 400), share=st.floats(0.05, 0.99), level=st.sampled_from([0.8, 0.9, 0.95]))
def test_any_size_agrees_with_scipy(n: int, share: float, level: float) -> None:
    numbers = np.arange(float(n))
    lower, upper = quantile_test(numbers, q=0, p=share).confidence_interval(level)
    found = quantile_limits(numbers, share, level=level)
    assert found.lower == (None if math.isnan(lower) else lower)
    assert found.upper == (None if math.isnan(upper) else upper)


@pytest.mark.parametrize(("level", "fewest"), [(0.95, 72), (0.90, 59)])
def test_p95_needs_72_values_for_an_upper_limit_and_59_one_sided(level: float, fewest: int) -> None:
    assert fewest_values(0.95, level=level) == fewest
    assert quantile_limits(np.arange(float(fewest)), 0.95, level=level).upper == fewest - 1
    assert quantile_limits(np.arange(fewest - 1.0), 0.95, level=level).upper is None


@given(share=st.floats(0.05, 0.999), level=st.floats(0.5, 0.999))
def test_the_fewest_values_are_the_fewest(share: float, level: float) -> None:
    fewest = fewest_values(share, level=level)
    assert limit_ranks(fewest, share, level=level)[1] == fewest
    assert limit_ranks(fewest - 1, share, level=level)[1] is None


def test_no_values_have_no_limits_rather_than_none_that_pass() -> None:
    found = quantile_limits([], 0.95)
    assert (found.n, found.value, found.lower, found.upper, found.standard_error) == (
        0,
        None,
        None,
        None,
        None,
    )


def test_requests_that_never_ended_count_as_infinitely_slow() -> None:
    found = quantile_limits([1.0] * 95 + [math.inf] * 5, 0.95)
    assert (found.value, found.lower, found.upper) == (math.inf, 1.0, math.inf)
    assert found.standard_error is None


def test_the_order_of_the_values_does_not_matter() -> None:
    shuffled = np.random.default_rng(1).permutation(np.arange(100.0))
    assert quantile_limits(shuffled, 0.9) == quantile_limits(np.arange(100.0), 0.9)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50), st.floats(0.01, 0.99))
def test_the_sample_quantile_is_numpys(numbers: list[float], share: float) -> None:
    assert sample_quantile(numbers, share) == pytest.approx(np.quantile(numbers, share), rel=1e-9, abs=1e-9)


def test_ten_million_values_have_limits() -> None:
    lower, upper = limit_ranks(10**7, 0.95)
    assert lower is not None
    assert upper is not None
    # The normal approximation is exact to a rank or two here.
    assert (upper - lower) / 2 == pytest.approx(1.959964 * math.sqrt(10**7 * 0.95 * 0.05), abs=2)


@pytest.mark.parametrize("wrong", [[math.nan], [-math.inf], [[1.0], [2.0]]])
def test_what_is_no_measurement_is_refused(wrong: list[Any]) -> None:
    with pytest.raises(ValueError, match="values must be"):
        quantile_limits(wrong, 0.5)


@pytest.mark.parametrize(("share", "level"), [(0.0, 0.9), (1.0, 0.9), (0.5, 0.0), (0.5, 1.0)])
def test_impossible_quantiles_and_levels_are_refused(share: float, level: float) -> None:
    with pytest.raises(ValueError, match=r"in \(0, 1\)"):
        quantile_limits([1.0], share, level=level)


def test_fewer_than_no_values_are_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        limit_ranks(-1, 0.5)


def test_a_sample_quantile_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        sample_quantile([], 0.5)
