"""Bounds for a few planned looks (Lan & DeMets 1983, Biometrika 70:659).

Not used, for only planned looks would count (ADR 4); held to gsDesign and simulated beside what decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

Spending = Callable[[float, float], float]
NODES, REACH = 120, 10.0
"""Of the integration, which begins so many standard deviations below 0."""


def obrien_fleming(alpha: float, information: float) -> float:
    """Alpha spent until then: hardly any at first."""
    return float(2 * ndtr(ndtri(alpha / 2) / math.sqrt(information)))


def pocock(alpha: float, information: float) -> float:
    """Nearly in step with the information."""
    return alpha * math.log1p((math.e - 1) * information)


def bounds(spending: Spending, alpha: float, looks: Sequence[float]) -> list[float]:
    """Of z at each look, one-sided; `looks` are shares of the whole information, rising to 1.

    Armitage, McPherson & Rowe 1969: the density of sums that crossed nowhere yet, look by look.
    """
    found: list[float] = []
    points, weights = _nodes()
    at: NDArray[np.float64] = np.zeros(1)
    mass: NDArray[np.float64] = np.ones(1)
    spent = before = 0.0
    for information in looks:
        step = math.sqrt(information - before)
        wanted = spending(alpha, information) - spent
        most = REACH * math.sqrt(information)
        bound = _bound(at, mass, step, wanted, most)
        found.append(bound / math.sqrt(information))
        middle, half = (bound - most) / 2, (bound + most) / 2
        places = middle + half * points
        density = np.exp(-(((places[:, None] - at) / step) ** 2) / 2) / (step * math.sqrt(2 * math.pi)) @ mass
        at, mass = places, half * weights * density
        spent, before = spent + wanted, information
    return found


def _bound(
    at: NDArray[np.float64], mass: NDArray[np.float64], step: float, wanted: float, most: float
) -> float:
    """Beyond which the next sum is with the chance that may be spent."""
    return float(brentq(lambda limit: float(mass @ ndtr((at - limit) / step)) - wanted, 0.0, most))


@cache
def _nodes() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of Gauss and Legendre, on (-1, 1)."""
    return np.polynomial.legendre.leggauss(NODES)
