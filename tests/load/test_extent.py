from __future__ import annotations

import pytest

from service.decision.slo import plan_run
from service.load.extent import Budget, Pace, extent

PACE = Pace(rate=4.0, arms=2)


def test_a_window_is_extended_until_the_gate_has_power() -> None:
    found = extent(PACE, Budget(), miss_share=0.03, alpha=0.05)
    needed = plan_run(miss_share=0.03, affordable=10**9, alpha=0.05).wanted
    assert found.plan.wanted == needed
    assert found.has_power
    assert found.block_seconds * 8 * 4.0 == pytest.approx(needed)
    assert found.total_seconds == pytest.approx(2 * (180 + 7 * 30 + needed / 4.0))


def test_a_window_is_never_shorter_than_it_was_asked_to_be() -> None:
    found = extent(Pace(rate=100.0, arms=2), Budget(), miss_share=0.01, alpha=0.05)
    assert found.block_seconds * 8 == 600
    assert found.requests == 60_000


def test_a_budget_of_minutes_bounds_it_for_all_arms_together() -> None:
    two = extent(PACE, Budget(seconds=3000), miss_share=0.03, alpha=0.05)
    three = extent(Pace(rate=4.0, arms=3), Budget(seconds=3000), miss_share=0.03, alpha=0.05)
    assert two.total_seconds <= 3000
    assert three.total_seconds <= 3000
    assert (two.plan.affordable, three.plan.affordable) == (1110 * 4, 610 * 4)


def test_where_the_budget_cannot_reach_power_the_gate_says_so_before_the_run() -> None:
    found = extent(PACE, Budget(seconds=900), miss_share=0.03, alpha=0.05)
    assert not found.has_power
    assert found.plan.without_power is not None
    assert found.plan.without_power.reason.startswith("slo_power")
    assert found.total_seconds <= 900
    assert str(found).endswith("the budget affords 240: too few to decide")


def test_a_budget_of_tokens_pays_for_warm_up_too() -> None:
    budget = Budget(tokens=4_000_000, tokens_per_request=500)
    found = extent(PACE, budget, miss_share=0.01, alpha=0.05)
    # 8,000 requests, 4,000 an arm, of which 390 s at 4/s are warm-up.
    assert found.plan.affordable == 4000 - 390 * 4
    assert found.requests <= found.plan.affordable


def test_a_budget_that_pays_for_nothing_asks_for_nothing() -> None:
    found = extent(PACE, Budget(seconds=0), miss_share=0.01, alpha=0.05)
    assert (found.requests, found.has_power) == (0, False)


@pytest.mark.parametrize(
    "more", [{"rate": 0, "arms": 1}, {"rate": 1, "arms": 0}, {"rate": 1, "arms": 1, "blocks": 0}]
)
def test_a_pace_that_cannot_be_is_refused(more: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Pace(**more)  # type: ignore[arg-type]
