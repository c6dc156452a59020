"""How alike requests of one block are in missing their SLO, told by the baseline's own blocks.

A block is the unit of the SLO gate because its requests share whatever happened in it. How much they share is
a property of the load and the engine, not of the difference under test, so the baseline's blocks alone tell
it, also where hardly anything misses: what is compared is not the SLO itself but how near each request came
to it, at the value that 5 % of all exceed. With y = 1 for these, k blocks of m_i requests, N in all,

    MSB = sum m_i (ybar_i - ybar)^2 / (k - 1)        MSW = sum m_i ybar_i (1 - ybar_i) / (N - k)
    m0  = (N - sum m_i^2 / N) / (k - 1)              rho = (MSB - MSW) / (MSB + (m0 - 1) MSW)

cut off at 0 and 1: the analysis-of-variance estimator (Fleiss 1981; Ridout, Demetrio & Firth 1999, Biometrics
55:137).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from service.decision.quantile import sample_quantile

WORST_SHARE = 0.05
"""Of all requests, taken as the ones that nearly missed."""
LEAST_BLOCKS = 8


def block_correlation(blocks: Sequence[Sequence[float]]) -> float | None:
    """Rho of near misses. `blocks`: by request, the largest of TTFT and TPOT over their limits; inf = failed.

    None where that cannot be told: too few blocks, or nothing that sets the worst requests apart.
    """
    blocks = [block for block in blocks if block]
    if len(blocks) < LEAST_BLOCKS:
        return None
    ordered = sorted(value for block in blocks for value in block)
    limit = sample_quantile(ordered, 1 - WORST_SHARE)
    if math.isinf(limit):
        limit = max((value for value in ordered if math.isfinite(value)), default=math.inf)
    marked = [(len(block), sum(value > limit for value in block)) for block in blocks]
    return _anova(marked)


def _anova(marked: Sequence[tuple[int, int]]) -> float | None:
    """From requests and marked ones of each block."""
    count, total = len(marked), sum(size for size, _ in marked)
    share = sum(some for _, some in marked) / total
    if not 0 < share < 1 or total == count:
        return None
    between = math.fsum(size * (some / size - share) ** 2 for size, some in marked) / (count - 1)
    within = math.fsum(some * (1 - some / size) for size, some in marked) / (total - count)
    size = (total - sum(each**2 for each, _ in marked) / total) / (count - 1)
    spread = between + (size - 1) * within
    if spread <= 0:
        return None
    return min(1.0, max(0.0, (between - within) / spread))
