"""Looks at several engines: sums only of moments at which all told, counters by what they added."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engines.load import EngineLoad
from service.engines.looks import fullest, grown, hit_rate, mean, summed, told


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    at: float
    backend: str
    load: EngineLoad | None


def seen(at: float, backend: str, **numbers: float) -> Seen:
    return Seen(at=at, backend=backend, load=EngineLoad(**numbers) if numbers else None)


def test_a_sum_needs_a_word_of_every_backend() -> None:
    looks = [
        seen(0, "a", waiting=1),
        seen(0, "b", waiting=2),
        seen(5, "a", waiting=3),
        seen(5, "b"),
        seen(9, "a", waiting=50),
    ]
    assert summed(looks, lambda load: load.waiting) == [3, 5]
    assert mean(summed(looks, lambda load: load.waiting)) == 4
    assert mean([]) is None


def test_counters_are_told_by_what_they_added_and_after_a_restart_from_0() -> None:
    looks = [seen(0, "a", preemptions=7), seen(5, "a", preemptions=9), seen(9, "a", preemptions=2)]
    assert grown(looks, lambda load: load.preemptions) == 4
    assert grown(looks[:1], lambda load: load.preemptions) is None
    assert grown(looks, lambda load: load.evicted_tokens) is None


def test_reuse_is_by_tokens_over_all_backends() -> None:
    looks = [
        seen(0, "a", prefix_queries=0, prefix_hits=0),
        seen(0, "b", prefix_queries=0, prefix_hits=0),
        seen(5, "a", prefix_queries=900, prefix_hits=0),
        seen(5, "b", prefix_queries=100, prefix_hits=100),
    ]
    assert hit_rate(looks) == 0.1
    assert hit_rate([seen(0, "a", running=1), seen(5, "a", running=1)]) is None


def test_an_engine_that_began_anew_is_told_by_either_counter() -> None:
    looks = [
        seen(0, "a", prefix_queries=100, prefix_hits=90),
        seen(1, "a"),
        seen(5, "a", prefix_queries=200, prefix_hits=50),
        seen(9, "a", prefix_queries=300, prefix_hits=50),
    ]
    assert hit_rate(looks) == 50 / 300


def test_a_cache_is_as_full_as_its_fullest_moment_and_never_more_than_full() -> None:
    assert fullest([seen(0, "a", kv_usage=0.2), seen(1, "b", kv_usage=0.7), seen(2, "a")]) == 0.7
    assert fullest([seen(0, "a", kv_usage=1.02)]) == 1.0
    assert fullest([seen(0, "a")]) is None
    assert told([seen(0, "a", kv_usage=0.2), seen(1, "b")], lambda load: load.kv_usage) == [0.2]


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=20))
def test_a_counter_that_only_rises_added_its_last_less_its_first(counts: list[float]) -> None:
    rising = sorted(counts)
    looks = [seen(at, "a", preemptions=count) for at, count in enumerate(rising)]
    assert grown(looks, lambda load: load.preemptions) == pytest.approx(rising[-1] - rising[0])
