"""Exact unconditional p, tables ordered by Tango's z. A single look; shown, never decides.

Hsueh, Liu & Chen 2001 (Biometrics 57:478): the worst case of `theta >= margin` lies on `theta = margin`, so

    p = max over q of P{ z(I, J) <= z(b, c) }      (I, J) multinomial, P(benefit) = q, P(harm) = q + margin

For each J the region is I <= cut(J), which makes the inner sum one binomial tail. Berger & Boos 1994: q may
be searched inside a 1 - gamma Clopper-Pearson interval if gamma is added to p; that keeps large n cheap.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincc, betaln, xlog1py, xlogy

from service.decision.binomial import highest_share, lowest_share
from service.decision.tango import score

GAMMA = 1e-6
FULL_SEARCH_PAIRS = 5000
"""Up to here every q is searched; beyond, only inside the Berger-Boos interval."""
FEW_DISCORDANT = 100

_TIE = 1e-9
"""Tables this close in z count as equally extreme: rounding must not drop the observed one."""


def is_cheap(b: int, c: int, n: int) -> bool:
    """Whether `exact_p` takes milliseconds (statistics A7): few discordant pairs, or few pairs."""
    return b + c <= FEW_DISCORDANT or n <= FULL_SEARCH_PAIRS


def exact_p(b: int, c: int, n: int, margin: float, *, gamma: float | None = None) -> float:
    """p against `theta >= margin`; 1 without pairs. `gamma`: 0 up to 5000 pairs, 1e-6 beyond."""
    if not 0 < margin < 1:
        raise ValueError(f"margin must be in (0, 1), got {margin}")
    if n == 0:
        return 1.0
    if gamma is None:
        gamma = 0.0 if n <= FULL_SEARCH_PAIRS else GAMMA
    lowest, highest = 0.0, (1 - margin) / 2
    if gamma:
        lowest = min(highest, lowest_share(c, n, gamma / 2))
        highest = min(highest, highest_share(c, n, 1 - gamma / 2))
    most = min(n, int(n * highest + 12 * np.sqrt(n * highest) + 60))
    benefits = np.arange(most + 1, dtype=np.float64)
    cuts = _cuts(benefits, n, margin, float(score(b, c, n, margin)) + _TIE)
    log_choose = -betaln(n - benefits + 1, benefits + 1) - np.log1p(n)

    def region(points: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.array([_probability(q, n, margin, benefits, cuts, log_choose) for q in points])

    # Small q needs a finer grid: there one pair more or less changes everything.
    start = max(lowest, min(highest, 1e-3 / n))
    points = np.union1d(np.geomspace(start, highest, 100), np.linspace(lowest, highest, 100))
    heights = region(points)
    for _ in range(2):
        peak = int(heights.argmax())
        finer = np.linspace(points[max(0, peak - 1)], points[min(len(points) - 1, peak + 1)], 21)
        points, heights = finer, region(finer)
    return min(1.0, float(heights.max()) + gamma)


def _cuts(benefits: NDArray[np.float64], n: int, margin: float, bound: float) -> NDArray[np.float64]:
    """Most harms with z <= bound beside each number of benefits, -1 for none: z grows with every harm."""
    inside, outside = np.full(benefits.shape, -1.0), n - benefits + 1
    while np.any(outside - inside > 1):
        middle = np.floor((inside + outside) / 2)
        extreme = score(middle, benefits, n, margin) <= bound
        open_ = outside - inside > 1
        inside = np.where(open_ & extreme, middle, inside)
        outside = np.where(open_ & ~extreme, middle, outside)
    return inside


def _probability(
    q: float,
    n: int,
    margin: float,
    benefits: NDArray[np.float64],
    cuts: NDArray[np.float64],
    log_choose: NDArray[np.float64],
) -> float:
    """P(region) when P(benefit) = q and P(harm) = q + margin."""
    mass = np.exp(log_choose + xlogy(benefits, q) + xlog1py(n - benefits, -q))
    kept = (mass > 1e-18) & (cuts >= 0)
    if not kept.any():
        return 0.0
    conditional = min(1.0, (q + margin) / (1 - q))
    rest = n - benefits[kept]
    # P(X <= k) of a binomial is a tail of the beta distribution; at k = rest it is all of it.
    beyond = np.maximum(rest - cuts[kept], 1)
    tails = np.where(cuts[kept] >= rest, 1.0, betaincc(cuts[kept] + 1, beyond, conditional))
    return float(mass[kept] @ tails)
