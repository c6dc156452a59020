"""Tango's score statistic for a paired difference: z, p, interval. A single look; shown, never decides.

Tango 1998 (Stat Med 17:891-908), with the restricted maximum likelihood estimate that Nam 1997 (Biometrics
53:1422) and Liu et al. 2002 (Stat Med 21:231-245) use too:

    z(d0) = (b - c - n d0) / sqrt(n (2 p + d0 (1 - d0)))        p = estimate of P(benefit) given theta = d0

b harms, c benefits in n pairs. Counts may be fractions (counts divided by a design effect).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

_EDGE = 1 - 1e-12


def restricted_benefit(b: ArrayLike, c: ArrayLike, n: ArrayLike, d0: float) -> NDArray[np.float64]:
    """P(benefit) that is most likely when theta = d0: larger root of the score equation, at least -d0.

    Elementwise, n > 0.
    """
    harm, benefit = np.asarray(b, dtype=np.float64), np.asarray(c, dtype=np.float64)
    square = 2.0 * np.asarray(n, dtype=np.float64)
    linear = -(harm + benefit) + (square - harm + benefit) * d0
    constant = -benefit * d0 * (1 - d0)
    root = np.sqrt(np.maximum(linear**2 - 4 * square * constant, 0))
    # The two forms are one root; the second does not subtract nearly equal numbers when linear > 0.
    denominator = np.where(linear > 0, linear + root, 1.0)
    estimate = np.where(linear > 0, -2 * constant / denominator, (root - linear) / (2 * square))
    return np.maximum(estimate, max(0.0, -d0))


def score(b: ArrayLike, c: ArrayLike, n: float, d0: float) -> NDArray[np.float64]:
    """z(d0), elementwise; 0 where nothing varies (no pairs, or d0 = 0 without a discordant pair)."""
    harm, benefit = np.asarray(b, dtype=np.float64), np.asarray(c, dtype=np.float64)
    if n == 0:
        return np.zeros(np.broadcast(harm, benefit).shape)
    variance = n * (2 * restricted_benefit(harm, benefit, n, d0) + d0 * (1 - d0))
    return np.where(
        variance > 0, (harm - benefit - n * d0) / np.sqrt(np.where(variance > 0, variance, 1)), 0.0
    )


def z(b: float, c: float, n: float, d0: float, *, design_effect: float = 1.0) -> float:
    """z(d0) of one table, divided by the root of the design effect (Rao & Scott 1992)."""
    return float(score(b, c, n, d0)) / float(np.sqrt(design_effect))


def noninferiority_p(b: float, c: float, n: float, margin: float, *, design_effect: float = 1.0) -> float:
    """One-sided p against `theta >= margin`; 1 without pairs."""
    return 1.0 if n == 0 else float(ndtr(z(b, c, n, margin, design_effect=design_effect)))


def harm_p(b: float, c: float, n: float, margin: float, *, design_effect: float = 1.0) -> float:
    """One-sided p against `theta <= margin`; 1 without pairs."""
    return 1.0 if n == 0 else float(ndtr(-z(b, c, n, margin, design_effect=design_effect)))


def interval(
    b: float, c: float, n: float, level: float, *, design_effect: float = 1.0
) -> tuple[float, float]:
    """Two-sided limits of theta: the d0 that z does not reject. (-1, 1) without pairs; 0 < level < 1."""
    if not 0 < level < 1:
        raise ValueError(f"level must be in (0, 1), got {level}")
    if n == 0:
        return -1.0, 1.0
    from scipy.optimize import brentq  # slow to load, and only who looks at limits needs it

    quantile = -float(ndtri((1 - level) / 2))

    def upper(harm: float, benefit: float) -> float:
        def excess(d0: float) -> float:
            return z(harm, benefit, n, d0, design_effect=design_effect) + quantile

        if excess(_EDGE) >= 0:
            return 1.0
        if excess(-_EDGE) <= 0:
            return -1.0
        return float(brentq(excess, -_EDGE, _EDGE, xtol=1e-13, maxiter=500))

    # z is 0 at the estimate, which is therefore between the limits however close these are.
    estimate = (b - c) / n
    return min(-upper(c, b), estimate), max(upper(b, c), estimate)
