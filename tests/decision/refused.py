"""Methods that approve nothing here (statistics A8, B1.1), written down to measure what is said of them.

b harms and c benefits in n pairs; theta = P(harm) - P(benefit). Held to R and to published tables in
`test_refused.py`, beside how often each approves a tier that is exactly at the margin.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import gammaln, ndtri, xlogy
from scipy.stats import beta, chi2

from service.decision import tango
from service.decision.tally import Tally

Limits = tuple[float, float]


def _around(estimate: float, half: float) -> Limits:
    return max(-1.0, estimate - half), min(1.0, estimate + half)


def wald(b: float, c: float, n: float, level: float) -> Limits:
    """Of width 0 without a discordant pair."""
    theta = (b - c) / n
    return _around(theta, quantile(level) * math.sqrt(max(0.0, b + c - n * theta**2)) / n)


def agresti_min(b: float, c: float, n: float, level: float) -> Limits:
    """Agresti & Min 2005 (Stat Med 24:729): Wald with half a pair more in each cell."""
    return wald(b + 0.5, c + 0.5, n + 2, level)


def bonett_price(b: float, c: float, n: float, level: float) -> Limits:
    """Bonett & Price 2012 (J Educ Behav Stat 37:479): one more of either discordance, two pairs more."""
    harm, benefit = (b + 1) / (n + 2), (c + 1) / (n + 2)
    theta = harm - benefit
    return _around(theta, quantile(level) * math.sqrt((harm + benefit - theta**2) / (n + 2)))


def scas(b: float, c: float, n: float, level: float) -> Limits:
    """Tango's score with a correction of its skewness (Laud 2017, Pharm Stat 16:334)."""
    estimate, z = (b - c) / n, quantile(level)

    def score(d0: float) -> float:
        benefit = float(tango.restricted_benefit(b, c, n, d0))
        harm = benefit + d0
        variance = (harm + benefit - d0**2) / (n - 1)
        third = harm * (1 - d0) ** 3 - benefit * (1 + d0) ** 3 - (1 - harm - benefit) * d0**3
        if variance <= 0:
            return 0.0
        plain, skewness = (estimate - d0) / math.sqrt(variance), third / n**2 / (6 * variance**1.5)
        if abs(skewness) < 1e-14:
            return plain
        # skewness z^2 + z - (plain + skewness) = 0
        return (math.sqrt(max(0.0, 1 + 4 * skewness * (plain + skewness))) - 1) / (2 * skewness)

    edge = 1 - 1e-12
    lower = brentq(lambda d0: score(d0) - z, -edge, min(estimate, edge)) if score(-edge) > z else -1.0
    upper = brentq(lambda d0: score(d0) + z, max(estimate, -edge), edge) if score(edge) < -z else 1.0
    return float(lower), float(upper)


def fay_lumbard_p(b: int, c: int, n: int, margin: float) -> float:
    """Pr[T (2 B - 1) >= margin], T ~ Beta(b+c+1, n-b-c), or Beta(b+c, n-b-c+1) below 0; B ~ Beta(b+1, c).

    Fay & Lumbard 2021 (Stat Med 40:1147). Exact, and so cautious that it takes more pairs than `exact`.
    """
    if margin < 0 and not b + c:
        return 1.0
    total = _quantiles(b + c + 1, n - b - c) if margin >= 0 else _quantiles(b + c, n - b - c + 1)
    return float(np.mean(_above(b + 1, c, (1 + margin / total) / 2)))


def fay_lumbard_upper(b: int, c: int, n: int, alpha: float) -> float:
    """One-sided upper limit of theta: the margin whose p is alpha."""
    edge = 1 - 1e-12
    if fay_lumbard_p(b, c, n, edge) >= alpha:
        return 1.0
    return float(brentq(lambda margin: fay_lumbard_p(b, c, n, margin) - alpha, -edge, edge))


def mcnemar_continuity_p(b: int, c: int) -> float:
    """Two-sided, with Edwards's correction; 1 without a discordant pair."""
    return float(chi2.sf(max(abs(b - c) - 1, 0) ** 2 / (b + c), 1)) if b + c else 1.0


def bias_reduced(tally: Tally) -> tuple[float, float]:
    """CR2 standard error of theta over conversations, and Satterthwaite's degrees of freedom.

    Bell & McCaffrey 2002 (Surv Methodol 28:169). Of a mean alone both have a closed form: conversation k has
    leverage n_k/N.
    """
    triples = [triple for triple, count in tally.units.items() for _ in range(count)]
    sizes = np.array([triple.pairs for triple in triples], dtype=float)
    sums = np.array([triple.harm - triple.benefit for triple in triples], dtype=float)
    total, left = sizes.sum(), 1 - sizes / sizes.sum()
    variance = float(((sums - sizes * sums.sum() / total) ** 2 / left).sum() / total**2)
    products = np.diag(sizes / left) - np.outer(sizes, sizes) / total / np.sqrt(np.outer(left, left))
    return math.sqrt(variance), float(np.trace(products) ** 2 / (products**2).sum())


def quantile(level: float) -> float:
    return -float(ndtri((1 - level) / 2))


@cache
def _quantiles(a: int, b: int) -> np.ndarray:
    """Twenty thousand equally likely values of a beta distribution; all 1 without a second parameter."""
    return beta.ppf((np.arange(20_000) + 0.5) / 20_000, a, b) if b else np.ones(1)


def _above(a: int, b: int, limit: np.ndarray) -> np.ndarray:
    return beta.sf(limit, a, b) if b else (limit <= 1).astype(float)


def approved(rule: Callable[[int, int], bool], n: int, most: int) -> NDArray[np.bool_]:
    """Which tables a rule approves, by up to `most` harms and as many benefits."""
    within = min(n, most)
    return np.array(
        [[i + j <= n and rule(i, j) for j in range(within + 1)] for i in range(within + 1)], dtype=np.bool_
    )


def size(tables: NDArray[np.bool_], n: int, margin: float, benefit: float) -> float:
    """How often these tables come of a tier that is exactly at the margin, by enumeration."""
    harm, i, j = benefit + margin, np.arange(len(tables))[:, None], np.arange(len(tables))
    equal = n - i - j
    log_mass = gammaln(n + 1) - gammaln(i + 1) - gammaln(j + 1) - gammaln(np.maximum(equal, 0) + 1)
    log_mass = log_mass + xlogy(i, harm) + xlogy(j, benefit) + xlogy(equal, 1 - harm - benefit)
    return float(np.exp(log_mass)[tables & (equal >= 0)].sum())
