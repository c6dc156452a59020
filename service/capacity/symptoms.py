"""What was measured of a tier, and which stages of serving hurt: a figure that misses its limit."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from enum import StrEnum


class Stage(StrEnum):
    """Of serving a request."""

    TTFT = "ttft"
    TPOT = "tpot"
    MEMORY = "memory"
    COST = "cost"


QUEUED = 1.0
"""Requests that wait, on average."""
FULL_KV = 0.9
LOW_REUSE = 0.25
MOST_WEIGHTS = 0.7
MOST_WASTE = 0.1
LEAST_UTILISATION = 0.5
MOST_FAILURES = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """What was measured of one tier; times in seconds, shares from 0 to 1. `None` is unknown, never 0."""

    ttft_p95: float | None = None
    """Infinite where more than 5 % never had a token."""
    ttft_limit: float | None = None
    tpot_p95: float | None = None
    tpot_limit: float | None = None
    tpot_alone: float | None = None
    """P95 with one request at a time."""
    waiting: float | None = None
    """Requests in the engine's queue, on average."""
    running: float | None = None
    prefix_rate: float | None = None
    """Of tokens, by the prefix cache."""
    kv_usage: float | None = None
    """At its fullest."""
    preemptions: float | None = None
    weights_share: float | None = None
    """Of the memory."""
    waste_share: float | None = None
    """Of the KV cache: reserved, and empty."""
    utilisation: float | None = None
    """Rate by the best rate that keeps the SLO."""
    failed_share: float | None = None

    def __post_init__(self) -> None:
        for each in fields(self):
            told = getattr(self, each.name)
            if told is not None and not told >= 0:
                raise ValueError(f"{each.name} is not below 0, got {told}")
        for name in ("prefix_rate", "kv_usage", "weights_share", "waste_share", "failed_share"):
            if (told := getattr(self, name)) is not None and told > 1:
                raise ValueError(f"{name} is a share, got {told}")


def hurts(signals: Signals, stage: Stage) -> str | None:
    """By how much, or `None` where it does not, or where that is not known."""
    told = signals
    if stage is Stage.TTFT:
        return _missed("TTFT", told.ttft_p95, told.ttft_limit)
    if stage is Stage.TPOT:
        return _missed("TPOT", told.tpot_p95, told.tpot_limit)
    if stage is Stage.MEMORY:
        if told.kv_usage is not None and told.kv_usage >= FULL_KV:
            return f"the KV cache is {told.kv_usage:.0%} full at its fullest"
        return f"{told.preemptions:,.0f} preemptions" if told.preemptions else None
    if told.failed_share is not None and told.failed_share > MOST_FAILURES:
        return f"{told.failed_share:.1%} of requests fail"
    return f"{told.utilisation:.0%} of the best rate is used" if idle(told) else None


def idle(signals: Signals) -> bool:
    """Whether fewer backends would do: little of the best rate is used, and no latency misses its limit."""
    told = signals
    if told.utilisation is None or told.utilisation >= LEAST_UTILISATION:
        return False
    return hurts(told, Stage.TTFT) is None and hurts(told, Stage.TPOT) is None


def not_judged(signals: Signals) -> tuple[Stage, ...]:
    """Stages of which nothing is known, which is not the same as well."""
    told = signals
    known = {
        Stage.TTFT: told.ttft_p95 is not None and told.ttft_limit is not None,
        Stage.TPOT: told.tpot_p95 is not None and told.tpot_limit is not None,
        Stage.MEMORY: told.kv_usage is not None or told.preemptions is not None,
        Stage.COST: told.utilisation is not None or told.failed_share is not None,
    }
    return tuple(stage for stage in Stage if not known[stage])


def _missed(name: str, p95: float | None, limit: float | None) -> str | None:
    if p95 is None or limit is None or p95 <= limit:
        return None
    if p95 == math.inf:
        return f"more than 5% of requests never had a {name}, its limit is {limit * 1e3:.4g} ms"
    return f"P95 of {name} is {p95 * 1e3:.4g} ms, its limit {limit * 1e3:.4g} ms"
