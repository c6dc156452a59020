"""Everything that can be said of one paired table and one margin: what decides, and what a single look shows.

The e-values decide, whenever and however often one looks. Tango's and the exact p hold for one look fixed in
advance, and McNemar answers another question; they are shown beside and never decide (statistics A7, A8).
"""

from __future__ import annotations

from dataclasses import dataclass

from service.decision import exact, mcnemar, tango
from service.decision.finding import find
from service.decision.policy import AlphaSpending, Criterion, Policy
from service.decision.tally import Tally
from service.decision.thresholds import Thresholds, thresholds
from service.decision.verdict import Finding, Interval

MOST_PAIRS = 10**9
LEAST_ALPHA = 1e-9
"""Beyond these, rounding would have a say in the intervals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One table of independent pairs, judged alone: no minimum of pairs, no other criteria, first attempt."""

    finding: Finding
    limits: Thresholds
    tango_z: float | None
    """None without pairs."""
    tango_p: float
    tango_interval: Interval
    exact_p: float | None
    """None where enumeration would take too long and Tango's p is as good."""
    mcnemar_mid_p: float


def look(*, n: int, harm: int, benefit: int, margin: float, alpha: float) -> Look:
    """Judge n pairs with these harms and benefits; ValueError for impossible counts, margin or alpha."""
    if min(n, harm, benefit) < 0:
        raise ValueError(f"counts cannot be negative: n={n}, harm={harm}, benefit={benefit}")
    if harm + benefit > n:
        raise ValueError(f"harm + benefit ({harm} + {benefit}) cannot exceed n ({n})")
    if n > MOST_PAIRS:
        raise ValueError(f"at most {MOST_PAIRS:,} pairs, got {n:,}")
    if not LEAST_ALPHA <= alpha < 0.5:
        raise ValueError(f"alpha must be in [{LEAST_ALPHA:g}, 0.5), got {alpha}")
    if not 0 < margin < 1:
        raise ValueError(f"margin must be in (0, 1), got {margin}")
    criterion = Criterion(evaluator="counts", margin=margin, min_pairs=1)
    policy = Policy(
        criteria=(criterion,),
        alpha_accept=alpha,
        alpha_harm=alpha,
        alpha_warn=alpha,
        alpha_spending=AlphaSpending.FIRST_ATTEMPT,
    )
    limits = thresholds(policy, tiers=1, attempt=1)
    lower, upper = tango.interval(harm, benefit, n, 1 - 2 * alpha)
    return Look(
        finding=find(policy, criterion, Tally.of_pairs(n=n, harm=harm, benefit=benefit), limits),
        limits=limits,
        tango_z=tango.z(harm, benefit, n, margin) if n else None,
        tango_p=tango.noninferiority_p(harm, benefit, n, margin),
        tango_interval=Interval(lower=lower, upper=upper, level=1 - 2 * alpha, method="Tango score"),
        exact_p=exact.exact_p(harm, benefit, n, margin) if exact.is_cheap(harm, benefit, n) else None,
        mcnemar_mid_p=mcnemar.mid_p(harm, benefit),
    )
