"""Costs from the findings: what the gate computed, with the level that the gate was held to."""

from __future__ import annotations

from typing import Any

import pytest

from service.decision.retries import RetryRate
from service.report.gathering.pricing import prices

RETRY = RetryRate(value=0.2, lower=0.1, upper=0.3, source="live")
GOODPUTS = [1000.0, 1010.0, 990.0, 1000.0]


def arm(tier: str = "w8a8", **changes: Any) -> dict[str, Any]:
    told = {
        "tier": tier,
        "rate": 8.0,
        "goodputs": GOODPUTS,
        "backends": 1,
        "price_per_hour": 36.0,
        "mean_output_tokens": 100.0,
    }
    return {**told, **changes}


def gate(**numbers: float) -> dict[str, Any]:
    return {"gate": "money", "tier": "w8a8", "reason": "told so", "numbers": numbers}


def test_costs_are_of_fresh_blocks_with_the_level_of_the_gate() -> None:
    numbers = {
        "alpha": 0.025,
        "k: failure in baseline requests": 4.0,
        "failure besides": 0.5,
        "operations": 0.001,
        "rise of failures": 0.01,
        "rise of failures, lower": 0.0,
        "rise of failures, upper": 0.02,
        "net benefit per request": 0.1,
        "net benefit per request, lower": 0.05,
        "net benefit per request, upper": 0.2,
    }
    found = prices({"cost": [arm()], "gates": [gate(**numbers)]}, {"w8a8": RETRY})["w8a8"]
    assert found.unit_cost is not None
    assert found.unit_cost.value == pytest.approx(36 * 1e6 / (1000 * 3600), rel=1e-3)
    assert (found.unit_cost.level, found.unit_cost.n) == (pytest.approx(0.95), 4)
    assert found.request_cost is not None
    assert found.request_cost.value == pytest.approx(found.unit_cost.value * 100 / 1e6)
    assert found.effective_cost is not None
    assert found.effective_cost.value == pytest.approx(found.unit_cost.value / 0.8)
    assert found.tokens_per_second is not None
    assert found.tokens_per_second.value == pytest.approx(1000)
    assert (found.failure_weight, found.failure_price, found.operations) == (4.0, 0.5, 0.001)
    assert found.net_benefit is not None
    assert (found.net_benefit.lower, found.net_benefit.upper) == (0.05, 0.2)
    assert found.net_benefit_per_million is None
    assert found.shown == "told so"
    assert found.retry_rate is not None
    assert found.retry_rate.level == 0.95


def test_the_baseline_has_the_level_of_the_gates_and_no_net_benefit() -> None:
    found = prices({"cost": [arm("bf16"), arm()], "gates": [gate(alpha=0.01)]}, {})
    assert found["bf16"].unit_cost is not None
    assert found["bf16"].unit_cost.level == pytest.approx(0.98)
    assert (found["bf16"].net_benefit, found["bf16"].retry_rate, found["bf16"].effective_cost) == (
        None,
        None,
        None,
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"price_per_hour": None},
        {"mean_output_tokens": None},
        {"goodputs": []},
        {"goodputs": [1.0]},
        {"goodputs": [1.0, 0.0]},
    ],
)
def test_what_is_not_known_is_no_number(changes: dict[str, Any]) -> None:
    found = prices({"cost": [arm(**changes)], "gates": []}, {"w8a8": RETRY})["w8a8"]
    assert (found.unit_cost, found.request_cost, found.effective_cost) == (None, None, None)


def test_a_rate_from_two_sources_has_no_limits() -> None:
    found = prices({"cost": [arm()]}, {"w8a8": RetryRate(value=0.2, lower=None, upper=None, source="both")})[
        "w8a8"
    ]
    assert found.retry_rate is not None
    assert found.retry_rate.level is None


def test_before_the_cost_part_is_over_there_are_no_prices() -> None:
    assert prices({}, {}) == {}
