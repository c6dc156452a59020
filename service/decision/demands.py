"""What a policy asks of a tier, in numbers that need no evidence: e-values, pairs of a clean tier, N_max."""

from __future__ import annotations

import math
from dataclasses import dataclass

from service.decision.ending import planned_max_pairs
from service.decision.planning import zero_discordance_pairs
from service.decision.policy import Criterion, Policy, Role
from service.decision.tally import Tally
from service.decision.thresholds import Thresholds, thresholds


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """One criterion's."""

    criterion: Criterion
    limits: Thresholds
    """What its e-values are compared with; of a criterion that does not decide, what they would be."""
    clean_pairs: int | None
    """Fewest pairs at which it passes, if not one of them differs; None when nothing would pass."""
    max_pairs: int | None
    """N_max: as a person set it, else as planned for a tier without a discordant pair, the least there is."""


def demands(policy: Policy, *, tiers: int, attempt: int = 1, strata: int = 1) -> tuple[Demand, ...]:
    """Of every criterion that is found, the decisive ones first."""
    limits = thresholds(policy, tiers=tiers, attempt=attempt, strata=strata)
    ordered = sorted(policy.visible, key=lambda each: each.role is not Role.DECISIVE)
    return tuple(
        Demand(
            criterion=criterion,
            limits=limits,
            clean_pairs=_clean_pairs(criterion, limits),
            max_pairs=planned_max_pairs(
                policy, criterion, Tally.of_pairs(n=criterion.min_pairs, harm=0, benefit=0), limits
            ),
        )
        for criterion in ordered
    )


def _clean_pairs(criterion: Criterion, limits: Thresholds) -> int | None:
    if limits.accept == math.inf:
        return None
    try:
        return max(criterion.min_pairs, zero_discordance_pairs(criterion.margin, limits.alpha_accept))
    except ValueError:
        return None  # more pairs than anybody will ever have
