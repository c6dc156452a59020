"""What conversations cost a fixed-sample look: Rao & Scott's design effect, guarded for rare events.

K conversations with n_k pairs, S_k = harms - benefits, N pairs, theta = sum S / N (statistics B1.6):

    V_CR1 = K/(K-1) sum (S_k - n_k theta)^2 / N^2      V_iid = s_D^2 / N      DEFF = max(1, V_CR1 / V_iid)

and z of Tango is divided by sqrt(DEFF) (Rao & Scott 1992, Biometrics 48:577). With fewer than 20 discordant
conversations the ratio is noise, so DEFF is at least 1 + (sum n_k^2 / N - 1) rho with rho .25. Chi-squared
tests of no difference: Obuchowski 1998, Durkalski 2003, Yang 2010; they impose no margin and never approve.
"""

from __future__ import annotations

import math

from service.decision.tally import Tally

FEW_DISCORDANT_CONVERSATIONS = 20
ASSUMED_CORRELATION = 0.25


def cluster_variance(tally: Tally) -> float | None:
    """V_CR1 of theta; None below two conversations."""
    if tally.conversations < 2:
        return None
    theta = (tally.harm - tally.benefit) / tally.n
    squares = math.fsum(
        count * (triple.harm - triple.benefit - triple.pairs * theta) ** 2
        for triple, count in tally.units.items()
    )
    return tally.conversations / (tally.conversations - 1) * squares / tally.n**2


def design_effect(tally: Tally, *, correlation: float = ASSUMED_CORRELATION) -> float:
    """How many times more pairs these conversations need than independent pairs; at least 1."""
    if tally.n == 0:
        return 1.0
    effect = 1.0
    clustered = cluster_variance(tally)
    if tally.n > 1 and clustered is not None:
        sum_of_squares = tally.harm + tally.benefit - (tally.harm - tally.benefit) ** 2 / tally.n
        independent = sum_of_squares / (tally.n - 1) / tally.n
        if independent > 0:
            effect = max(1.0, clustered / independent)
    discordant = sum(count for triple, count in tally.units.items() if triple.harm or triple.benefit)
    if discordant < FEW_DISCORDANT_CONVERSATIONS:
        size = sum(count * triple.pairs**2 for triple, count in tally.units.items()) / tally.n
        effect = max(effect, 1 + (size - 1) * correlation)
    return effect


def obuchowski(tally: Tally) -> float:
    """Chi-squared with 1 degree of freedom for no difference; 0 without a discordant conversation."""
    total, squares = tally.harm - tally.benefit, _sum_of_squares(tally)
    clusters = tally.conversations
    return (clusters - 1) / clusters * total**2 / squares if squares else 0.0


def durkalski(tally: Tally) -> float:
    """As `obuchowski`, weighting every conversation alike."""
    means = [((triple.harm - triple.benefit) / triple.pairs, count) for triple, count in tally.units.items()]
    squares = math.fsum(count * mean**2 for mean, count in means)
    return math.fsum(count * mean for mean, count in means) ** 2 / squares if squares else 0.0


def yang(tally: Tally) -> float:
    """As `obuchowski`, with the variance averaged over the null and the estimate."""
    squares = _sum_of_squares(tally)
    if not squares:
        return 0.0
    clusters, total = tally.conversations, tally.harm - tally.benefit
    theta = total / tally.n
    centred = math.fsum(
        count * (triple.harm - triple.benefit - triple.pairs * theta) ** 2
        for triple, count in tally.units.items()
    )
    return (clusters - 1) / clusters * total**2 / ((centred + squares) / 2)


def _sum_of_squares(tally: Tally) -> float:
    return math.fsum(count * (triple.harm - triple.benefit) ** 2 for triple, count in tally.units.items())
