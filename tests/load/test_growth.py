from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import linregress, t

from service.load.growth import in_flight, slope, span_means


def test_a_slope_has_the_limits_of_the_regression() -> None:
    generator = np.random.default_rng(1)
    times = list(range(10))
    values = [3 * at + float(noise) for at, noise in zip(times, generator.normal(size=10), strict=True)]
    found = slope(times, values, level=0.95)
    expected = linregress(times, values)
    reach = t.ppf(0.975, 8) * expected.stderr
    assert found is not None
    assert (found.value, found.lower, found.upper) == pytest.approx(
        (expected.slope, expected.slope - reach, expected.slope + reach)
    )


def test_a_level_line_does_not_grow_more_often_than_its_level_says() -> None:
    generator = np.random.default_rng(7)
    rising = 0
    for _ in range(400):
        found = slope(range(10), generator.normal(size=10).tolist())
        assert found is not None
        rising += found.lower > 0
    assert rising <= 22  # 10 expected at .025; beyond 22 with probability .0003


@pytest.mark.parametrize("points", [0, 3])
def test_few_points_tell_no_slope(points: int) -> None:
    assert slope(range(points), range(points)) is None
    assert slope([1.0] * 5, range(5)) is None


def test_spans_hold_the_mean_of_what_is_in_them() -> None:
    moments = [(10.0, 1.0), (11.0, 3.0), (19.9, 5.0), (20.0, 7.0)]
    assert span_means(moments, 10.0, 20.0, spans=5) == ([11.0, 19.0], [2.0, 6.0])


def test_requests_in_flight_count_by_the_time_they_were() -> None:
    lives = [(0.0, 10.0), (4.0, 5.0), (8.0, math.inf), (-5.0, -1.0), (20.0, 30.0)]
    middles, counts = in_flight(lives, 0.0, 10.0, spans=5)
    assert middles == [1, 3, 5, 7, 9]
    assert counts == pytest.approx([1, 1, 1.5, 1, 2])


def test_without_requests_none_is_in_flight() -> None:
    assert in_flight([], 0.0, 1.0, spans=2)[1] == [0, 0]
