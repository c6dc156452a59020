"""What engines tell, as `capacity` diagnoses it: over blocks of a load run, or a while that is watched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.capacity.symptoms import Signals
from service.engines.histograms import Spell
from service.engines.looks import Look, fullest, grown, hit_rate, mean, summed


def with_engine(signals: Signals, spells: Sequence[Sequence[Look]]) -> Signals:
    """The same with what engines told in each of some spells; what was between two spells counts nowhere."""
    running = [number for each in spells for number in summed(each, lambda load: load.running)]
    waiting = [number for each in spells for number in summed(each, lambda load: load.waiting)]
    usage = [number for each in spells if (number := fullest(each)) is not None]
    preempted = [
        number for each in spells if (number := grown(each, lambda load: load.preemptions)) is not None
    ]
    rates = [number for each in spells if (number := hit_rate(each)) is not None]
    return replace(
        signals,
        running=mean(running),
        waiting=mean(waiting),
        kv_usage=max(usage, default=None),
        preemptions=sum(preempted) if preempted else None,
        prefix_rate=mean(rates),
    )


def with_latencies(signals: Signals, spell: Spell) -> Signals:
    """The same with the times of the engines' own histograms."""
    return replace(signals, ttft_p95=spell.ttft_p95, tpot_p95=spell.tpot_p95)
