"""The last day of counters, of all backends together and without a gap."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from service.capacity.prefix_gate import Advice, Reading, judge
from service.capacity.prefix_window import HOUR, Look, window_until

NOW = 1_800_000_000.0
QUARTERS = [-15.0 * 60 * step for step in range(100, -1, -1)]
"""Of an hour, for 25 of them, until now."""


def looks(
    at: Iterable[float] = QUARTERS,
    *,
    backend: str = "http://a",
    rate: Callable[[float], float] = lambda hour: 0.5,
    seconds: tuple[float, float] | None = (1.0, 3.0),
    tokens: float = 1000.0,
    **more: float,
) -> list[Look]:
    """Each word with 1,000 tokens more than the one before, reused at the rate of its hour before now."""
    found, prefill, reused, spent = [], 0.0, 0.0, 0
    for each in at:
        found.append(
            Look(
                backend=backend,
                at=NOW + each,
                reading=Reading(
                    prefill_tokens=prefill,
                    reused_tokens=reused,
                    prefill_seconds=None if seconds is None else spent * seconds[0],
                    decode_seconds=None if seconds is None else spent * seconds[1],
                ),
                **more,
            )
        )
        prefill, spent = prefill + tokens, spent + 1
        reused += tokens * rate(each / HOUR)
    return found


def test_a_day_is_judged_by_what_its_counters_grew() -> None:
    window = window_until(looks(running=12.0, evicted=5.0), now=NOW)
    assert window is not None
    assert (window.hours, window.prefill_tokens, window.rate) == (24.0, 96_000, 0.5)
    assert (window.prefill_share, window.jitter, window.restarts) == (0.25, 0.0, 0)
    assert (window.concurrency, window.evictions) == (12.0, 0.0)
    assert judge(window).advice is Advice.LINEAR


def test_less_than_a_day_waits() -> None:
    window = window_until(looks(QUARTERS[-80:]), now=NOW)
    assert window is not None
    assert window.hours == pytest.approx(19.75)
    assert judge(window).advice is Advice.WAIT


def test_what_is_before_a_gap_is_another_day_s() -> None:
    gap = [at for at in QUARTERS if not -10 * HOUR < at < -8 * HOUR]
    window = window_until(looks(gap), now=NOW)
    assert window is not None
    assert window.hours == pytest.approx(8.0)
    assert judge(window).advice is Advice.WAIT


def test_the_hour_before_the_day_does_not_count() -> None:
    window = window_until(looks(rate=lambda hour: 1.0 if hour < -24 else 0.2), now=NOW)
    assert window is not None
    assert window.rate == pytest.approx(0.2)
    assert judge(window).advice is Advice.SWITCH_OFF


def test_backends_are_added_up_and_one_that_came_later_counts_from_its_first_word() -> None:
    busy = looks(tokens=3000.0)
    late = looks(QUARTERS[-5:], backend="http://b", rate=lambda hour: 1.0)
    window = window_until([*late, *busy], now=NOW)
    assert window is not None
    assert window.prefill_tokens == 96 * 3000 + 4 * 1000
    assert window.reused_tokens == 96 * 1500 + 4 * 1000


def test_an_engine_that_began_anew_counts_from_nothing() -> None:
    window = window_until([*looks(QUARTERS[:60]), *looks(QUARTERS[60:])], now=NOW)
    assert window is not None
    assert window.restarts == 1
    assert window.prefill_tokens == 95_000, (
        "all but what was counted in the quarter in which it was restarted"
    )
    assert "began anew 1 times" in " ".join(judge(window).doubts)


def test_an_engine_that_began_anew_between_two_words_and_passed_them_is_told_by_its_evictions() -> None:
    before, after = (
        replace(looks([at])[0], evicted=evicted, reading=Reading(prefill_tokens=n, reused_tokens=n / 2))
        for at, n, evicted in ((-900.0, 100.0, 50.0), (0.0, 130.0, 20.0))
    )
    window = window_until([before, after], now=NOW)
    assert window is not None
    assert (window.prefill_tokens, window.reused_tokens, window.evictions, window.restarts) == (
        130,
        65,
        20,
        1,
    )


def test_jitter_is_from_hour_to_hour() -> None:
    steps = window_until(looks(rate=lambda hour: 0.9 if hour < -12 else 0.7), now=NOW)
    assert steps is not None
    assert steps.jitter == pytest.approx(0.1, abs=0.01)
    quarters = window_until(looks(rate=lambda hour: 0.9 if (hour * 4) % 2 else 0.7), now=NOW)
    assert quarters is not None
    assert quarters.jitter == pytest.approx(0.0, abs=0.001)


def test_an_engine_that_tells_no_seconds_has_no_share() -> None:
    window = window_until(looks(seconds=None), now=NOW)
    assert window is not None
    assert (window.prefill_share, window.concurrency, window.evictions) == (None, None, None)


def test_at_the_edge_of_a_window_no_more_is_reused_than_was_asked() -> None:
    window = window_until(looks(rate=lambda hour: 1.001), now=NOW)
    assert window is not None
    assert window.rate == 1.0


@pytest.mark.parametrize(
    "told",
    [[], looks([0.0]), looks(QUARTERS[:90]), [*looks([0.0]), *looks([0.0], backend="http://b")]],
    ids=["nothing", "once", "two hours ago", "once each"],
)
def test_who_told_nothing_lately_or_only_once_has_no_window(told: list[Look]) -> None:
    assert window_until(told, now=NOW) is None
