"""One criterion: from its tally to `accept`, `undecided` or `reject`, with the numbers and the reason.

Harm needs no minimum of pairs, since the e-value is valid at any number of them; acceptance does. In an
equivalence test both directions must pass, and their harms share one e-value, the mean of the two: so a
criterion counts once among the M of the harm threshold whatever its hypothesis.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from service.decision.eprocess import (
    G10,
    H5,
    Differences,
    confidence_sequence,
    log_e_harm,
    log_e_noninferiority,
    log_mean,
)
from service.decision.multiplicity import attempt_alpha, log_harm_threshold
from service.decision.planning import pairs_to_pass
from service.decision.policy import AlphaSpending, Criterion, Hypothesis, LadderRule, Policy
from service.decision.tally import Tally, Triple
from service.decision.unscored import had_they_been, withheld_reason
from service.decision.verdict import Decision, Finding, Interval, LogE
from service.decision.wording import compared_e_values, compared_shares


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """What the e-values of one epoch are compared with (logarithms), and the error rate behind it."""

    accept: float
    harm: float
    warn: float
    alpha_accept: float
    """0 when no error rate is left for this attempt; `accept` is then infinite."""
    attempt: int


def thresholds(policy: Policy, *, tiers: int, attempt: int) -> Thresholds:
    """The policy's error rates, shared over tiers and attempts (statistics A3 to A5)."""
    alpha = policy.alpha_accept
    if policy.ladder_rule is LadderRule.INDEPENDENT:
        alpha /= tiers
    if policy.alpha_spending is AlphaSpending.OVER_ATTEMPTS:
        alpha = attempt_alpha(alpha, attempt)
    elif attempt > 1:
        alpha = 0.0
    return Thresholds(
        accept=-math.log(alpha) if alpha else math.inf,
        harm=log_harm_threshold(criteria=len(policy.criteria), tiers=tiers, alpha=policy.alpha_harm),
        warn=-math.log(policy.alpha_warn),
        alpha_accept=alpha,
        attempt=attempt,
    )


def log_e_values(criterion: Criterion, tally: Tally) -> LogE:
    """The three e-values; for equivalence the lesser pass and the mean harm of both directions."""
    upward = Differences.of_tally(tally)
    noninferiority = log_e_noninferiority(upward, criterion.margin)
    harm, warn = log_e_harm(upward, criterion.margin), log_e_harm(upward, 0.0)
    if criterion.hypothesis is Hypothesis.NON_INFERIOR:
        return LogE(noninferiority=noninferiority, harm=harm, warn=warn)
    downward = upward.mirrored()
    return LogE(
        noninferiority=min(noninferiority, log_e_noninferiority(downward, criterion.margin)),
        harm=log_mean(harm, log_e_harm(downward, criterion.margin)),
        warn=log_mean(warn, log_e_harm(downward, 0.0)),
    )


def find(
    policy: Policy,
    criterion: Criterion,
    tally: Tally,
    limits: Thresholds,
    *,
    control: Tally | None = None,
    max_pairs: int | None = None,
) -> Finding:
    """The finding of one criterion of the policy; total on every valid tally."""
    log_e = log_e_values(criterion, tally)
    withheld = withheld_reason(policy, tally, control)
    decision, why = _decide(criterion, tally, limits, log_e, withheld)
    warn = log_e.warn >= limits.warn
    more = None
    if decision is Decision.UNDECIDED:
        more = _more_pairs(criterion, tally, limits, warn=warn)
        if max_pairs is not None and tally.n >= max_pairs:
            why, more = f"not_shown: counted pairs ({tally.n}) >= max_pairs ({max_pairs}): {why}", None
    return Finding(
        criterion=criterion.evaluator,
        decision=decision,
        reason=why,
        n=tally.n,
        conversations=tally.conversations,
        harm=tally.harm,
        benefit=tally.benefit,
        estimate=(tally.harm - tally.benefit) / tally.n if tally.n else None,
        interval=_interval(policy, criterion, tally, limits),
        margin=criterion.margin,
        log_e=log_e,
        warn=warn,
        more_pairs=more,
    )


def _decide(
    criterion: Criterion, tally: Tally, limits: Thresholds, log_e: LogE, withheld: str | None
) -> tuple[Decision, str]:
    """Harm first; then what stands in the way of acceptance, the most fundamental obstacle first."""
    harm = log_e.harm if withheld is None else _least_harm(criterion, tally)
    margin = f"{criterion.margin:g}"
    if harm >= limits.harm:
        found, needed = compared_e_values(harm, limits.harm)
        return Decision.REJECT, f"harm beyond the margin of {margin} shown: e-value {found} >= {needed}"
    if tally.n < criterion.min_pairs:
        return Decision.UNDECIDED, f"counted pairs ({tally.n}) < min_pairs ({criterion.min_pairs})"
    if withheld is not None:
        return Decision.UNDECIDED, withheld
    failing = tally.baseline_failures / tally.n
    if failing > criterion.baseline_failure_cap:
        found, allowed = compared_shares(failing, criterion.baseline_failure_cap)
        return (
            Decision.UNDECIDED,
            f"uninformative: baseline failure share {found} > baseline_failure_cap {allowed}",
        )
    if limits.accept == math.inf:
        return Decision.UNDECIDED, f"no error rate is left for attempt {limits.attempt} > 1"
    found, needed = compared_e_values(log_e.noninferiority, limits.accept)
    if log_e.noninferiority >= limits.accept:
        return Decision.ACCEPT, f"shown within the margin of {margin}: e-value {found} >= {needed}"
    return Decision.UNDECIDED, f"not yet shown within the margin of {margin}: e-value {found} < {needed}"


def _least_harm(criterion: Criterion, tally: Tally) -> float:
    """The harm e-value had every missing score spoken against it: in each direction, the other way round."""
    benefits, harms = had_they_been(tally, Triple(1, 0, 1)), had_they_been(tally, Triple(1, 1, 0))
    upward = log_e_harm(Differences.of_tally(benefits), criterion.margin)
    if criterion.hypothesis is Hypothesis.NON_INFERIOR:
        return upward
    return log_mean(upward, log_e_harm(Differences.of_tally(harms).mirrored(), criterion.margin))


def _interval(policy: Policy, criterion: Criterion, tally: Tally, limits: Thresholds) -> Interval:
    """Limits that agree with the e-values: the upper is at most the margin exactly when that passes."""
    alpha = limits.alpha_accept or policy.alpha_accept
    both_ways = criterion.hypothesis is Hypothesis.EQUIVALENT
    lower, upper = confidence_sequence(
        Differences.of_tally(tally), alpha, lower_grid=G10 if both_ways else H5
    )
    return Interval(
        lower=lower,
        upper=upper,
        level=max(0.0, 1 - 2 * alpha),
        method="confidence sequence (betting mixture)",
    )


def _more_pairs(criterion: Criterion, tally: Tally, limits: Thresholds, *, warn: bool) -> int | None:
    """None when a difference is evident (the forecast assumes none) or pairs are not what is missing."""
    if warn:
        return None
    upward = Differences.of_tally(tally)
    directions = [upward, upward.mirrored()] if criterion.hypothesis is Hypothesis.EQUIVALENT else [upward]
    per_unit = tally.n / tally.conversations if tally.n else 1.0
    needed = [
        pairs_to_pass(direction, criterion.margin, limits.accept, pairs_per_unit=per_unit)
        for direction in directions
    ]
    if any(pairs is None for pairs in needed):
        return None
    return max(criterion.min_pairs - tally.n, *(pairs for pairs in needed if pairs is not None)) or None
