from __future__ import annotations

import json
import math

import pytest

from service.load.plan import Arrivals, BlockPlan, Part


def test_a_plan_survives_json() -> None:
    plan = BlockPlan(tier="w8a8", part=Part.COST, rate=4.5, seed=7, window_seconds=75)
    assert BlockPlan.of(json.loads(json.dumps(plan.document()))) == plan


def test_requests_of_the_window_are_those_due_in_it() -> None:
    plan = BlockPlan(tier="a", part=Part.SLO, rate=1, warm_up_seconds=10, window_seconds=20)
    assert [plan.counts(at) for at in (9.99, 10.0, 29.99, 30.0)] == [False, True, True, False]
    assert plan.seconds == 30


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"rate": 0},
        {"rate": math.inf},
        {"rate": math.nan},
        {"rate": 1, "concurrency": 3},
        {"arrivals": Arrivals.CLOSED},
        {"arrivals": Arrivals.CLOSED, "concurrency": 0},
        {"arrivals": Arrivals.CLOSED, "concurrency": 2, "rate": 1},
        {"rate": 1, "window_seconds": 0},
        {"rate": 1, "warm_up_seconds": -1},
        {"rate": 1, "cool_down_seconds": math.inf},
    ],
)
def test_a_plan_that_cannot_be_is_refused(more: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"rate|concurrency|closed|window|warm-up|cool-down"):
        BlockPlan(tier="a", part=Part.SLO, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "told", [{}, {"tier": "a", "part": "slo", "rate": 1, "more": 1}, {"tier": "a", "part": "x", "rate": 1}]
)
def test_another_document_is_no_plan(told: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"plan|Part|Arrivals"):
        BlockPlan.of(told)
