"""Is a prefix cache worth it: bands of the token rate, and what speaks against trusting it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from service.capacity.prefix_gate import Advice, Reading, Window, judge, window_of

KNOWN: dict[str, Any] = {"prefix_tokens": 2048, "prefixes": 40, "concurrency": 16.0}


def window(rate: float, **changed: Any) -> Window:
    given = {"hours": 24.0, "prefill_tokens": 1000, "reused_tokens": 1000 * rate, "prefill_share": 0.3}
    return Window(**{**given, **KNOWN, **changed})


@pytest.mark.parametrize(
    ("rate", "advice"),
    [
        (0.0, Advice.SWITCH_OFF),
        (0.249, Advice.SWITCH_OFF),
        (0.25, Advice.NOISE),
        (0.299, Advice.NOISE),
        (0.30, Advice.LINEAR),
        (0.80, Advice.LINEAR),
        (0.85, Advice.LINEAR),
        (0.86, Advice.DIMINISHING),
    ],
)
def test_the_rate_of_tokens_has_bands(rate: float, advice: Advice) -> None:
    assert judge(window(rate)).advice is advice


def test_much_reuse_and_much_prefill_deserve_a_pool_of_their_own() -> None:
    assert judge(window(0.61, prefill_share=0.41)).advice is Advice.OWN_POOL
    assert judge(window(0.90, prefill_share=0.41)).advice is Advice.OWN_POOL
    assert judge(window(0.60, prefill_share=0.41)).advice is Advice.LINEAR
    assert judge(window(0.61, prefill_share=0.40)).advice is Advice.LINEAR
    assert judge(window(0.61, prefill_share=None)).advice is Advice.LINEAR


def test_a_hair_to_either_side_of_a_bound_is_on_that_side() -> None:
    """Bounds belong to the band above, but for "above" 60, 85 and 40 %, as they are written."""
    hair = 1e-9
    for bound, below, at in (
        (0.25, Advice.SWITCH_OFF, Advice.NOISE),
        (0.30, Advice.NOISE, Advice.LINEAR),
    ):
        assert judge(window(bound - hair)).advice is below
        assert judge(window(bound)).advice is at
    assert judge(window(0.85 + hair)).advice is Advice.DIMINISHING
    assert judge(window(0.85 - hair)).advice is judge(window(0.85)).advice is Advice.LINEAR
    assert judge(window(0.60 + hair, prefill_share=0.40 + hair)).advice is Advice.OWN_POOL
    assert judge(window(0.60, prefill_share=0.40 + hair)).advice is Advice.LINEAR
    assert judge(window(0.60 + hair, prefill_share=0.40)).advice is Advice.LINEAR
    assert judge(window(0.5, hours=24.0)).advice is Advice.LINEAR
    assert judge(window(0.5, hours=24.0 - hair)).advice is Advice.WAIT


def test_a_full_cache_that_evicts_and_jitters_thrashes() -> None:
    assert judge(window(0.9, evictions=10, jitter=0.2)).advice is Advice.THRASHING
    assert judge(window(0.9, evictions=10, jitter=0.05)).advice is Advice.DIMINISHING
    assert judge(window(0.9, evictions=0, jitter=0.2)).advice is Advice.DIMINISHING
    assert judge(window(0.9, evictions=1, jitter=0.10)).advice is Advice.DIMINISHING
    assert judge(window(0.9, evictions=1, jitter=0.1001)).advice is Advice.THRASHING
    assert judge(window(0.9, evictions=1, jitter=0.2, prefill_share=0.9)).advice is Advice.THRASHING
    assert judge(window(0.85, evictions=1, jitter=0.2)).advice is Advice.LINEAR
    assert any("thrashing is not ruled out" in doubt for doubt in judge(window(0.9)).doubts)


def test_less_than_a_day_waits() -> None:
    judged = judge(window(0.1, hours=23.5))
    assert judged.advice is Advice.WAIT
    assert "23.5 hours of 24" in judged.reason
    assert judge(window(0, prefill_tokens=0)).reason == "no prompt was prefilled in this window"


def test_what_must_hold_first_is_a_doubt_where_it_does_not() -> None:
    assert judge(window(0.5)).doubts == ()
    assert judge(window(0.5, prefix_tokens=512, prefixes=10, concurrency=8.0)).doubts == ()
    doubts = judge(window(0.5, prefix_tokens=511, prefixes=9, concurrency=7.5)).doubts
    assert [doubt.split(":")[0] for doubt in doubts] == [
        "prefixes of 511 tokens",
        "9 distinct prefixes, not tens",
        "7.5 at once",
    ]
    assert "not told" in judge(window(0.5, prefixes=None)).doubts[0]
    assert "times are not told" in judge(window(0.5, prefill_share=None)).doubts[0]


def test_the_speed_up_is_amdahl_s() -> None:
    assert window(0.6, prefill_share=0.5).speed_up == pytest.approx(1 / 0.7)
    assert window(0.6, prefill_share=None).speed_up is None
    assert window(1.0, prefill_share=1.0).speed_up is None


def test_hits_per_request_are_shown_and_judged_by_nothing() -> None:
    misled = window(0.1, requests=100, requests_hit=95)
    assert misled.request_rate == 0.95
    assert judge(misled).advice is Advice.SWITCH_OFF


def test_counters_tell_by_how_much_they_grew() -> None:
    first = Reading(prefill_tokens=100, reused_tokens=90, prefill_seconds=10, decode_seconds=5)
    last = Reading(prefill_tokens=300, reused_tokens=150, prefill_seconds=40, decode_seconds=75)
    grown = window_of([first, last], hours=24)
    assert (grown.prefill_tokens, grown.rate, grown.prefill_share, grown.jitter) == (200, 0.3, 0.3, None)


def test_an_engine_that_began_anew_is_counted_from_0() -> None:
    readings = [Reading(prefill_tokens=n, reused_tokens=n / 2) for n in (100, 300, 50, 100)]
    grown = window_of(readings, hours=24)
    assert (grown.prefill_tokens, grown.rate, grown.restarts) == (300, 0.5, 1)
    assert grown.jitter == 0
    assert any("began anew 1 times" in doubt for doubt in judge(grown).doubts)


def test_an_engine_that_began_anew_and_has_passed_what_it_was_is_told_by_any_counter_that_fell() -> None:
    """120 is above 100, yet the hits have fallen: all 120 are new, and so are the seconds."""
    before = Reading(prefill_tokens=100, reused_tokens=90, prefill_seconds=10, decode_seconds=30)
    after = Reading(prefill_tokens=120, reused_tokens=30, prefill_seconds=12, decode_seconds=36)
    found = window_of([before, after], hours=24)
    assert (found.prefill_tokens, found.reused_tokens, found.restarts) == (120, 30, 1)
    assert found.prefill_share == 0.25
    by_time = window_of([before, replace(before, prefill_tokens=300, decode_seconds=5)], hours=24)
    assert (by_time.prefill_tokens, by_time.restarts) == (300, 1)


def test_a_hit_that_is_counted_in_the_next_window_makes_no_more_than_all() -> None:
    readings = [Reading(prefill_tokens=n, reused_tokens=reused) for n, reused in ((0, 0), (100, 104))]
    assert window_of(readings, hours=24).rate == 1.0


def test_seconds_that_vanish_are_not_told_and_take_nothing_away() -> None:
    readings = [
        Reading(prefill_tokens=n, reused_tokens=0, prefill_seconds=prefill, decode_seconds=decode)
        for n, prefill, decode in ((0, 0.0, 0.0), (10, 1.0, 3.0), (20, None, 9.0), (30, 5.0, 12.0))
    ]
    found = window_of(readings, hours=24)
    assert (found.prefill_tokens, found.prefill_share) == (30, 0.25)


def test_the_rate_of_each_part_jitters() -> None:
    readings = [
        Reading(prefill_tokens=prefill, reused_tokens=reused)
        for prefill, reused in ((0, 0), (100, 100), (200, 100))
    ]
    assert window_of(readings, hours=24).jitter == 0.5


@pytest.mark.parametrize(
    "changed",
    [
        {"reused_tokens": 1001},
        {"reused_tokens": -1},
        {"reused_tokens": float("nan")},
        {"hours": 0},
        {"hours": float("nan")},
        {"hours": float("inf")},
        {"prefill_tokens": float("inf")},
        {"prefill_share": 1.1},
        {"requests": 5},
        {"requests": 5, "requests_hit": 6},
    ],
)
def test_impossible_numbers_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"lie|given together|no more than"):
        window(0.5, **changed)


def test_one_reading_tells_nothing() -> None:
    with pytest.raises(ValueError, match="at least two readings"):
        window_of([Reading(prefill_tokens=1, reused_tokens=1)], hours=24)
