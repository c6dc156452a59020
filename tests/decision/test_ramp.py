from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.decision.ramp import AT_ONCE, Promotion, handed_over, with_share

WEIGHTS = st.tuples(st.integers(0, 100), st.integers(0, 100)).map(
    lambda cuts: {"bf16": min(cuts), "w8a8": max(cuts) - min(cuts), "w4a16": 100 - max(cuts)}
)


def test_without_a_ramp_an_approval_gives_everything_and_nothing_follows() -> None:
    assert AT_ONCE.first == 100
    assert [AT_ONCE.after(share) for share in (0, 5, 99, 100)] == [None] * 4


def test_each_step_follows_the_one_below() -> None:
    ramp = Promotion(ramp=(5, 25, 100))
    assert ramp.first == 5
    assert [ramp.after(share) for share in (1, 5, 10, 25, 60, 100)] == [25, 25, 25, 100, 100, None]


@pytest.mark.parametrize("ramp", [(), (5,), (5, 25), (0, 100), (25, 5, 100), (5, 5, 100), (100, 100)])
def test_a_ramp_rises_to_a_hundred(ramp: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="ramp"):
        Promotion(ramp=ramp)


@pytest.mark.parametrize("changes", [{"hold_seconds": -1.0}, {"measured_seconds": 0.0}])
def test_times_are_not_negative(changes: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="0 s"):
        Promotion(**changes)  # type: ignore[arg-type]


def test_those_with_the_most_give() -> None:
    assert with_share({"bf16": 95, "w8a8": 5}, "w4a16", 5) == {"bf16": 90, "w8a8": 5, "w4a16": 5}
    assert with_share({"bf16": 60, "w8a8": 40}, "w4a16", 70) == {"w8a8": 30, "w4a16": 70}
    assert with_share({"bf16": 75, "w8a8": 25}, "w8a8", 100) == {"w8a8": 100}


@given(weights=WEIGHTS, share=st.integers(0, 100))
def test_shares_always_sum_to_a_hundred(weights: dict[str, int], share: int) -> None:
    if share < weights["w4a16"]:
        with pytest.raises(ValueError, match="cannot be given"):
            with_share(weights, "w4a16", share)
        return
    moved = with_share(weights, "w4a16", share)
    assert sum(moved.values()) == 100
    assert all(weight > 0 for weight in moved.values())
    assert moved.get("w4a16", 0) == share


@given(weights=WEIGHTS)
def test_what_is_handed_over_is_lost_nowhere(weights: dict[str, int]) -> None:
    moved = handed_over(weights, "w4a16", "bf16")
    assert sum(moved.values()) == 100
    assert "w4a16" not in moved
    assert moved["bf16"] == weights["bf16"] + weights["w4a16"]
