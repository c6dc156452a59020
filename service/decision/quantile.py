"""A quantile of one arm, such as P95 of the time to first token, with limits that assume no distribution.

Of n independent values, the number below the true q-quantile is binomial(n, q). So with x_(1) <= ... <= x_(n)
and a = (1 - level) / 2 (David & Nagaraja 2003, Order Statistics; as `scipy.stats.quantile_test`)

    lower limit x_(r): the largest r with P(B <= r - 1) < a
    upper limit x_(s): the least s with P(B >= s) <= a

The upper limit exists only if q^n <= a: P95 at a two-sided level of .95 needs 72 values. Values of one load
run are autocorrelated; a difference between arms belongs to `bootstrap`.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, bdtrc, betainc


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileLimits:
    """A sample quantile and its limits, in the unit of the values."""

    share: float
    """Which quantile: .95 is P95."""
    n: int
    level: float
    """Coverage of both limits together, at least."""
    value: float | None
    """None without values."""
    lower: float | None
    upper: float | None
    """None where n values allow no finite limit, whatever they are; infinite if the value there is."""
    standard_error: float | None
    """Maritz & Jarrett's; None where it has no value: too few values, or an infinite one."""


def quantile_limits(values: ArrayLike, share: float, *, level: float = 0.95) -> QuantileLimits:
    """The quantile and its limits; +infinity is a request that never ended.

    ValueError for NaN, -infinity and nested values.
    """
    _check(share, level)
    ordered = np.sort(_numbers(values))
    n = ordered.size
    lower, upper = limit_ranks(n, share, level=level)
    return QuantileLimits(
        share=share,
        n=n,
        level=level,
        value=sample_quantile(ordered, share) if n else None,
        lower=None if lower is None else float(ordered[lower - 1]),
        upper=None if upper is None else float(ordered[upper - 1]),
        standard_error=_maritz_jarrett(ordered, share),
    )


def limit_ranks(n: int, share: float, *, level: float = 0.95) -> tuple[int | None, int | None]:
    """Ranks r and s of the limits, counted from 1; None where n values allow none."""
    _check(share, level)
    if n < 0:
        raise ValueError(f"a number of values cannot be negative, got {n}")
    tail = (1 - level) / 2
    # bdtr(k) = P(B <= k) rises with k, bdtrc(k) = P(B > k) falls.
    lower = bisect_left(range(n + 1), tail, key=lambda k: float(bdtr(k, n, share)))
    upper = bisect_left(range(n + 1), -tail, key=lambda k: -float(bdtrc(k, n, share))) + 1
    return lower if lower >= 1 else None, upper if upper <= n else None


def fewest_values(share: float, *, level: float = 0.95) -> int:
    """Fewest values with a finite upper limit: 72 for P95 at a two-sided level of .95, 59 at .90."""
    _check(share, level)
    fewest = max(1, math.ceil(math.log((1 - level) / 2) / math.log(share)))
    return fewest if limit_ranks(fewest, share, level=level)[1] is not None else fewest + 1


def sample_quantile(values: Sequence[float] | NDArray[np.float64], share: float) -> float:
    """Linear interpolation between order statistics (Hyndman & Fan's type 7); ValueError without values."""
    numbers = np.asarray(values, dtype=np.float64)
    if not numbers.size:
        raise ValueError("no values have no quantile")
    position = (numbers.size - 1) * share
    below = math.floor(position)
    above = min(below + 1, numbers.size - 1)
    parted = np.partition(numbers, (below, above))
    low, high = float(parted[below]), float(parted[above])
    # Between two infinite values there is nothing to interpolate.
    return low if low == high or position == below else low + (position - below) * (high - low)


def _maritz_jarrett(ordered: NDArray[np.float64], share: float) -> float | None:
    """Standard error of the quantile (Maritz & Jarrett 1978, JASA 73:194), as `scipy.stats.mstats.mjci`."""
    n = ordered.size
    rank = int(share * n + 0.5)
    if not 2 <= rank < n or not np.all(np.isfinite(ordered)):
        return None
    weights = np.diff(betainc(rank - 1, n - rank, np.arange(n + 1) / n))
    centre = float(weights @ ordered)
    return math.sqrt(float(weights @ (ordered - centre) ** 2))


def _numbers(values: ArrayLike) -> NDArray[np.float64]:
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1:
        raise ValueError(f"values must be a flat sequence, got {numbers.ndim} dimensions")
    if np.any(np.isnan(numbers)) or np.any(numbers == -np.inf):
        raise ValueError("values must be numbers; only +infinity may stand for one that was not reached")
    return numbers


def _check(share: float, level: float) -> None:
    if not 0 < share < 1:
        raise ValueError(f"the quantile must be in (0, 1), got {share}")
    if not 0 < level < 1:
        raise ValueError(f"level must be in (0, 1), got {level}")
