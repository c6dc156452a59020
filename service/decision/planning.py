"""How much evidence a decision will need: pairs at a fixed sample, pairs still missing, and when to stop.

Fixed sample (statistics A6; Nam 1997, Liu et al. 2002), psi = share of discordant pairs, theta = true
difference:

    n = (z_{1-alpha} sqrt(2 p + delta - delta^2) + z_{power} sqrt(psi - theta^2))^2 / (delta - theta)^2

with p the restricted estimate of P(benefit) at theta = delta. What the e-process needs in the mean and at
quantiles is simulated in `stopping`; here is what a verdict can afford on every read.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from service.decision.binomial import highest_share
from service.decision.eprocess import Differences, log_capital, log_factors, log_mixture
from service.decision.grid import G10, Grid
from service.decision.tango import restricted_benefit

CLOSEST = 1e-8
"""Of a margin and a difference: within it, a plan is for more pairs than anybody counts."""
MOST_PAIRS = 10**15
"""That an epoch may ask for: beyond what anybody counts, and within what a database does."""
LEAST_DISCORDANCE = 0.01
"""Planning assumes at least this share of discordant pairs (A13)."""
STOP_FACTOR = 6
OUT_OF_SIGHT = 10**9
"""Pairs beyond which a forecast is no forecast."""


def check_scenario(*, margin: float, difference: float, discordance: float, alpha: float) -> None:
    """ValueError unless these could be pairs, with a difference that can be shown to be within the margin."""
    if not 0 < margin < 1:
        raise ValueError(f"margin must be in (0, 1), got {margin}")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be in (0, 1), got {alpha}")
    if not 0 <= discordance <= 1:
        raise ValueError(f"discordance must be in [0, 1], got {discordance}")
    if not abs(difference) <= discordance:
        raise ValueError(
            f"a difference of {difference} needs a discordance of at least that, got {discordance}"
        )
    if difference >= margin:
        raise ValueError(f"difference ({difference}) must be below the margin ({margin}): no sample shows it")
    if margin - difference < CLOSEST:
        raise ValueError(
            f"difference ({difference}) and margin ({margin}) must be {CLOSEST} apart or more: nobody counts "
            "the pairs that less would take"
        )


def fixed_pairs(
    *,
    margin: float,
    discordance: float,
    alpha: float,
    power: float,
    difference: float = 0.0,
    design_effect: float = 1.0,
) -> float:
    """Pairs for one look with that power, before rounding up."""
    check_scenario(margin=margin, difference=difference, discordance=discordance, alpha=alpha)
    if not 0 < power < 1:
        raise ValueError(f"power must be in (0, 1), got {power}")
    if not 1 <= design_effect < math.inf:
        raise ValueError(f"design effect must be at least 1 and finite, got {design_effect}")
    harm, benefit = (discordance + difference) / 2, (discordance - difference) / 2
    restricted = float(restricted_benefit(harm, benefit, 1, margin))
    null_spread = math.sqrt(2 * restricted + margin - margin**2)
    true_spread = math.sqrt(max(discordance - difference**2, 0))
    # -ndtri(alpha), since 1 - alpha of a small alpha is 1.
    numerator = -float(ndtri(alpha)) * null_spread + float(ndtri(power)) * true_spread
    # A power below alpha would need a negative number of deviations: no pair is needed for that.
    return design_effect * max(numerator, 0.0) ** 2 / (margin - difference) ** 2


def zero_discordance_pairs(margin: float, alpha: float, grid: Grid = G10) -> int:
    """Fewest pairs, none of them discordant, at which the e-process passes: 481 for margin .01, alpha .05."""
    check_scenario(margin=margin, difference=0, discordance=0, alpha=alpha)
    needed = pairs_to_pass(Differences.of({}), margin, -math.log(alpha), grid=grid)
    if needed is None:
        raise ValueError(f"margin {margin} and alpha {alpha} need more than {OUT_OF_SIGHT:,} pairs")
    return needed


def pairs_to_pass(
    differences: Differences,
    margin: float,
    log_threshold: float,
    *,
    pairs_per_unit: float = 1.0,
    grid: Grid = G10,
) -> int | None:
    """Expected further pairs until log E_NI reaches the threshold if the tier is equal; None if out of sight.

    Every unit to come is taken to look like one so far or like its mirror image, equally often, so the
    discordance stays and theta is 0; each bet's log capital grows by its expectation. Exact without
    discordance, otherwise 6 to 12 % above the simulated mean (`docs/statistics.md`). Without units, no
    discordance is expected.
    """
    current = log_capital(differences, margin, grid)
    if log_mixture(current, grid) >= log_threshold:
        return 0
    growth = _growth_when_equal(differences, margin, grid)
    if growth.max() <= 0 or not math.isfinite(log_threshold):
        return None

    def reached(units: int) -> bool:
        return log_mixture(current + units * growth, grid) >= log_threshold

    most = 1
    while not reached(most):
        most *= 2
        if most > OUT_OF_SIGHT:
            return None
    # The mixture is convex in the number of units and starts below the threshold: it crosses it once.
    fewest = most // 2
    while most - fewest > 1:
        middle = (fewest + most) // 2
        fewest, most = (fewest, middle) if reached(middle) else (middle, most)
    return math.ceil(most * pairs_per_unit)


def _growth_when_equal(differences: Differences, margin: float, grid: Grid) -> NDArray[np.float64]:
    """Expected growth of each bet's log capital per unit when harm and benefit are equally likely."""
    if not differences.units:
        return log_factors(np.zeros(1), margin, grid)[:, 0]
    shares = differences.counts / differences.units
    both = log_factors(differences.values, margin, grid) + log_factors(-differences.values, margin, grid)
    return np.asarray(both @ shares / 2)


def discordance_limit(discordant: int, pairs: int, level: float = 0.95) -> float:
    """One-sided upper limit of the share of discordant pairs (Clopper & Pearson 1934); 1 without pairs."""
    if not 0 <= discordant <= pairs:
        raise ValueError(f"discordant pairs must be in 0..{pairs}, got {discordant}")
    return highest_share(discordant, pairs, level)


def max_pairs(
    *,
    margin: float,
    alpha: float,
    discordant: int,
    pairs: int,
    control_discordance: float = 0.0,
    design_effect: float = 1.0,
) -> int:
    """N_max = 6 n90(psi_plan): where an epoch stops looking (A13). Fix it once, at the minimum of pairs.

    psi_plan = max(.01, discordance of the control, upper 95 % limit of the candidate's own). The count b + c
    does not tell harm from benefit, so looking at it spends nothing. At a margin near 1 one look takes fewer
    pairs than the e-process takes of a tier without a discordant pair: that many may be asked for at least.
    """
    planned = max(LEAST_DISCORDANCE, control_discordance, discordance_limit(discordant, pairs))
    needed = fixed_pairs(
        margin=max(margin, CLOSEST),
        discordance=planned,
        alpha=alpha,
        power=0.9,
        design_effect=design_effect,
    )
    return min(MOST_PAIRS, max(math.ceil(STOP_FACTOR * needed), _clean_pairs(margin, alpha)))


def _clean_pairs(margin: float, alpha: float) -> int:
    """As `zero_discordance_pairs`; 0 where that is out of sight, and 6 n90 is far beyond."""
    return pairs_to_pass(Differences.of({}), margin, -math.log(alpha)) or 0
