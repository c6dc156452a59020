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
    """For non-inferiority: log(1 / alpha_accept)."""
    harm: float
    """For harm: log(M x tiers / alpha_harm), over M decisive criteria."""
    strata: float
    """For harm in one stratum of one criterion: M x S / alpha_strata (ADR 17)."""
    warn: float
    alpha_accept: float
    """0 when no error rate is left for this attempt; `accept` is then infinite."""
    alpha_gates: float
    """Of one gate over all its load runs in this attempt; 0 when none is left. See `run_alpha`."""
    attempt: int


def thresholds(
    policy: Policy, *, tiers: int, attempt: int, strata: int = 1, after_skip: bool = False
) -> Thresholds:
    """The policy's error rates, shared over tiers, attempts and strata (statistics A3 to A5).

    `after_skip`: a tier below was skipped, so alpha is shared over the tiers whatever the ladder's rule.
    M counts the decisive criteria only: the others reject nothing, so they may err as they like.
    """
    shared = tiers if after_skip or policy.ladder_rule is LadderRule.INDEPENDENT else 1

    def left(alpha: float) -> float:
        if policy.alpha_spending is AlphaSpending.OVER_ATTEMPTS:
            return attempt_alpha(alpha / shared, attempt)
        return alpha / shared if attempt == 1 else 0.0

    alpha = left(policy.alpha_approval)
    criteria = len(policy.decisive)
    return Thresholds(
        accept=-math.log(alpha) if alpha else math.inf,
        harm=log_harm_threshold(criteria=criteria, tiers=tiers, alpha=policy.alpha_harm),
        strata=log_harm_threshold(criteria=criteria, tiers=tiers, strata=strata, alpha=policy.alpha_strata),
        warn=-math.log(policy.alpha_warn),
        alpha_accept=alpha,
        alpha_gates=left(policy.alpha_of_gates),
        attempt=attempt,
    )


def run_alpha(limits: Thresholds, run: int) -> float:
    """What the j-th load run of an epoch is held to: alpha_j of what the attempt has (statistics A5).

    A run a week until one passes must not work, so all runs of an epoch share; and all epochs of a tier do.
    """
    return attempt_alpha(limits.alpha_gates, run)
