"""How long a load run's windows must be for the power of its gate, and whether the budget affords that (A10).

Before the run, at the last known share of misses: as many requests of each arm as show an equal tier
non-inferior nine times of ten, within what minutes and tokens are left. Where the budget cannot reach a power
of .8, the run is not worth its load; the gate says `slo_power` instead. Pure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from service.decision.slo import SloPlan, plan_run
from service.decision.terms import DEFAULT_TERMS, Terms
from service.load.order import LEAST_BLOCKS


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How a run of the SLO part is laid out; seconds, all of one arm."""

    rate: float
    """Requests a second, of each arm."""
    arms: int
    blocks: int = LEAST_BLOCKS
    """Of each arm."""
    warm_up_seconds: float = 180.0
    """Before an arm's first block."""
    settle_seconds: float = 30.0
    """Before each of its others: its engine is warm, its queue is empty."""
    window_seconds: float = 600.0
    """Of all its blocks together, at least."""

    def __post_init__(self) -> None:
        if self.rate <= 0 or self.arms < 1 or self.blocks < 1 or self.window_seconds <= 0:
            raise ValueError("rate and window must be above 0, arms and blocks at least 1")

    @property
    def idle_seconds(self) -> float:
        """Of an arm, that count for nothing."""
        return self.warm_up_seconds + self.settle_seconds * (self.blocks - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a run may spend; None is without limit."""

    seconds: float | None = None
    tokens: float | None = None
    """Of prompts and answers."""
    tokens_per_request: float = 0.0
    """Expected, prompt and answer together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """What the run is going to be."""

    plan: SloPlan
    block_seconds: float
    """Of the window of each block."""
    total_seconds: float
    """Of the whole run, warm-up included, cool-down not."""
    requests: int
    """Of each arm in its windows."""

    @property
    def has_power(self) -> bool:
        """Whether the run can decide."""
        return self.plan.without_power is None

    def __str__(self) -> str:
        needed = f"needed {self.plan.wanted:,} requests of each arm (at least {self.plan.least:,})"
        if not self.has_power:
            return f"{needed}, the budget affords {self.plan.affordable:,}: too few to decide"
        return f"{needed}: {self.requests:,} in {self.total_seconds / 60:.0f} minutes"


def extent(
    pace: Pace,
    budget: Budget,
    *,
    miss_share: float,
    alpha: float,
    terms: Terms = DEFAULT_TERMS,
    design_effect: float = 1.0,
) -> Extent:
    """The windows for the wanted power, or as much of it as the budget affords; never less than the pace has.

    `miss_share`: the baseline's last known share of requests that miss the SLO. ValueError where it is
    outside [0, 1].
    """
    window = math.inf
    if budget.seconds is not None:
        window = max(0.0, budget.seconds / pace.arms - pace.idle_seconds)
    if budget.tokens is not None and budget.tokens_per_request > 0:
        requests = budget.tokens / budget.tokens_per_request / pace.arms
        window = min(window, max(0.0, requests / pace.rate - pace.idle_seconds))
    affordable = 10**9 if math.isinf(window) else int(window * pace.rate)
    plan = plan_run(
        miss_share=miss_share, affordable=affordable, alpha=alpha, terms=terms, design_effect=design_effect
    )
    needed = plan.requests / pace.rate
    seconds = min(max(pace.window_seconds, needed), max(window, 0.0))
    if not plan.requests:
        seconds = min(pace.window_seconds, window)
    return Extent(
        plan=plan,
        block_seconds=seconds / pace.blocks,
        total_seconds=pace.arms * (pace.idle_seconds + seconds),
        requests=int(seconds * pace.rate),
    )
