"""A time of a load run, arm beside arm: P95 of each with limits, and what lies between them (A10, B5).

Each arm by order statistics (`quantile`), the difference by a block bootstrap (`bootstrap`). Shown in the
report with the SLO; the gate that decides is of the share of requests that miss it (`slo`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from service.decision.bootstrap import Block, Resampled, quantile_difference
from service.decision.quantile import QuantileLimits, quantile_limits

Seconds = Sequence[float | None]
"""None: a request that never came so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyBlock:
    """One time of the requests of two blocks at equal load, one after the other; in seconds."""

    baseline: Seconds
    candidate: Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyReading:
    """One quantile of one time."""

    share: float
    baseline: QuantileLimits
    candidate: QuantileLimits
    difference: Resampled | None
    """Candidate minus baseline; None where there is none, and `why` says so."""
    why: str = ""
    limit_seconds: float | None = None
    """What the SLO allows."""

    @property
    def within(self) -> tuple[bool | None, bool | None]:
        """Whether baseline and candidate are shown to be within the SLO: the upper limit is."""
        return _within(self.baseline, self.limit_seconds), _within(self.candidate, self.limit_seconds)


def read_latency(
    blocks: Sequence[LatencyBlock],
    *,
    share: float = 0.95,
    limit_seconds: float | None = None,
    seed: int = 0,
    level: float = 0.95,
    repeats: int = 2000,
) -> LatencyReading:
    """The quantile of both arms over all blocks, and its difference over blocks drawn again.

    Requests that never came so far are slower than all others. A difference takes them for as slow as the
    slowest of both arms, and is given only where so few are missing that both quantiles have a value: left
    out, they would make the arm that loses its slow requests the faster one.
    """
    arms = [
        quantile_limits([_number(value) for block in blocks for value in side(block)], share, level=level)
        for side in (_baseline, _candidate)
    ]
    difference, why = None, _without_difference(blocks, arms)
    if not why:
        slowest = max(max(_came(side(block))) for block in blocks for side in (_baseline, _candidate))
        difference = quantile_difference(
            [
                Block(
                    baseline=_at_most(block.baseline, slowest), candidate=_at_most(block.candidate, slowest)
                )
                for block in blocks
            ],
            share,
            seed=seed,
            level=level,
            repeats=repeats,
        )
        never = sum(value is None for block in blocks for value in (*block.baseline, *block.candidate))
        why = f"{never:,} requests that never came so far count as the slowest" if never else ""
    return LatencyReading(
        share=share,
        baseline=arms[0],
        candidate=arms[1],
        difference=difference,
        why=why,
        limit_seconds=limit_seconds,
    )


def _without_difference(blocks: Sequence[LatencyBlock], arms: Sequence[QuantileLimits]) -> str:
    if len(blocks) < 2:
        return f"a difference needs at least 2 blocks, got {len(blocks)}"
    if any(not _came(side(block)) for block in blocks for side in (_baseline, _candidate)):
        return "in a block of one tier no request came so far"
    if any(arm.value is None or math.isinf(arm.value) for arm in arms):
        return "so many requests never came so far that the quantile has no value"
    return ""


def _baseline(block: LatencyBlock) -> Seconds:
    return block.baseline


def _candidate(block: LatencyBlock) -> Seconds:
    return block.candidate


def _came(values: Seconds) -> list[float]:
    return [value for value in values if value is not None]


def _at_most(values: Seconds, slowest: float) -> list[float]:
    return [slowest if value is None else value for value in values]


def _number(value: float | None) -> float:
    return math.inf if value is None else value


def _within(found: QuantileLimits, limit: float | None) -> bool | None:
    if limit is None or found.upper is None:
        return None
    return found.upper <= limit
