"""Error rates shared out: over criteria and tiers, over attempts, and Holm's sharper sharing.

Acceptance needs no correction across criteria: all must pass, so one wrong pass is not enough
(intersection-union, Berger 1982). Harm does, since any criterion of any tier may reject; and so do repeated
submissions of one tier.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def log_harm_threshold(*, criteria: int, tiers: int, alpha: float, strata: int = 1) -> float:
    """log(M S / alpha), M = criteria x tiers under test: e-Bonferroni, valid under any dependence (A3).

    S is 1 for the traffic as a whole, the number of strata there can be for the worst of them.
    """
    if min(criteria, tiers, strata) < 1:
        raise ValueError(
            f"criteria, tiers and strata must be at least 1, got {criteria}, {tiers} and {strata}"
        )
    return math.log(criteria * tiers * strata) - math.log(alpha)


def attempt_alpha(alpha: float, attempt: int) -> float:
    """alpha 6 / (pi^2 j^2) for the j-th attempt: all attempts together err at most alpha (A5)."""
    if attempt < 1:
        raise ValueError(f"attempts count from 1, got {attempt}")
    return alpha * 6 / (math.pi * attempt) ** 2


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjusted p-values, in the order given (Holm 1979, Scand J Stat 6:65)."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    running = 0.0
    for rank, i in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = running
    return tuple(adjusted)


def log_e_holm(log_e_values: Sequence[float]) -> tuple[float, ...]:
    """Adjusted log e-values, in the order given: each compares with log(1/alpha) by itself.

    e*_r = min over k of (e_r + the k smallest others) / (k + 1): the least mean of any set that contains r,
    which is the closed test by averages (Vovk & Wang 2021, Ann Stat 49:1736).
    """
    adjusted = []
    for r, own in enumerate(log_e_values):
        least = total = own
        for k, other in enumerate(sorted([*log_e_values[:r], *log_e_values[r + 1 :]]), start=1):
            total = _log_sum(total, other)
            least = min(least, total - math.log(k + 1))
        adjusted.append(least)
    return tuple(adjusted)


def _log_sum(first: float, second: float) -> float:
    high, low = max(first, second), min(first, second)
    return high if high == -math.inf else high + math.log1p(math.exp(low - high))
