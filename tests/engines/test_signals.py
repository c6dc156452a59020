"""What engines tell in spells of a load run, as a diagnosis has it."""

from __future__ import annotations

from service.capacity.symptoms import Signals
from service.engines.histograms import Spell
from service.engines.signals import with_engine, with_latencies
from tests.engines.test_looks import seen


def test_each_spell_counts_by_itself() -> None:
    first = [
        seen(0, "a", running=2, waiting=0, kv_usage=0.5, preemptions=10, prefix_queries=0, prefix_hits=0),
        seen(9, "a", running=4, waiting=2, kv_usage=0.7, preemptions=12, prefix_queries=100, prefix_hits=50),
    ]
    # Between the two the sweep overloaded it: 90 preemptions that nobody holds against it.
    second = [
        seen(0, "a", running=3, waiting=1, kv_usage=0.6, preemptions=102, prefix_queries=500, prefix_hits=50),
        seen(9, "a", running=3, waiting=1, kv_usage=0.6, preemptions=103, prefix_queries=600, prefix_hits=60),
    ]
    found = with_engine(Signals(ttft_p95=0.3), [first, second])
    assert (found.running, found.waiting, found.kv_usage, found.preemptions) == (3.0, 1.0, 0.7, 3)
    assert found.prefix_rate == (0.5 + 0.1) / 2
    assert found.ttft_p95 == 0.3


def test_what_no_engine_tells_stays_unknown() -> None:
    found = with_engine(Signals(), [[seen(0, "a"), seen(5, "a")], []])
    assert found == Signals()


def test_times_come_from_the_engines_own_histograms() -> None:
    found = with_latencies(Signals(ttft_limit=1.0), Spell(requests=5, ttft_p95=2.0, tpot_p95=None))
    assert (found.ttft_p95, found.tpot_p95, found.ttft_limit) == (2.0, None, 1.0)
