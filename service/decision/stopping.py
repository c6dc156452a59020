"""When the e-process will accept, by simulation: mean and quantiles of the pairs it takes. Seeded, pure.

Independent pairs with fixed probabilities of harm and benefit; capital looked at about 250 times per planned
sample, so a crossing is seen at most half a per cent late.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.decision.eprocess import log_factors
from service.decision.grid import G10, Grid
from service.decision.planning import check_scenario, fixed_pairs

LOOKS_PER_SAMPLE = 250
LONGEST = 30
"""Give up after this many times the fixed sample with power .9."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping:
    """Pairs until acceptance over many simulated epochs; infinite where an epoch did not accept in time."""

    pairs: NDArray[np.float64]
    """One-dimensional, an epoch each."""

    @property
    def reached(self) -> float:
        """Share of the epochs that accepted."""
        return float(np.isfinite(self.pairs).mean())

    @property
    def mean(self) -> float | None:
        """None when an epoch did not accept: a mean over the rest would flatter."""
        return float(self.pairs.mean()) if self.reached == 1 else None

    def quantile(self, share: float) -> float | None:
        """Pairs within which that share of the epochs accepts; None when fewer did."""
        found = float(np.quantile(self.pairs, share, method="higher"))
        return found if math.isfinite(found) else None

    def slowest_of(self, criteria: int, seed: int) -> Stopping:
        """Pairs until all of several independent criteria accept, each as here: the slowest decides."""
        generator = np.random.default_rng(seed)
        drawn = generator.choice(self.pairs, size=(criteria, self.pairs.size))
        drawn[0] = self.pairs
        return Stopping(pairs=drawn.max(axis=0))


def simulate(
    *,
    margin: float,
    discordance: float,
    alpha: float,
    seed: int,
    difference: float = 0.0,
    repeats: int = 2000,
    grid: Grid = G10,
) -> Stopping:
    """Epochs of independent pairs with this difference and discordance; ValueError at or past the margin."""
    check_scenario(margin=margin, difference=difference, discordance=discordance, alpha=alpha)
    sample = fixed_pairs(
        margin=margin, discordance=discordance, alpha=alpha, power=0.9, difference=difference
    )
    step = max(1, round(sample / LOOKS_PER_SAMPLE))
    harm, benefit = (discordance + difference) / 2, (discordance - difference) / 2
    chances = np.array([harm, benefit, max(0.0, 1 - harm - benefit)])
    factors = log_factors(np.array([1.0, -1.0, 0.0]), margin, grid)
    generator = np.random.default_rng(seed)
    pairs = np.full(repeats, math.inf)
    counts = np.zeros((repeats, 3))
    running = np.arange(repeats)
    looks = 0
    while running.size and looks * step < LONGEST * sample + LOOKS_PER_SAMPLE * step:
        wave = generator.multinomial(step, chances / chances.sum(), size=(running.size, LOOKS_PER_SAMPLE))
        path = counts[running, None, :] + wave.cumsum(axis=1)
        crossed = _log_e(path, factors, grid) >= -math.log(alpha)
        hit = crossed.any(axis=1)
        pairs[running[hit]] = (looks + 1 + crossed[hit].argmax(axis=1)) * step
        counts[running] = path[:, -1]
        running = running[~hit]
        looks += LOOKS_PER_SAMPLE
    return Stopping(pairs=pairs)


def _log_e(counts: NDArray[np.float64], factors: NDArray[np.float64], grid: Grid) -> NDArray[np.float64]:
    """log E_NI of every look; `log_mixture` for many tables at once."""
    terms = counts @ factors.T + np.log(grid.weights)
    top = terms.max(axis=-1)
    return np.asarray(top + np.log(np.exp(terms - top[..., None]).sum(axis=-1)))
