"""Newcombe's interval for a paired difference, method 10. Closed form, a single look; shown, never decides.

Newcombe 1998 (Stat Med 17:2635-2650): Wilson limits of both failure rates, squared and added, with the
correlation of the two arms (its numerator reduced by n/2 when positive).
"""

from __future__ import annotations

import math

from scipy.special import ndtri


def wilson(failures: float, n: float, quantile: float) -> tuple[float, float]:
    """Wilson's score limits of a share."""
    share = failures / n
    centre = (share + quantile**2 / (2 * n)) / (1 + quantile**2 / n)
    half = quantile * math.sqrt(share * (1 - share) / n + quantile**2 / (4 * n**2)) / (1 + quantile**2 / n)
    return centre - half, centre + half


def interval(*, both_failed: int, harm: int, benefit: int, n: int, level: float) -> tuple[float, float]:
    """Two-sided limits of theta = candidate's failure rate - baseline's; (-1, 1) without pairs."""
    if not 0 < level < 1:
        raise ValueError(f"level must be in (0, 1), got {level}")
    if n == 0:
        return -1.0, 1.0
    both_passed = n - both_failed - harm - benefit
    if both_passed < 0:
        raise ValueError(f"more failures than pairs: {both_failed} + {harm} + {benefit} > {n}")
    quantile = -float(ndtri((1 - level) / 2))
    candidate, baseline = both_failed + harm, both_failed + benefit
    p_candidate, p_baseline = candidate / n, baseline / n
    lower_candidate, upper_candidate = wilson(candidate, n, quantile)
    lower_baseline, upper_baseline = wilson(baseline, n, quantile)
    margins = math.sqrt(float(candidate * (n - candidate)) * float(baseline * (n - baseline)))
    association: float = both_failed * both_passed - harm * benefit
    if association > 0:
        association = max(association - n / 2, 0)
    phi = association / margins if margins else 0.0

    def distance(first: float, second: float) -> float:
        return math.sqrt(max(first**2 - 2 * phi * first * second + second**2, 0))

    theta = p_candidate - p_baseline
    return (
        max(-1.0, theta - distance(p_candidate - lower_candidate, upper_baseline - p_baseline)),
        min(1.0, theta + distance(upper_candidate - p_candidate, p_baseline - lower_baseline)),
    )
