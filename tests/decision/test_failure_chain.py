"""What a failed answer costs, step by step."""

from __future__ import annotations

import math
from typing import Any

import pytest

from service.decision.failure_chain import RETRY_OR_ESCALATE, ChainStep, FailureChain

LONG = FailureChain(
    steps=(
        ChainStep(name="retry", multiple=1.0),
        ChainStep(name="second retry", share=0.4, multiple=1.0),
        ChainStep(name="bigger model", share=0.5, multiple=6.0),
        ChainStep(name="person", share=0.1, price=20.0),
    )
)


def test_a_failure_costs_four_baseline_requests_by_default() -> None:
    """Tried again, and half of those go to a model at six times the price."""
    assert RETRY_OR_ESCALATE.weight == 4
    assert RETRY_OR_ESCALATE.price == 0


def test_each_step_is_reached_by_a_share_of_those_at_the_step_before() -> None:
    assert [round(reach, 10) for _, reach in LONG.reached] == [1, 0.4, 0.2, 0.02]
    assert LONG.weight == pytest.approx(1 + 0.4 + 0.2 * 6)
    assert LONG.price == pytest.approx(0.02 * 20)
    assert LONG.cost(0.05) == pytest.approx(2.6 * 0.05 + 0.4)


def test_a_chain_without_steps_costs_nothing() -> None:
    assert (FailureChain(steps=()).weight, FailureChain(steps=()).price) == (0, 0)


def test_a_weight_alone_is_a_chain() -> None:
    assert FailureChain.of_weight(2.5).weight == 2.5


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"share": 1.1},
        {"share": -0.1},
        {"multiple": -1.0},
        {"price": math.inf},
        {"multiple": math.nan},
    ],
)
def test_impossible_steps_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"needs a name|must be"):
        ChainStep(**{"name": "retry", **wrong})
