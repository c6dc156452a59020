"""When an e-process with a look after every unit first reaches its threshold, from the few units that differ.

Between two units with D other than 0 each bet's capital is multiplied by one constant a unit, so the mixture
moves one way: up against `theta >= m` with m > 0, down against `theta <= m`. Whether it ever reaches the
threshold is therefore known from the looks right before and right after each such unit, and the exact first
look from a bisection. `test_crossings.py` compares it with the real functions, look by look.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.decision.eprocess import G10, H5, Grid, log_factors

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Consecutive units: how many, which of them differ (counted from 1, rising), and by how much."""

    length: int
    at: NDArray[np.int64]
    differences: Numbers

    @classmethod
    def of(cls, units: NDArray[Any]) -> Stream:
        """From the mean difference of every unit."""
        differing = np.flatnonzero(units)
        return cls(length=units.size, at=differing + 1, differences=units[differing].astype(np.float64))


def mixtures(log_capitals: Numbers, grid: Grid) -> Numbers:
    """`log_mixture` along the last axis, for many looks at once."""
    terms = log_capitals + np.log(grid.weights)
    top = terms.max(axis=-1, keepdims=True)
    return np.asarray(top[..., 0] + np.log(np.exp(terms - top).sum(axis=-1)))


def first_pass(stream: Stream, margin: float, log_threshold: float) -> float:
    """The unit after which log E_NI(margin) first reaches the threshold; infinite if none."""
    return _first(stream, stream.differences, margin, G10, log_threshold)


def first_harm(stream: Stream, margin: float, log_threshold: float) -> float:
    """The unit after which log E_HARM(margin) first reaches the threshold; infinite if none."""
    return _first(stream, -stream.differences, -margin, H5, log_threshold)


def _first(stream: Stream, differences: Numbers, m: float, grid: Grid, log_threshold: float) -> float:
    equal = log_factors(np.zeros(1), m, grid)[:, 0]
    factors = log_factors(differences, m, grid).T
    equal_before = stream.at - 1 - np.arange(stream.at.size)
    since = np.vstack([np.zeros_like(equal), factors.cumsum(axis=0)])
    looks = np.empty((2 * stream.at.size + 1, equal.size))
    looks[:-1:2] = since[:-1] + np.multiply.outer(equal_before, equal)
    looks[1::2] = looks[:-1:2] + factors
    looks[-1] = since[-1] + (stream.length - stream.at.size) * equal
    reached = np.flatnonzero(mixtures(looks, grid) >= log_threshold)
    if not reached.size:
        return math.inf
    number, right_after = divmod(int(reached[0]), 2)
    if right_after:
        return float(stream.at[number])
    # Reached between two differing units: some number of equal ones after the earlier.
    start = int(stream.at[number - 1]) if number else 0
    fewest, most = start, int(stream.at[number]) - 1 if number < stream.at.size else stream.length
    while most - fewest > 1:
        middle = (fewest + most) // 2
        capital = since[number] + (middle - number) * equal
        fewest, most = (fewest, middle) if mixtures(capital, grid) >= log_threshold else (middle, most)
    return float(most)
