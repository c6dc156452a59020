"""The bets of e-processes (statistics A1): frozen mixtures, as plain numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Bets in (0, 1) and the share of the capital on each. Frozen for the life of an epoch."""

    bets: tuple[float, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.bets) != len(self.weights) or not self.bets:
            raise ValueError("a grid needs one weight for every bet, and at least one bet")
        if not all(0 < bet < 1 for bet in self.bets) or not all(weight > 0 for weight in self.weights):
            raise ValueError("bets must be in (0, 1) and weights above 0")
        if not math.isclose(math.fsum(self.weights), 1, abs_tol=1e-12):
            raise ValueError(f"weights must sum to 1, got {math.fsum(self.weights)}")


G10 = Grid(
    bets=(0.999, *(2**-exponent for exponent in (0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4.5, 5.5))),
    weights=(0.11,) * 8 + (0.06,) * 2,
)
"""Bets for showing non-inferiority."""
H5 = Grid(bets=(0.9, 0.5, 0.25, 0.125, 0.0625), weights=(0.2,) * 5)
"""Bets for showing harm."""
