"""Exact limits of a share, each one-sided (Clopper & Pearson 1934, Biometrika 26:404)."""

from __future__ import annotations

from scipy.special import betaincinv


def lowest_share(found: int, n: int, alpha: float) -> float:
    """The share is below it with a chance of at most alpha; 0 where nothing was found."""
    return float(betaincinv(found, n - found + 1, alpha)) if found else 0.0


def highest_share(found: int, n: int, level: float) -> float:
    """The share is at most this with a chance of at least `level`; 1 where all were found."""
    return float(betaincinv(found + 1, n - found, level)) if found < n else 1.0
