"""The quick search for the first crossing is the look after every unit that it stands for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.decision.eprocess import Differences, log_e_harm, log_e_noninferiority
from tests.benchmarks.crossings import Stream, first_harm, first_pass

D = st.sampled_from([0.0] * 12 + [-1.0, -0.5, 0.25, 1.0])
MARGINS = st.sampled_from([0.01, 0.05, 0.2])
THRESHOLDS = st.sampled_from([0.05, 0.5, math.log(20)])


def looking(units: list[float], reached: object) -> float:
    """Look after every unit with the real function."""
    assert callable(reached)
    for n in range(1, len(units) + 1):
        values, counts = np.unique(units[:n], return_counts=True)
        if reached(Differences.of(dict(zip(values.tolist(), counts.tolist(), strict=True)))):
            return float(n)
    return math.inf


@settings(deadline=None)
@given(st.lists(D, min_size=1, max_size=120), MARGINS, THRESHOLDS)
def test_the_first_pass_is_found_where_looking_finds_it(
    units: list[float], margin: float, threshold: float
) -> None:
    found = first_pass(Stream.of(np.array(units)), margin, threshold)
    assert found == looking(units, lambda seen: log_e_noninferiority(seen, margin) >= threshold)


@settings(deadline=None)
@given(st.lists(D, min_size=1, max_size=120), st.sampled_from([0.0, 0.01, 0.2]), THRESHOLDS)
def test_the_first_harm_is_found_where_looking_finds_it(
    units: list[float], margin: float, threshold: float
) -> None:
    found = first_harm(Stream.of(np.array(units)), margin, threshold)
    assert found == looking(units, lambda seen: log_e_harm(seen, margin) >= threshold)


@pytest.mark.parametrize(("length", "found"), [(600, 481), (480, math.inf)])
def test_without_a_differing_pair_one_point_passes_at_481(length: int, found: float) -> None:
    assert first_pass(Stream.of(np.zeros(length)), 0.01, math.log(20)) == found
