"""Metric sets under the engine of verdicts: three answers, whichever way is worse."""

from __future__ import annotations

import math
import random

import pytest

from service.decision.eprocess import Differences, log_e_harm, log_e_noninferiority
from service.decision.metric_sets import MetricSet, SetFinding, Worse, compare_series
from service.decision.verdict import Decision


def compared(higher: int, lower: int, equal: int, worse: Worse = Worse.INCREASE) -> SetFinding:
    steps = higher + lower + equal
    return compare_series(
        MetricSet(
            control=[1.0] * steps, experiment=[2.0] * higher + [0.5] * lower + [1.0] * equal, worse=worse
        ),
        alpha_accept=0.05,
        alpha_harm=0.05,
    )


def test_the_decision_is_that_of_the_two_e_values() -> None:
    for higher, lower, equal in [(0, 0, 0), (5, 5, 0), (90, 90, 0), (60, 5, 10), (0, 0, 40), (3, 60, 0)]:
        found = compared(higher, lower, equal)
        counts = Differences.of({1.0: higher, -1.0: lower, 0.0: equal})
        harm, fine = log_e_harm(counts, 0.25) >= 2.9957323, log_e_noninferiority(counts, 0.25) >= 2.9957323
        asked = Decision.REJECT if harm else Decision.ACCEPT if fine else Decision.UNDECIDED
        assert found.decision is asked, (higher, lower, equal)


def test_the_same_steps_read_by_what_is_worse() -> None:
    assert compared(100, 0, 0, Worse.INCREASE).decision is Decision.REJECT
    assert compared(100, 0, 0, Worse.DECREASE).decision is Decision.ACCEPT
    assert compared(100, 0, 0, Worse.EITHER).decision is Decision.REJECT
    assert compared(100, 0, 0, Worse.EITHER).upwards
    assert not compared(0, 100, 0, Worse.EITHER).upwards
    assert compared(0, 0, 100, Worse.EITHER).decision is Decision.ACCEPT


def test_steps_without_both_values_are_none() -> None:
    found = compare_series(
        MetricSet(control=[1.0, None, 1.0, None], experiment=[None, 1.0, 1.0, None]),
        alpha_accept=0.05,
        alpha_harm=0.05,
    )
    assert (found.steps, found.decision) == (1, Decision.UNDECIDED)
    nothing = compare_series(MetricSet(control=[], experiment=[]), alpha_accept=0.05, alpha_harm=0.05)
    assert (nothing.steps, nothing.theta, nothing.decision) == (0, None, Decision.UNDECIDED)


def test_differences_within_the_tolerance_are_none_also_of_negative_values() -> None:
    found = compare_series(
        MetricSet(
            control=[100.0, 100.0, 100.0, -100.0, 0.0],
            experiment=[104.0, 106.0, 91.0, -94.0, 0.0],
            rise=0.05,
            fall=0.1,
        ),
        alpha_accept=0.05,
        alpha_harm=0.05,
    )
    assert (found.higher, found.lower, found.steps) == (2, 0, 5)


def test_looking_after_every_step_seldom_calls_equal_series_harmful() -> None:
    """At theta = 0, looked at 300 times; alpha is .05 and the margin leaves much of it."""
    drawn, harmful = random.Random(3), 0
    for _ in range(100):
        counts = {1.0: 0, -1.0: 0}
        for _ in range(300):
            counts[drawn.choice((1.0, -1.0))] += 1
            if log_e_harm(Differences.of(counts), 0.25) >= 2.9957323:
                harmful += 1
                break
    assert harmful <= 5


@pytest.mark.parametrize("margin", [0.0, 1.0, -0.1])
def test_a_margin_is_a_share(margin: float) -> None:
    with pytest.raises(ValueError, match="margin"):
        compare_series(
            MetricSet(control=[], experiment=[]), margin=margin, alpha_accept=0.05, alpha_harm=0.05
        )


def test_both_ways_share_the_error_rate_of_harm() -> None:
    between = [
        higher
        for higher in range(5, 60)
        if 20 <= math.exp(log_e_harm(Differences.of({1.0: higher, 0.0: 20}), 0.25)) < 40
    ]
    assert between
    for higher in between:
        assert compared(higher, 0, 20, Worse.INCREASE).decision is Decision.REJECT
        assert compared(higher, 0, 20, Worse.EITHER).decision is not Decision.REJECT
