"""Did something grow over the window? The slope of its means over equal spans, with limits.

Requests near one another wait for the same queue, so single ones would give limits that are far too narrow.
Means over spans that are long against the memory of the queue are nearly independent (batch means: Law 2015,
Simulation Modeling and Analysis, 9.5.3); a line through k of them has limits by Student's t with k - 2
degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from scipy.special import stdtrit

from service.load.figures import Slope

SPANS = 10
LEAST_SPANS = 4
LEVEL = 0.95


def slope(times: Sequence[float], values: Sequence[float], *, level: float = LEVEL) -> Slope | None:
    """Of the least-squares line, per second; None with fewer than `LEAST_SPANS` points or times."""
    n = len(times)
    if n < LEAST_SPANS:
        return None
    x, y = np.asarray(times, dtype=np.float64), np.asarray(values, dtype=np.float64)
    x = x - x.mean()
    spread = float(x @ x)
    if spread == 0:
        return None
    value = float(x @ y) / spread
    rest = y - y.mean() - value * x
    error = math.sqrt(float(rest @ rest) / (n - 2) / spread)
    reach = float(stdtrit(n - 2, (1 + level) / 2)) * error
    return Slope(value=value, lower=value - reach, upper=value + reach)


def span_means(
    moments: Iterable[tuple[float, float]], begin: float, end: float, *, spans: int = SPANS
) -> tuple[list[float], list[float]]:
    """Middles of the spans in which there is something, and the mean of what is there: (time, value)."""
    length = (end - begin) / spans
    sums, counts = [0.0] * spans, [0] * spans
    for at, value in moments:
        span = min(spans - 1, int((at - begin) / length))
        sums[span] += value
        counts[span] += 1
    there = [span for span in range(spans) if counts[span]]
    return [begin + (span + 0.5) * length for span in there], [sums[span] / counts[span] for span in there]


def in_flight(
    lives: Iterable[tuple[float, float]], begin: float, end: float, *, spans: int = SPANS
) -> tuple[list[float], list[float]]:
    """Middles of the spans, and how many were under way on average; lives are (scheduled, ended or inf)."""
    edges = np.linspace(begin, end, spans + 1)
    known = np.asarray(list(lives), dtype=np.float64).reshape(-1, 2)
    until = [np.clip(np.minimum(known[:, 1], edge) - known[:, 0], 0.0, None).sum() for edge in edges]
    return list((edges[:-1] + edges[1:]) / 2), list(np.diff(until) / ((end - begin) / spans))
