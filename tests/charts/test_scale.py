"""From numbers to places and to round ticks."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from service.charts.scale import Scale, brief, log_ticks, spread, ticks, written

FINITE = st.floats(-1e6, 1e6)


def test_a_scale_lays_numbers_between_its_ends_and_stops_there() -> None:
    scale = Scale(low=0, high=10, start=100, end=200)
    assert [scale(number) for number in (0, 5, 10, -3, 99)] == [100, 150, 200, 100, 200]
    down = Scale(low=0, high=10, start=200, end=100)
    assert down(2.5) == 175


def test_a_logarithmic_scale_gives_each_power_the_same_room() -> None:
    scale = Scale(low=1, high=1000, start=0, end=300, logarithmic=True)
    assert [round(scale(number), 6) for number in (1, 10, 100, 1000, 0)] == [0, 100, 200, 300, 0]


@pytest.mark.parametrize(
    ("low", "high", "logarithmic"), [(1, 1, False), (2, 1, False), (0, 1, True), (0, math.inf, False)]
)
def test_a_scale_without_extent_is_refused(low: float, high: float, logarithmic: bool) -> None:
    with pytest.raises(ValueError, match="scale"):
        Scale(low=low, high=high, start=0, end=1, logarithmic=logarithmic)


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [
        (0, 10, [0, 2, 4, 6, 8, 10]),
        (-0.3, 1.1, [0, 0.5, 1.0]),
        (0, 1450, [0, 500, 1000]),
    ],
)
def test_ticks_are_round(low: float, high: float, found: list[float]) -> None:
    assert ticks(low, high) == pytest.approx(found)


@given(FINITE, FINITE, st.integers(2, 10))
def test_ticks_are_few_and_within(low: float, high: float, most: int) -> None:
    assume(high - low > 1e-9)
    found = ticks(low, high, most)
    assert len(found) <= most + 1
    room = 1e-6 * (high - low)
    assert all(low - room <= number <= high + room for number in found)


@given(st.floats(1e-6, 1e5), st.floats(1.01, 1e5))
def test_logarithmic_ticks_are_few_and_within(low: float, times: float) -> None:
    found = log_ticks(low, low * times)
    assert 1 <= len(found) <= 6
    assert all(low * 0.999 <= number <= low * times * 1.001 for number in found)


def test_ticks_have_the_decimals_that_tell_them_apart() -> None:
    assert written([0, 0.25, 0.5]) == ["0.00", "0.25", "0.50"]
    assert written([0, 0.2, 0.4]) == ["0.0", "0.2", "0.4"]
    assert written([0, 500, 1000]) == ["0", "500", "1,000"]
    assert written([-0.2, 0.0]) == ["-0.2", "0.0"]
    assert [brief(number) for number in (0.05, 2, 1500)] == ["0.05", "2", "1,500"]


@given(st.lists(st.floats(-1e9, 1e9), max_size=6), st.booleans())
def test_limits_hold_everything_and_are_apart(numbers: list[float], from_zero: bool) -> None:
    low, high = spread(numbers, from_zero=from_zero)
    assert low < high
    assert all(low <= number <= high for number in numbers)
    assert not from_zero or low <= 0 <= high or not numbers


def test_nothing_has_limits_as_well() -> None:
    assert spread([]) == (0, 1)
    assert spread([math.inf, math.nan]) == (0, 1)
