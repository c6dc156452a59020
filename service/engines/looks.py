"""Looks at several engines over a while: gauges added up at each moment, counters by what they added.

Of a gauge each backend's latest word counts, and a moment counts only when all have told: a sum over those
that happened to answer would fall whenever one is slow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from service.capacity import prefix_gate
from service.capacity.prefix_gate import Reading
from service.engines.load import EngineLoad

Read = Callable[[EngineLoad], float | None]


class Look(Protocol):
    """One look at one backend; `load` is `None` where it did not answer or tells nothing that we know."""

    @property
    def at(self) -> float:
        """Seconds, from any beginning that all looks have in common."""
        ...

    @property
    def backend(self) -> str: ...
    @property
    def load(self) -> EngineLoad | None: ...


def told(looks: Iterable[Look], read: Read) -> list[float]:
    """Every number that any backend told."""
    loads = [each.load for each in looks if each.load is not None]
    return [number for load in loads if (number := read(load)) is not None]


def summed(looks: Sequence[Look], read: Read) -> list[float]:
    """At each moment over all backends."""
    backends = {each.backend for each in looks}
    latest: dict[str, float] = {}
    found = []
    for each in looks:
        number = None if each.load is None else read(each.load)
        if number is None:
            latest.pop(each.backend, None)
            continue
        latest[each.backend] = number
        if len(latest) == len(backends):
            found.append(math.fsum(latest.values()))
    return found


def grown(looks: Iterable[Look], read: Read) -> float | None:
    """What counters added from each backend's first look to its last; one that fell began anew.

    `None` where no backend told twice.
    """
    before: dict[str, float] = {}
    total, known = 0.0, False
    for each in looks:
        number = None if each.load is None else read(each.load)
        if number is None:
            continue
        last = before.get(each.backend)
        if last is not None:
            total += number - last if number >= last else number
            known = True
        before[each.backend] = number
    return total if known else None


def hit_rate(looks: Sequence[Look]) -> float | None:
    """Tokens that prefix caches knew, by those that were looked up; `None` where nothing was.

    Both are one engine's: where either fell it began anew, and the other is from 0 too.
    """
    before: dict[str, Reading] = {}
    parts = []
    for each in looks:
        if each.load is None or each.load.prefix_queries is None or each.load.prefix_hits is None:
            continue
        now = Reading(prefill_tokens=each.load.prefix_queries, reused_tokens=each.load.prefix_hits)
        parts.append(prefix_gate.grown(before.get(each.backend, now), now))
        before[each.backend] = now
    looked_up = sum(each.prefill_tokens for each in parts)
    return min(1.0, sum(each.reused_tokens for each in parts) / looked_up) if looked_up else None


def fullest(looks: Iterable[Look]) -> float | None:
    """The KV cache at its fullest, of the fullest backend."""
    usage = told(looks, lambda load: load.kv_usage)
    return min(1.0, max(usage)) if usage else None


def mean(numbers: Sequence[float]) -> float | None:
    """`None` without any."""
    return math.fsum(numbers) / len(numbers) if numbers else None
