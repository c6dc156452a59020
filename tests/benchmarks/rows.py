"""A line of the simulation's table, and how many epochs it takes to make one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from service.decision.quantile import quantile_limits, sample_quantile

MARGIN = 0.01
ALPHA = 0.05
PASS = -math.log(ALPHA)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Repeats of each part, and how long an epoch lasts in pairs."""

    boundary: int = 4000
    clustered: int = 2000
    pairs: int = 2000
    ladders: int = 600
    delays: int = 300
    turns: int = 500
    """Epochs of conversations with late damage."""
    years: int = 500
    """Tiers submitted every week for a year."""
    strata: int = 1000
    """Tiers with every stratum at the margin."""
    gated: int = 300
    """Ladders with the gates that load runs decide."""
    gates: int = 2000
    """Repeats of what is looked at once: money gates, single looks."""
    horizon: int = 20_000
    ladder_horizon: int = 30_000
    alarm_horizon: int = 100_000
    ladder_step: int = 25
    """Pairs between two looks at a whole ladder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    measured: str
    case: str
    found: float
    error: float | None
    """Monte Carlo standard error; None where there is none to give."""
    reference: str
    source: str
    bound: float | None = None
    """What the error rate must not exceed."""

    @property
    def exceeded(self) -> bool:
        """Beyond the bound by more than chance explains."""
        return self.bound is not None and self.found - 3 * (self.error or 0) > self.bound


def share(happened: ArrayLike, **words: str | float | None) -> Row:
    """Row of an error rate or a power."""
    found = np.asarray(happened, dtype=np.float64)
    rate = float(found.mean())
    return Row(found=rate, error=math.sqrt(rate * (1 - rate) / found.size), **words)


def typical(pairs: ArrayLike, which: float = 0.5, **words: str) -> Row:
    """Row of a median (or another quantile) of pairs, infinite where an epoch did not get there."""
    reached = np.asarray(pairs, dtype=np.float64)
    # How far beyond the longest an endless epoch lies does not matter to a quantile among the others.
    longest = reached[np.isfinite(reached)].max(initial=0.0)
    error = quantile_limits(np.minimum(reached, longest), which).standard_error
    return Row(found=sample_quantile(reached, which), error=error, **words)
