"""What a tier would cost, from given numbers: the worked example of the docs and its neighbours."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from service.decision.costing import Costing, Offer
from service.decision.economics import advantage
from service.decision.failure_chain import ChainStep, FailureChain

BASELINE = Offer(price_per_hour=60, tokens_per_second=1000, output_tokens=300, failures=0.008)
WORKED = Costing(baseline=BASELINE, candidate=replace(BASELINE, tokens_per_second=2100, failures=0.049))


@pytest.mark.parametrize(("weight", "left"), [(3, 1.67), (4, 1.56), (5, 1.47)])
def test_the_worked_example_leaves_about_one_point_six(weight: float, left: float) -> None:
    """2.1 x throughput, JSON failure 0.8 % to 4.9 %: design section 1 and statistics A9."""
    costing = replace(WORKED, failure=FailureChain.of_weight(weight))
    assert round(costing.times_cheaper, 2) == left
    assert costing.times_cheaper == pytest.approx(
        advantage(throughput_ratio=2.1, failure_rise=0.041, weight=weight)
    )


def test_costs_are_those_of_the_formulas() -> None:
    assert WORKED.baseline.unit_cost == pytest.approx(60e6 / (1000 * 3600))
    assert WORKED.baseline.request_cost == pytest.approx(0.005)
    assert WORKED.failure_cost == pytest.approx(0.02)
    assert WORKED.net_benefit == pytest.approx(0.005 - 0.005 / 2.1 - 0.02 * 0.041)
    assert WORKED.net_benefit_per_million == pytest.approx(WORKED.net_benefit / 300 * 1e6)


def test_at_break_even_nothing_is_left() -> None:
    assert WORKED.break_even is not None
    candidate = replace(WORKED.candidate, failures=0.008 + WORKED.break_even)
    assert replace(WORKED, candidate=candidate).net_benefit == pytest.approx(0, abs=1e-12)
    assert replace(WORKED, failure=FailureChain(steps=())).break_even is None


def test_the_effective_cost_pays_for_the_first_step_of_the_chain() -> None:
    cost = WORKED.effective_cost(WORKED.candidate)
    assert cost == pytest.approx(WORKED.candidate.unit_cost / (1 - 0.049))
    half = FailureChain(steps=(ChainStep(name="retry", share=0.5, multiple=1),))
    some = replace(WORKED, failure=half)
    assert some.effective_cost(WORKED.candidate) == pytest.approx(WORKED.candidate.unit_cost / (1 - 0.0245))
    hopeless = replace(WORKED.candidate, failures=1.0)
    assert WORKED.effective_cost(hopeless) is None


def test_a_tier_for_nothing_is_infinitely_cheaper() -> None:
    free = replace(WORKED.candidate, price_per_hour=0, failures=0.0)
    assert replace(WORKED, candidate=free).times_cheaper == math.inf


@pytest.mark.parametrize(
    "wrong",
    [
        {"price_per_hour": -1},
        {"tokens_per_second": 0},
        {"output_tokens": 0},
        {"failures": 1.5},
        {"tokens_per_second": math.inf},
    ],
)
def test_impossible_offers_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        replace(BASELINE, **wrong)


def test_operations_cost_something_or_nothing() -> None:
    dear = replace(WORKED, operations=0.001)
    assert dear.net_benefit == pytest.approx(WORKED.net_benefit - 0.001)
    with pytest.raises(ValueError, match="operations"):
        replace(WORKED, operations=-1)
