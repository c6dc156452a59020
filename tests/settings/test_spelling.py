"""What is spelt can be read again, to the same number."""

from __future__ import annotations

import pytest

from service.settings import spelling, units


@pytest.mark.parametrize(
    ("seconds", "spelt"), [(0.5, "500ms"), (90.0, "90s"), (1800.0, "30m"), (86400.0, "1d"), (5400.0, "90m")]
)
def test_a_duration_has_the_largest_unit_that_fits(seconds: float, spelt: str) -> None:
    assert spelling.duration(seconds) == spelt
    assert units.seconds(spelt) == seconds


@pytest.mark.parametrize("number", [0.0, 0.01, 0.005, 0.5, 1.0, 1e-6])
def test_shares_and_points_come_back(number: float) -> None:
    assert units.share(spelling.share(number)) == pytest.approx(number)
    assert units.points(spelling.points(number)) == pytest.approx(number)


def test_no_limit_is_none() -> None:
    assert units.limit_seconds(spelling.duration(None)) is None
