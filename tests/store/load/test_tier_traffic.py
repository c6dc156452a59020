"""What is kept of traffic, as the patterns ask for it: rates of a sample, and no number of too little."""

from __future__ import annotations

import pytest

from service.capacity.prefix_gate import Reading, Window
from service.capacity.prefix_window import Look
from service.fleet import Backend, Tier
from service.store.kept.prompt_prefixes import PromptPrefix
from service.store.load.tier_traffic import (
    most_running,
    request_rate,
    sensitive_share,
    sequences_limit,
    shared_of,
)

NOW = 1_000_000.0
HOUR = 3600.0


def prompt(at: float, *named: int, share: float = 0.5, tenant: str = "") -> PromptPrefix:
    return PromptPrefix(
        capture_id=f"{at}",
        model="m",
        tenant=tenant,
        at=at,
        tokens=64 * len(named),
        named=named,
        share=share,
        together=False,
    )


def test_a_sample_of_half_stands_for_twice_as_many() -> None:
    sample = [prompt(NOW - 7200 + 60 * place, 1) for place in range(120)]
    assert request_rate(sample, now=NOW) == pytest.approx(240 / 7200)


def test_minutes_of_traffic_tell_no_rate_and_yesterdays_do_not_count() -> None:
    assert request_rate([prompt(NOW - 60, 1)], now=NOW) is None
    assert request_rate([prompt(NOW - 30 * HOUR, 1)], now=NOW) is None
    assert request_rate([], now=NOW) is None


def test_beginnings_of_the_last_day_are_compared() -> None:
    kept = [
        prompt(NOW - 30 * HOUR, 1, 2),
        prompt(NOW - 60, 1, 3),
        prompt(NOW - 30, 1, 4),
        prompt(NOW - 10, 9),
    ]
    found = shared_of(kept, unit=64, now=NOW)
    assert found is not None
    assert (found.requests, found.requests_hit, found.prefixes, found.prefix_tokens) == (3, 1, 1, 64)
    assert shared_of(kept[:1], unit=64, now=NOW) is None


def test_structured_requests_and_long_ones_must_be_exact() -> None:
    traffic = {"under-2k/free/whole": 60, "2k-8k/structured/stream": 30, "over-128k/free/stream": 10}
    assert sensitive_share(traffic) == 0.4
    assert sensitive_share({}) is None


def tier(limit: str | None = None, *rooms: int | None) -> Tier:
    backends = tuple(
        Backend(url=f"http://h{place}", max_concurrency=room) for place, room in enumerate(rooms)
    )
    return Tier(
        name="w8a8", model="m", backends=backends, declares={} if limit is None else {"max_num_seqs": limit}
    )


def test_a_limit_is_what_is_declared_of_each_engine_or_what_backends_take() -> None:
    assert sequences_limit(tier("256", None, None)) == 512
    assert sequences_limit(tier(None, 8, 16)) == 24
    assert sequences_limit(tier(None, 8, None)) is None
    assert sequences_limit(tier("many", 8)) == 8


def look(at: float, backend: str, running: float | None) -> Look:
    return Look(backend=backend, at=at, reading=Reading(prefill_tokens=1, reused_tokens=0), running=running)


def test_the_most_at_once_needs_a_whole_day() -> None:
    looks = [look(1, "a", 3.0), look(1, "b", 4.0), look(2, "a", 5.0), look(3, "a", None)]

    def window(hours: float) -> Window:
        return Window(hours=hours, prefill_tokens=1, reused_tokens=0, prefill_share=None)

    assert most_running(looks, window(24.0)) == 7.0
    assert most_running(looks, window(23.0)) is None
    assert most_running(looks, None) is None
