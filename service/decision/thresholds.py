"""What e-values are compared with: error rates shared over criteria, tiers, strata and attempts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from service.decision.multiplicity import attempt_alpha, log_harm_threshold
from service.decision.policy import AlphaSpending, LadderRule, Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """What the e-values of one epoch are compared with (logarithms), and the error rate behind it."""

    accept: float
    harm: float
    strata: float
    """For harm in one stratum of one criterion: M x S / alpha_strata (ADR 17)."""
    warn: float
    alpha_accept: float
    """0 when no error rate is left for this attempt; `accept` is then infinite."""
    attempt: int


def thresholds(
    policy: Policy, *, tiers: int, attempt: int, strata: int = 1, after_skip: bool = False
) -> Thresholds:
    """The policy's error rates, shared over tiers, attempts and strata (statistics A3 to A5).

    `after_skip`: a tier below was skipped, so alpha is shared over the tiers whatever the ladder's rule.
    M counts the decisive criteria only: the others reject nothing, so they may err as they like.
    """
    alpha = policy.alpha_approval
    if after_skip or policy.ladder_rule is LadderRule.INDEPENDENT:
        alpha /= tiers
    if policy.alpha_spending is AlphaSpending.OVER_ATTEMPTS:
        alpha = attempt_alpha(alpha, attempt)
    elif attempt > 1:
        alpha = 0.0
    criteria = len(policy.decisive)
    return Thresholds(
        accept=-math.log(alpha) if alpha else math.inf,
        harm=log_harm_threshold(criteria=criteria, tiers=tiers, alpha=policy.alpha_harm),
        strata=log_harm_threshold(criteria=criteria, tiers=tiers, strata=strata, alpha=policy.alpha_strata),
        warn=-math.log(policy.alpha_warn),
        alpha_accept=alpha,
        attempt=attempt,
    )
