"""One criterion: from its tally to `accept`, `undecided` or `reject`, with the numbers and the reason.

Harm needs no minimum of pairs, since the e-value is valid at any number of them; acceptance does. Harm in one
stratum alone is harm as well, at an error rate of its own (`strata`). Every reason is one sentence with both
numbers: what was found and what it was held to.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

from service.decision.directions import log_e_least_harm, log_e_values
from service.decision.ending import out_of_pairs, out_of_time
from service.decision.eprocess import Differences, confidence_sequence
from service.decision.grid import G10, H5
from service.decision.planning import pairs_to_pass
from service.decision.policy import Criterion, Hypothesis, Policy
from service.decision.strata import worst_strata
from service.decision.tally import Tally
from service.decision.tenants import share_withheld
from service.decision.thresholds import Thresholds
from service.decision.unscored import withheld_reason
from service.decision.verdict import Decision, Finding, Interval, LogE, StratumHarm
from service.decision.wording import compared_e_values, compared_shares

NO_TALLIES: Mapping[str, Tally] = {}


def find(
    policy: Policy,
    criterion: Criterion,
    tally: Tally,
    limits: Thresholds,
    *,
    control: Tally | None = None,
    strata: Mapping[str, Tally] = NO_TALLIES,
    tenants: Mapping[str, Tally] = NO_TALLIES,
    max_pairs: int | None = None,
    age_seconds: float | None = None,
    others_met: bool = False,
) -> Finding:
    """The finding of one criterion of the policy; total on every valid tally.

    `max_pairs`: N_max as fixed for the epoch. `others_met`: some request was of another criterion's kind.
    """
    log_e = log_e_values(criterion, tally)
    withheld = withheld_reason(policy, tally, control)
    worst = worst_strata(policy, criterion, strata, withheld=withheld is not None)
    harmed = _harm(criterion, tally, limits, log_e, worst, believed=withheld is None)
    warn = log_e.warn >= limits.warn
    more, ended = None, None
    if harmed is not None:
        decision, why = Decision.REJECT, harmed
    else:
        in_the_way = (
            _too_few(criterion, tally, others_met=others_met)
            or withheld
            or _uninformative(criterion, tally)
            or share_withheld(policy, tally, tenants)
        )
        decision, why = (
            (Decision.UNDECIDED, in_the_way) if in_the_way is not None else _weigh(criterion, limits, log_e)
        )
    if decision is Decision.UNDECIDED:
        ended = out_of_pairs(criterion, tally, max_pairs) or out_of_time(policy, age_seconds)
        if ended is None:
            more = _more_pairs(criterion, tally, limits, warn=warn)
        else:
            why = f"not_shown: {ended}: {why}"
    return Finding(
        criterion=criterion.evaluator,
        decision=decision,
        reason=why,
        n=tally.n,
        conversations=tally.conversations,
        harm=tally.harm,
        benefit=tally.benefit,
        estimate=Differences.of_tally(tally).mean,
        interval=_interval(criterion, tally, limits.alpha_accept or policy.alpha_approval),
        margin=criterion.margin,
        log_e=log_e,
        warn=warn,
        more_pairs=more,
        role=criterion.role,
        not_shown=ended is not None,
        worst_strata=worst,
    )


def _harm(
    criterion: Criterion,
    tally: Tally,
    limits: Thresholds,
    log_e: LogE,
    worst: tuple[StratumHarm, ...],
    *,
    believed: bool,
) -> str | None:
    """How harm is shown: over all traffic, or in the worst stratum alone."""
    harm = log_e.harm if believed else log_e_least_harm(criterion, tally)
    if harm >= limits.harm:
        found, needed = compared_e_values(harm, limits.harm)
        return f"harm beyond the margin of {criterion.margin:g} shown: e-value {found} >= {needed}"
    if worst and worst[0].log_e_harm >= limits.strata:
        found, needed = compared_e_values(worst[0].log_e_harm, limits.strata)
        return (
            f"harm beyond the margin of {criterion.margin:g} shown in stratum {worst[0].stratum}: "
            f"e-value {found} >= {needed}"
        )
    return None


def _too_few(criterion: Criterion, tally: Tally, *, others_met: bool) -> str | None:
    if tally.n >= criterion.min_pairs:
        return None
    short = f"counted pairs ({tally.n}) < min_pairs ({criterion.min_pairs})"
    if others_met and not tally.due:
        return (
            f"{short}: no request so far is of this kind; if none will be, "
            "name the criteria that apply in policy.criteria"
        )
    return short


def _uninformative(criterion: Criterion, tally: Tally) -> str | None:
    failing = tally.baseline_failures / tally.n
    if failing <= criterion.baseline_failure_cap:
        return None
    found, allowed = compared_shares(failing, criterion.baseline_failure_cap)
    return f"uninformative: baseline failure share {found} > baseline_failure_cap {allowed}"


def _weigh(criterion: Criterion, limits: Thresholds, log_e: LogE) -> tuple[Decision, str]:
    """With nothing else in the way, the e-value decides."""
    if limits.accept == math.inf:
        return Decision.UNDECIDED, f"no error rate is left for attempt {limits.attempt} > 1"
    found, needed = compared_e_values(log_e.noninferiority, limits.accept)
    margin = f"{criterion.margin:g}"
    if log_e.noninferiority >= limits.accept:
        return Decision.ACCEPT, f"shown within the margin of {margin}: e-value {found} >= {needed}"
    return Decision.UNDECIDED, f"not yet shown within the margin of {margin}: e-value {found} < {needed}"


@lru_cache(maxsize=1024)
def _interval(criterion: Criterion, tally: Tally, alpha: float) -> Interval:
    """Limits that agree with the e-values: the upper is at most the margin exactly when that passes."""
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


@lru_cache(maxsize=1024)
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
