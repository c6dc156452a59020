"""Numbers in a reason are readable, and never alike when they differ."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.decision.wording import compared_e_values, compared_shares, e_value


@pytest.mark.parametrize(
    ("log_e", "text"),
    [
        (0.0, "1"),
        (math.log(20), "20"),
        (math.log(0.00123), "0.00123"),
        (math.log(6400), "6400"),
        (math.log(58_512.3), "58500"),
        (math.log(1.5e9), "1.5e+9"),
        (15455.239202521669, "1.33e+6712"),
        (-819.2605957692988, "1.58e-356"),
        (math.inf, "infinity"),
    ],
)
def test_an_e_value_is_written_from_its_logarithm(log_e: float, text: str) -> None:
    assert e_value(log_e) == text


def test_a_near_miss_does_not_read_as_a_pass() -> None:
    assert compared_e_values(math.log(19.9999), math.log(20)) == ("19.9999", "20")
    assert compared_shares(0.0100251, 0.01) == ("0.01003", "0.01")
    assert compared_shares(0.01, 0.01) == ("0.01", "0.01")


@given(st.floats(-1000, 1000), st.floats(-1000, 1000))
def test_two_e_values_that_differ_are_written_differently(first: float, second: float) -> None:
    one, other = compared_e_values(first, second)
    if abs(first - second) > 1e-9:
        assert one != other
