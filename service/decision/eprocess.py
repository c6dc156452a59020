"""The one engine (statistics A1, A2): betting e-processes with a frozen mixture of bets, and their limits.

Against H0 `theta >= m`, a bet k on a unit with mean difference D multiplies the capital by

    1 + k (m - D) / (1 - m)

which has mean at most 1 under H0 (Waudby-Smith & Ramdas 2024, JRSS-B 86:1; Ville's inequality makes the
capital valid at every stopping time). The e-value is the capital averaged over the grid of bets. For single
pairs, D is +1 (harm), -1 (benefit) or 0, and the product depends only on the counts; for conversations D is
the mean of their pairs, and only the histogram of these means matters. All in natural logarithms, up to 1e7
units.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from service.decision.grid import G10, H5, Grid
from service.decision.tally import Tally

_EDGE = 1 - 1e-12
"""Where the search for a limit starts; a limit beyond it is 1 (or -1)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Differences:
    """How many units had each mean difference D in [-1, 1]; positive is worse."""

    values: NDArray[np.float64]
    """One-dimensional, each once, in no order."""
    counts: NDArray[np.float64]
    """Of the value in the same place."""

    @classmethod
    def of(cls, histogram: Mapping[float, int]) -> Differences:
        """From any histogram of D, fractions included; ValueError outside [-1, 1] or below 0 units."""
        values = np.array(list(histogram.keys()), dtype=np.float64)
        counts = np.array(list(histogram.values()), dtype=np.float64)
        if not np.all(np.abs(values) <= 1) or not np.all((counts >= 0) & np.isfinite(counts)):
            raise ValueError("differences must be in [-1, 1] and their counts at least 0, and finite")
        return cls(values=values, counts=counts)

    @classmethod
    def of_tally(cls, tally: Tally) -> Differences:
        """One unit per conversation: the mean of its pairs (statistics A2)."""
        histogram: Counter[float] = Counter()
        for triple, count in tally.units.items():
            histogram[(triple.harm - triple.benefit) / triple.pairs] += count
        return cls.of(histogram)

    @property
    def units(self) -> float:
        return float(self.counts.sum())

    @property
    def mean(self) -> float | None:
        """The mean difference, in [-1, 1]; None without units."""
        if not self.units:
            return None
        return min(1.0, max(-1.0, float(self.values @ self.counts) / self.units))

    def mirrored(self) -> Differences:
        """Harm and benefit exchanged."""
        return Differences(values=-self.values, counts=self.counts)


def log_capital(differences: Differences, m: float, grid: Grid) -> NDArray[np.float64]:
    """Log capital of each bet of the grid against H0 `theta >= m`; ValueError unless -1 < m < 1."""
    return log_factors(differences.values, m, grid) @ differences.counts


def log_factors(values: NDArray[np.float64], m: float, grid: Grid) -> NDArray[np.float64]:
    """What one unit of each value does to the log capital of each bet (bets x values)."""
    if not -1 < m < 1:
        raise ValueError(f"the bound on theta must be in (-1, 1), got {m}")
    bets, _ = _arrays(grid)
    factors: NDArray[np.float64] = np.log1p(np.multiply.outer(bets, (m - values) / (1 - m)))
    return factors


def log_mixture(log_capitals: NDArray[np.float64], grid: Grid) -> float:
    """Log of the weighted mean of capitals, without leaving log space."""
    return float(log_mixtures(log_capitals, grid))


def log_mixtures(log_capitals: NDArray[np.float64], grid: Grid) -> NDArray[np.float64]:
    """`log_mixture` of many at once: the bets are the last axis."""
    _, log_weights = _arrays(grid)
    return np.asarray(np.logaddexp.reduce(log_weights + log_capitals, axis=-1))


@cache
def _arrays(grid: Grid) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bets and logarithms of the weights."""
    return np.array(grid.bets), np.log(grid.weights)


def log_e_noninferiority(differences: Differences, m: float, grid: Grid = G10) -> float:
    """log E_NI(m): evidence against `theta >= m`. 0 without units; compare with log(1/alpha)."""
    return log_mixture(log_capital(differences, m, grid), grid)


def log_e_harm(differences: Differences, m: float, grid: Grid = H5) -> float:
    """log E_HARM(m): evidence against `theta <= m`; E_NI with harm and benefit exchanged and m negated."""
    return log_e_noninferiority(differences.mirrored(), -m, grid)


def log_mean(first: float, second: float) -> float:
    """Log of the mean of two e-values, which is again an e-value."""
    return float(np.logaddexp(first, second) - math.log(2))


def upper_limit(differences: Differences, alpha: float, grid: Grid = G10) -> float:
    """sup{m: E_NI(m) < 1/alpha}: theta stays below it forever with probability 1 - alpha. 1 without units."""
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be in (0, 1), got {alpha}")
    return _upper_limit(differences.values.tobytes(), differences.counts.tobytes(), alpha, grid)


@lru_cache(maxsize=4096)
def _upper_limit(values_seen: bytes, counts_seen: bytes, alpha: float, grid: Grid) -> float:
    """By the counts alone, so that whoever looks again at the same counts is told at once."""
    bets, log_weights = _arrays(grid)
    values, counts = (np.frombuffer(seen, dtype=np.float64) for seen in (values_seen, counts_seen))
    threshold = -math.log(alpha)

    def excess(m: float) -> float:
        # `log_e_noninferiority` in one expression: a limit takes some twenty of these.
        capitals = np.log1p(np.multiply.outer(bets, (m - values) / (1 - m))) @ counts
        return float(np.logaddexp.reduce(log_weights + capitals)) - threshold

    # E_NI never falls as m grows. At -1 no bet can have won; just above it many units may have been enough.
    if excess(_EDGE) <= 0:
        return 1.0
    if excess(-_EDGE) >= 0:
        return -1.0
    from scipy.optimize import brentq  # slow to load, and only who looks at limits needs it

    return float(brentq(excess, -_EDGE, _EDGE, xtol=1e-13, maxiter=500))


def confidence_sequence(
    differences: Differences, alpha: float, *, upper_grid: Grid = G10, lower_grid: Grid = H5
) -> tuple[float, float]:
    """Limits of theta, each wrong with probability at most alpha over all looks (together 1 - 2 alpha)."""
    lower = -upper_limit(differences.mirrored(), alpha, lower_grid)
    upper = upper_limit(differences, alpha, upper_grid)
    # At the mean of the units both e-values are at most 1: it lies between, whatever rounding says.
    mean = differences.mean
    return (lower, upper) if mean is None else (min(lower, mean), max(upper, mean))
