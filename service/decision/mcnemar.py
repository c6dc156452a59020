"""McNemar's tests. They answer "is there any difference?", never "is it below the margin?"

A p above alpha is not an approval. Mid-p: Fagerland, Lydersen & Laake 2013 (BMC Med Res Methodol 13:91).
"""

from __future__ import annotations

import math

from scipy.special import bdtr, gammaln


def exact_p(harm: int, benefit: int) -> float:
    """Two-sided exact p; 1 without a discordant pair."""
    discordant, fewer = harm + benefit, min(harm, benefit)
    return 1.0 if discordant == 0 else min(1.0, 2 * float(bdtr(fewer, discordant, 0.5)))


def mid_p(harm: int, benefit: int) -> float:
    """Two-sided mid-p; 1 without a discordant pair."""
    discordant, fewer = harm + benefit, min(harm, benefit)
    if discordant == 0:
        return 1.0
    point = math.exp(
        float(gammaln(discordant + 1) - gammaln(fewer + 1) - gammaln(discordant - fewer + 1))
        - discordant * math.log(2)
    )
    return 1 - point / 2 if harm == benefit else 2 * float(bdtr(fewer, discordant, 0.5)) - point


def harm_p(harm: int, benefit: int) -> float:
    """One-sided exact p that harms prevail; 1 without a discordant pair."""
    return 1.0 if harm + benefit == 0 else float(bdtr(benefit, harm + benefit, 0.5))
