"""When an epoch ends without a decision: N_max pairs, or T_max seconds (statistics A4, A13)."""

from __future__ import annotations

from service.decision.clusters import design_effect
from service.decision.planning import max_pairs
from service.decision.policy import Criterion, Policy
from service.decision.tally import Tally
from service.decision.thresholds import Thresholds


def planned_max_pairs(
    policy: Policy, criterion: Criterion, tally: Tally, limits: Thresholds, *, control: Tally | None = None
) -> int | None:
    """N_max of the criterion, to be fixed once per epoch at the first look that has `min_pairs`; None before.

    6 x n90(psi_plan), with psi_plan = max(.01, psi_AA of the control, upper 95 % limit of the candidate's own
    discordance), times the design effect of its conversations. It looks at b + c only, which does not tell
    harm from benefit. A person's `max_pairs` comes first, and at any number of pairs.
    """
    if criterion.max_pairs is not None:
        return criterion.max_pairs
    if tally.n < criterion.min_pairs:
        return None
    noise = (control.harm + control.benefit) / control.n if control is not None and control.n else 0.0
    return max(
        criterion.min_pairs,
        max_pairs(
            margin=criterion.margin,
            # Without an error rate left nothing can be accepted; plan as if there were, so that it ends.
            alpha=limits.alpha_accept or policy.alpha_approval,
            discordant=tally.harm + tally.benefit,
            pairs=tally.n,
            control_discordance=noise,
            design_effect=design_effect(tally),
        ),
    )


def out_of_pairs(criterion: Criterion, tally: Tally, planned: int | None) -> str | None:
    """Why no further pair may be asked for; None while one may. `planned`: N_max as fixed for the epoch."""
    limit = criterion.max_pairs if criterion.max_pairs is not None else planned
    if limit is None or tally.n < limit:
        return None
    return f"counted pairs ({tally.n}) >= max_pairs ({limit})"


def out_of_time(policy: Policy, age_seconds: float | None) -> str | None:
    """Why the epoch has had its time; None while it has not, or may take any."""
    if policy.longest_seconds is None or age_seconds is None or age_seconds < policy.longest_seconds:
        return None
    return f"age of the epoch ({age_seconds:.0f} s) >= longest ({policy.longest_seconds:.0f} s)"
