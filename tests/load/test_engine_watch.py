from __future__ import annotations

import pytest

from service.engines.load import EngineLoad
from service.load.engine_watch import EngineSummary, summary
from service.load.figures import EngineSample


def sample(at: float, backend: str = "a", **told: float) -> EngineSample:
    return EngineSample(at=at, backend=backend, load=EngineLoad(**told) if told else None)


def test_gauges_are_those_during_the_block_and_counters_what_it_added() -> None:
    found = summary(
        [
            sample(-1, running=0, waiting=0, kv_usage=0.0, preemptions=3, prefix_queries=100, prefix_hits=90),
            sample(5, running=4, waiting=1, kv_usage=0.4, preemptions=3, prefix_queries=200, prefix_hits=95),
            sample(
                10, running=8, waiting=3, kv_usage=0.8, preemptions=4, prefix_queries=400, prefix_hits=100
            ),
            sample(
                16, running=0, waiting=0, kv_usage=0.1, preemptions=5, prefix_queries=500, prefix_hits=110
            ),
        ]
    )
    assert found == EngineSummary(
        kv_usage_mean=pytest.approx(0.6),
        kv_usage_most=0.8,
        running_mean=6,
        waiting_mean=2,
        waiting_most=3,
        preemptions=2,
        prefix_hit_rate=pytest.approx(0.05),
    )


def test_backends_add_up() -> None:
    found = summary(
        [
            sample(at, backend, running=2, kv_usage=usage, preemptions=at)
            for backend, usage in (("a", 0.2), ("b", 0.6))
            for at in (0, 5, 10)
        ]
    )
    assert (found.running_mean, found.kv_usage_mean, found.kv_usage_most) == (4, pytest.approx(0.4), 0.6)
    assert found.preemptions == 20


def test_what_one_backend_does_not_tell_is_unknown() -> None:
    found = summary(
        [sample(at, "a", running=2, kv_usage=0.5) for at in (0, 5, 10)] + [sample(5, "b", running=1)]
    )
    assert (found.running_mean, found.kv_usage_most, found.preemptions) == (3, None, None)


def test_a_counter_that_fell_began_anew_and_tells_nothing() -> None:
    assert summary([sample(0, preemptions=9), sample(5, preemptions=1)]).preemptions is None


def test_no_samples_tell_nothing() -> None:
    assert summary([]) == summary([sample(0), sample(5)]) == EngineSummary()
