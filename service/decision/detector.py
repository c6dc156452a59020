"""After approval: a Shiryaev-Roberts e-detector, which notices that a tier has become worse (statistics A12).

Every unit with mean difference D updates each bet k of the harm grid,

    R_k <- (R_k + 1) f_k(D)        f_k(D) = 1 + k (D - margin) / (1 + margin)        R_k = 0 at the start

and the alarm rings when sum_k w_k R_k >= 1e5 (Shin, Ramdas & Rinaldo 2023, doi 10.51387/23-nejsds51).
R is the sum of the harm capitals of a bet begun at each unit so far: a change far in the past or just now is
found alike. While theta <= margin, R minus the units so far is a supermartingale, so the expected time to a
false alarm is at least 1e5 units. Unlike an e-value it depends on the order of the units.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.decision.eprocess import log_factors, log_mixture
from service.decision.grid import H5, Grid

LOG_ALARM = math.log(1e5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """What consecutive units did to R: R after = product x R before + total, for each bet, in logarithms.

    The state of a detector is the stretch from approval until now. `earlier.then(later)` is the stretch of
    both; it is associative, so workers may compress their units and join them, but not commutative: the units
    must have one agreed order, such as the order of capture. Inside a joined stretch R may have been higher
    than at its end, so joining can only delay an alarm.
    """

    margin: float
    grid: Grid = H5
    units: int = 0
    log_product: tuple[float, ...] = ()
    """One for each bet of the grid, in its order."""
    log_total: tuple[float, ...] = ()
    """Likewise; -infinity before the first unit."""

    def __post_init__(self) -> None:
        if not 0 <= self.margin < 1:
            raise ValueError(f"margin must be in [0, 1), got {self.margin}")
        if not self.units:
            # The stretch of no unit changes nothing: product 1, total 0.
            object.__setattr__(self, "log_product", (0.0,) * len(self.grid.bets))
            object.__setattr__(self, "log_total", (-math.inf,) * len(self.grid.bets))
        if not len(self.log_product) == len(self.log_total) == len(self.grid.bets):
            raise ValueError(
                f"a stretch needs one product and one total for each of {len(self.grid.bets)} bets"
            )

    @property
    def log_statistic(self) -> float:
        """Log of the mixture of R over the bets; -infinity before the first unit."""
        return log_mixture(np.array(self.log_total), self.grid)

    @property
    def alarm(self) -> bool:
        """Whether R has reached the alarm at the end of the stretch. The first alarm rolls back one rung."""
        return self.log_statistic >= LOG_ALARM

    def then(self, later: Stretch) -> Stretch:
        """This stretch followed by a later one; ValueError unless both bet the same."""
        if (self.margin, self.grid) != (later.margin, later.grid):
            raise ValueError("stretches of different margins or bets cannot be joined")
        product, total = np.array(later.log_product), np.array(later.log_total)
        return Stretch(
            margin=self.margin,
            grid=self.grid,
            units=self.units + later.units,
            log_product=tuple((np.array(self.log_product) + product).tolist()),
            log_total=tuple(np.logaddexp(np.array(self.log_total) + product, total).tolist()),
        )

    def after(self, differences: Iterable[float]) -> Stretch:
        """This stretch followed by units with these mean differences in [-1, 1], in order."""
        numbers = np.array(list(differences), dtype=np.float64)
        if not numbers.size:
            return self
        product, total = np.array(self.log_product), np.array(self.log_total)
        for factor in _factors(numbers, self.margin, self.grid):
            product = product + factor
            total = np.logaddexp(total, 0.0) + factor
        return Stretch(
            margin=self.margin,
            grid=self.grid,
            units=self.units + numbers.size,
            log_product=tuple(product.tolist()),
            log_total=tuple(total.tolist()),
        )


def first_alarm(start: Stretch, differences: Iterable[float]) -> int | None:
    """How many of these units it takes from `start` to the alarm, looking after each; None without one."""
    if start.alarm:
        return 0
    numbers = np.array(list(differences), dtype=np.float64)
    total = np.array(start.log_total)
    for unit, factor in enumerate(_factors(numbers, start.margin, start.grid), start=1):
        total = np.logaddexp(total, 0.0) + factor
        if log_mixture(total, start.grid) >= LOG_ALARM:
            return unit
    return None


def _factors(differences: NDArray[np.float64], margin: float, grid: Grid) -> NDArray[np.float64]:
    """log f_k(D), a row for every unit."""
    if not np.all(np.abs(differences) <= 1):
        raise ValueError("differences must be in [-1, 1]")
    return log_factors(-differences, -margin, grid).T
