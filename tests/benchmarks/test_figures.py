"""Benchmarks judge by what they say: slopes, A/A ranges, missed figures, and names with their options."""

from __future__ import annotations

import math

import pytest

from tests.benchmarks.__main__ import ALL, asked_for
from tests.benchmarks.faults import FAULTS, SIGNS
from tests.benchmarks.figures import Figure, end, is_void, middle, table
from tests.benchmarks.isolation import judge, took_effect
from tests.benchmarks.memory import slope_per_minute
from tests.benchmarks.rig import quantile

QUIET = [0.96, 0.98, 1.0, 1.01, 1.03]
RESTLESS = [0.8, 0.95, 1.0, 1.05, 1.2]


def test_memory_that_grows_has_the_slope_of_its_growth() -> None:
    assert slope_per_minute([(10.0 + second, 50 + second / 60 * 3) for second in range(60)]) == pytest.approx(
        3
    )
    assert slope_per_minute([(0.0, 7.0), (1.0, 7.0), (2.0, 7.0)]) == pytest.approx(0)
    assert slope_per_minute([(0.0, 7.0), (1.0, 9.0)]) == 0.0


def test_quantiles_are_interpolated() -> None:
    assert quantile([3, 1, 2], 0.5) == 2
    assert quantile([0, 10], 0.25) == 2.5
    assert math.isnan(quantile([], 0.5))


def test_a_run_is_void_when_an_arm_differs_from_itself() -> None:
    assert not is_void(QUIET)
    assert is_void(RESTLESS)
    assert middle(QUIET) == pytest.approx((0.962, 1.028))


@pytest.mark.parametrize(
    ("ratios", "again", "met"),
    [
        ([1.0, 1.01, 1.02], QUIET, True),
        ([1.04, 1.05, 1.06], QUIET, False),
        ([0.5, 0.6, 0.7], QUIET, True),
        ([1.09, 1.1, 1.3], [0.9, 1.0, 1.14], True),
        ([1.09, 1.11, 1.3], [0.9, 1.0, 1.14], False),
    ],
)
def test_a_fault_must_stay_within_a_tenth_and_within_the_spread_of_no_fault(
    ratios: list[float], again: list[float], met: bool
) -> None:
    assert judge("a fault", ratios, again).met is met


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_that_shows_nowhere_is_missed(name: str) -> None:
    effect = SIGNS[name].effect
    assert took_effect(name, {effect: 3, "batches recorded": 7}).met is True
    assert took_effect(name, {"batches recorded": 7}).met is False


def test_a_missed_figure_ends_a_benchmark_with_an_error_that_names_it() -> None:
    figures = [
        Figure.at_most("slope", 0.4, 1.0, "MiB/min"),
        Figure(what="shown", found="7", figure="-", met=None),
    ]
    end(figures)
    with pytest.raises(SystemExit, match="missed: lag"):
        end([*figures, Figure.at_most("lag", 1.4, 1.0, "ms")])
    with pytest.raises(SystemExit, match="void"):
        end(figures, void=True)
    assert "| slope | 0.40 MiB/min | <= 1 MiB/min | met |" in table(figures)


def test_options_belong_to_the_benchmark_before_them() -> None:
    assert asked_for(["latency", "--rounds", "2", "soak"]) == [("latency", ["--rounds", "2"]), ("soak", [])]
    assert [name for name, _ in asked_for([])] == list(ALL)
    with pytest.raises(ValueError, match="no benchmark called latencies; there are throughput"):
        asked_for(["latencies"])
