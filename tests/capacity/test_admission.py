"""Limits follow from the budget, each with its reason, and what cannot run is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.capacity.admission import Below, Expected, Rule, admission
from service.capacity.initial import NothingFits
from service.capacity.memory import Budget, Cache
from service.capacity.precision import FP8, FP16
from service.capacity.shape import Attention, Shape

GIB = 1 << 30
SHAPE = Shape(layers=((36, Attention(kv_heads=8, head_size=128)),), vocabulary=151_936, context=40_960)
EXPECTED = Expected(
    longest_prompt=12_000, longest_answer=2_048, typical=3_000, backends=2, seconds=9.0, ttft_seconds=1.5
)


def budget(sequences: int = 256, weights: int = 6 * GIB) -> Budget:
    return Budget(memory=24 * GIB, weights=weights, activations=GIB, sequences=sequences, vocabulary=151_936)


def rules(expected: Expected = EXPECTED, of: Budget | None = None) -> dict[str, Rule]:
    of = of or budget()
    found = admission(of, Cache(shape=SHAPE, precision=FP8, memory=of.kv), expected)
    assert all(each.reason for each in found)
    return {each.name: each for each in found}


def values(**changed: object) -> dict[str, str]:
    expected = replace(EXPECTED, **changed)  # type: ignore[arg-type]
    return {name: rule.value for name, rule in rules(expected).items()}


def test_every_limit_is_computed_from_the_budget() -> None:
    """16,036,444,241 bytes hold 72 sequences of 188 blocks of 1,179,648; the longest has 878 of them."""
    assert budget().kv == 16_036_444_241
    assert values() == {
        "concurrency": "144",
        "queue": "24",
        "queue_timeout": "1500ms",
        "max_prompt_tokens": "15000",
        "max_output_tokens": "2048",
        "require_max_tokens": "true",
        "kv_guard": "{above: 93%, below: 88%}",
        "priority": "{short: 3750, ahead: 4}",
        "fallback": "line",
    }


def test_no_more_run_at_once_than_the_engine_takes() -> None:
    found = rules(of=budget(sequences=16))
    assert found["concurrency"].value == "32"
    assert "runs 16 sequences; its cache would hold" in found["concurrency"].reason


def test_without_an_slo_or_the_time_of_a_request_the_line_has_the_proxy_s_own_patience() -> None:
    found = values(ttft_seconds=None, seconds=None)
    assert (found["queue"], found["queue_timeout"]) == ("144", "30s")
    assert values(seconds=1000.0)["queue"] == "1", "none would be no line at all"


def test_the_guard_leaves_room_for_one_longest_request_and_opens_a_typical_one_below() -> None:
    assert (
        values(longest_prompt=1_000, longest_answer=100, typical=500)["kv_guard"]
        == "{above: 95%, below: 90%}"
    )
    wide = values(longest_prompt=38_000, longest_answer=2_000, typical=38_000)
    assert wide["kv_guard"] == "{above: 81%, below: 63%}"


def test_a_request_that_takes_most_of_a_cache_is_told_to_preempt_others() -> None:
    found = rules(replace(EXPECTED, longest_prompt=38_000, longest_answer=2_000), budget(weights=16 * GIB))
    assert found["kv_guard"].value == "{above: 50%, below: 45%}"
    assert "others are preempted all the same" in found["kv_guard"].reason


def test_who_goes_first_is_how_many_typical_requests_take_the_room_of_one_longest() -> None:
    """A longest has 878 blocks, a typical one 188; of 1,000 tokens 63, of 12,000 750."""
    assert values(typical=1_000)["priority"] == "{short: 1250, ahead: 13}"
    found = rules(replace(EXPECTED, typical=12_000))["priority"]
    assert found.value == "null"
    assert "hardly more room" in found.reason


def below(weights: int, backends: int = 1) -> Below:
    under = budget(weights=weights)
    cache = Cache(shape=SHAPE, precision=FP16, memory=under.kv)
    return Below(name="bf16", budget=under, cache=cache, backends=backends)


def test_a_rung_below_with_room_takes_what_is_too_much_and_its_places_count() -> None:
    """Sequences of 188 blocks of 2,359,296 bytes in 16 bits; the longest takes 878 of them."""
    under = below(16 * GIB, backends=3)
    cache = Cache(shape=SHAPE, precision=FP8, memory=budget().kv)
    found = {each.name: each for each in admission(budget(), cache, EXPECTED, under)}
    room = under.budget.kv // (188 * 16 * 147_456)
    assert found["fallback"].value == "rung_below"
    assert f"{878 * 16 * 147_456 / under.budget.kv:.1%} of its cache" in found["fallback"].reason
    assert found["concurrency"].value == str(144 + 3 * room)
    assert "of bf16 each of 3 backends" in found["concurrency"].reason
    assert found["kv_guard"].value == values()["kv_guard"], "the tier's own level"


def test_a_rung_below_that_holds_no_longest_request_is_no_fallback() -> None:
    cache = Cache(shape=SHAPE, precision=FP8, memory=budget().kv)
    found = {each.name: each for each in admission(budget(), cache, EXPECTED, below(20 * GIB))}
    assert found["fallback"].value == "line"
    assert "bf16 does not hold one request of 14,048 tokens" in found["fallback"].reason
    assert found["concurrency"].value == "144"
    with pytest.raises(ValueError, match="at least 1 backend"):
        below(GIB, backends=0)


@pytest.mark.parametrize(
    ("changed", "of", "told"),
    [
        ({"longest_prompt": 40_000}, budget(), "the model was made for 40,960"),
        ({}, budget(weights=20 * GIB), "lacks"),
    ],
)
def test_what_cannot_run_is_refused(changed: dict[str, int], of: Budget, told: str) -> None:
    with pytest.raises(NothingFits, match=told):
        rules(replace(EXPECTED, **changed), of)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"longest_answer": 0}, "at least 1 token"),
        ({"backends": 0}, "at least 1 backend"),
        ({"typical": 20_000}, "no more than the longest, 14,048 tokens"),
        ({"seconds": 0.0}, "above 0 seconds"),
        ({"ttft_seconds": float("inf")}, "above 0 seconds"),
    ],
)
def test_what_nobody_can_expect_is_refused(changed: dict[str, float], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        replace(EXPECTED, **changed)  # type: ignore[arg-type]
