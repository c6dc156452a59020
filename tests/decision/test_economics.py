"""Costs against exact arithmetic and Fieller's roots; the worked example; MOVER limits."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.decision.economics import (
    Estimate,
    advantage,
    effective_cost,
    mean_of_blocks,
    money_shown,
    net_benefit,
    ratio_of_blocks,
    request_cost,
    unit_cost,
)
from service.decision.evidence import Shown

ORACLE = json.loads((Path(__file__).parent / "oracles" / "cost.json").read_text())


def estimate(value: float, half: float) -> Estimate:
    return Estimate(value=value, lower=value - half, upper=value + half)


@pytest.mark.parametrize("case", ORACLE["unit_cost"])
def test_costs_agree_with_exact_arithmetic(case: dict[str, float]) -> None:
    cost = unit_cost(price_per_hour=case["price_per_hour"], tokens_per_second=case["slo_tok_per_s"])
    assert cost == pytest.approx(case["unit_cost_per_1M"], rel=ORACLE["tolerance"]["cost"])
    effective = effective_cost(cost, retry_rate=case["retry_rate"])
    assert effective == pytest.approx(case["effective_cost_per_1M"], rel=ORACLE["tolerance"]["cost"])


def test_the_ratio_of_two_costs_agrees_with_fieller() -> None:
    case = ORACLE["fieller"]
    found = ratio_of_blocks(case["x"], case["y"], level=case["conf"])
    tolerance = ORACLE["tolerance"]["fieller"]
    assert found.value == pytest.approx(case["ratio"], abs=tolerance)
    assert (found.lower, found.upper) == pytest.approx(case["ci"], abs=tolerance)
    # A bootstrap (BCa) of the same blocks is about as wide.
    assert (found.lower, found.upper) == pytest.approx(
        case["bca90_scipy"], abs=2 * ORACLE["tolerance"]["bca"]
    )


@pytest.mark.parametrize("level", [0.0, 1.0, math.nan])
def test_a_level_is_a_probability(level: float) -> None:
    with pytest.raises(ValueError, match="level"):
        mean_of_blocks([1.0, 2.0], level=level)


def test_blocks_without_spread_have_one_ratio() -> None:
    found = ratio_of_blocks([0.1, 0.1], [0.3, 0.3], level=1 - 1e-16)
    assert found.lower <= found.value <= found.upper
    assert found.upper - found.lower < 1e-12


def test_a_ratio_to_something_around_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="denominator"):
        ratio_of_blocks([1.0, 2.0, 3.0], [-1.0, 0.5, 0.6], level=0.9)


@pytest.mark.parametrize(("weight", "left"), [(3, 1.67), (4, 1.56), (5, 1.47)])
def test_twice_the_throughput_leaves_about_one_point_six(weight: float, left: float) -> None:
    """2.1 x throughput; JSON failure 0.8 % to 4.9 % = 4.1 points: the worked example of the docs."""
    found = advantage(throughput_ratio=2.1, failure_rise=0.049 - 0.008, weight=weight)
    assert round(found, 2) == left


def test_failures_cured_for_free_have_no_price() -> None:
    assert advantage(throughput_ratio=2.0, failure_rise=-0.2, weight=4) == math.inf


def test_a_request_costs_its_tokens() -> None:
    assert request_cost(0.5, mean_output_tokens=400) == pytest.approx(0.0002)


def test_blocks_give_students_limits() -> None:
    # mean 3, s = 1, n = 4: 3 -+ 2.3534 / 2 at 90 % (t with 3 degrees of freedom).
    found = mean_of_blocks([2.0, 3.0, 3.0, 4.0], level=0.9)
    half = 2.3533634348018264 * math.sqrt((2 / 3) / 4)
    assert (found.value, found.lower, found.upper) == pytest.approx((3, 3 - half, 3 + half), rel=1e-9)


def test_net_benefit_combines_limits_by_mover() -> None:
    found = net_benefit(
        baseline=Estimate(value=1.0, lower=0.9, upper=1.3),
        candidate=Estimate(value=0.5, lower=0.45, upper=0.7),
        failure_rise=Estimate(value=0.02, lower=0.01, upper=0.05),
        weight=4,
        operations=0.05,
    )
    assert found.value == pytest.approx(1 - 0.5 - 4 * 0.02 - 0.05)
    assert found.lower == pytest.approx(found.value - math.sqrt(0.1**2 + 0.2**2 + (4 * 0.03) ** 2))
    assert found.upper == pytest.approx(found.value + math.sqrt(0.3**2 + 0.05**2 + (4 * 0.01) ** 2))


def test_what_a_failure_costs_besides_is_charged_with_its_limits() -> None:
    rise = Estimate(value=0.02, lower=0.01, upper=0.05)
    sure = estimate(1.0, 0.0)
    found = net_benefit(baseline=sure, candidate=sure, failure_rise=rise, weight=4, price=6)
    assert (found.value, found.lower, found.upper) == pytest.approx((-0.2, -0.5, -0.1))


def test_mover_limits_cover() -> None:
    """One-sided 95 % lower limit over 8 normal blocks an arm: statistics B5 found .944; seeded."""
    generator = np.random.default_rng(5)
    rise = Estimate(value=0.0, lower=0.0, upper=0.0)
    repeats, held = 1500, 0
    for _ in range(repeats):
        limits = net_benefit(
            baseline=mean_of_blocks(list(generator.normal(1.0, 0.05, 8)), level=0.9),
            candidate=mean_of_blocks(list(generator.normal(0.6, 0.05, 8)), level=0.9),
            failure_rise=rise,
            weight=4,
        )
        held += limits.lower <= 0.4
    assert held / repeats == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize(
    ("limits", "shown"),
    [
        ((0.1, 0.01, 0.2), Shown.PASSED),
        ((-0.1, -0.2, -0.01), Shown.FAILED),
        ((0.1, -0.1, 0.3), Shown.UNDECIDED),
    ],
)
def test_money_is_shown_only_by_limits_on_one_side_of_zero(
    limits: tuple[float, float, float], shown: Shown
) -> None:
    value, lower, upper = limits
    measured = money_shown(Estimate(value=value, lower=lower, upper=upper))
    assert measured.shown is shown
    assert f"{value:g}" in measured.reason


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: unit_cost(price_per_hour=-1, tokens_per_second=10),
        lambda: unit_cost(price_per_hour=1, tokens_per_second=0),
        lambda: effective_cost(1, retry_rate=1),
        lambda: request_cost(1, mean_output_tokens=-1),
        lambda: advantage(throughput_ratio=0, failure_rise=0, weight=4),
        lambda: mean_of_blocks([1.0], level=0.9),
        lambda: Estimate(value=1, lower=2, upper=3),
    ],
)
def test_impossible_figures_are_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        wrong()
