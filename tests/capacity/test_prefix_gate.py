"""Is a prefix cache worth it: bands of the token rate, and what speaks against trusting it."""

from __future__ import annotations

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


def test_a_full_cache_that_evicts_and_jitters_thrashes() -> None:
    assert judge(window(0.9, evictions=10, jitter=0.2)).advice is Advice.THRASHING
    assert judge(window(0.9, evictions=10, jitter=0.05)).advice is Advice.DIMINISHING
    assert judge(window(0.9, evictions=0, jitter=0.2)).advice is Advice.DIMINISHING
    assert any("thrashing is not ruled out" in doubt for doubt in judge(window(0.9)).doubts)


def test_less_than_a_day_waits() -> None:
    judged = judge(window(0.1, hours=23.5))
    assert judged.advice is Advice.WAIT
    assert "23.5 hours of 24" in judged.reason
    assert judge(window(0, prefill_tokens=0)).reason == "no prompt was prefilled in this window"


def test_what_must_hold_first_is_a_doubt_where_it_does_not() -> None:
    assert judge(window(0.5)).doubts == ()
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
