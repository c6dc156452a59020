"""What people's labels do to a finding (ADR 27): they replace its difference once they suffice, and may
withhold.

The e-value decides, at every look; the labels' interval holds for one look at a number of labels that nobody
fixed. So labels never bring about what the e-value did not show. Where they suffice,

- an acceptance stands only if the labels' interval is within the margin as well: acceptance is the
  intersection of both, and so no easier than alpha allows;
- a rejection becomes `undecided`, never an acceptance, if that interval is within the margin, every counted
  discordant pair has been labelled, and two people agree; not if a stratum alone rejects.

Labels suffice when there are at least 100 of them, at most 5 % of the pairs looked at were left open, and the
interval is at most twice the margin wide: narrow enough to speak about the margin at all.
"""

from __future__ import annotations

from dataclasses import replace

from service.decision.correction import DISCORDANT, Labels, pairs_by_cell, rectify
from service.decision.policy import Criterion, Hypothesis, Policy
from service.decision.tally import Tally
from service.decision.thresholds import Thresholds
from service.decision.verdict import Correction, Decision, Finding, Interval
from service.decision.wording import corrected

NO_LABELS = Labels()
LEAST_ALPHA = 1e-12
LEAST_LABELS = 100
MOST_OPEN = 0.05
"""Of the pairs that people looked at."""
WIDEST = 2.0
"""Margins that the interval may be wide."""
LEAST_BY_TWO = 20
LEAST_KAPPA = 0.6
"""What two people must agree on, and how well, before labels lift a rejection."""


def with_labels(
    policy: Policy,
    criterion: Criterion,
    finding: Finding,
    tally: Tally,
    labels: Labels,
    limits: Thresholds,
    *,
    ended: str | None = None,
) -> Finding:
    """The finding with what labels say of it; as it was without any. `ended`: why the epoch has ended, if it
    has: what labels leave undecided is then not shown, as without them."""
    rectified = rectify(tally, labels, level=level_of(policy, limits.alpha_accept))
    if rectified is None or finding.estimate is None:
        return finding
    missing = _missing(criterion, labels, rectified.interval)
    correction = Correction(
        labels=labels.labelled,
        undecided=labels.undecided,
        estimate=rectified.estimate,
        interval=rectified.interval,
        raw_estimate=finding.estimate,
        raw_interval=finding.interval,
        suffices=not missing,
        missing=missing,
    )
    if missing:
        return replace(finding, correction=correction)
    decision, reason = _weigh(criterion, finding, tally, labels, limits, rectified.interval)
    over = ended is not None and decision is not finding.decision
    return replace(
        finding,
        decision=decision,
        reason=f"{f'not_shown: {ended}: ' if over else ''}{reason}; {corrected(correction)}",
        estimate=correction.estimate,
        interval=correction.interval,
        more_pairs=finding.more_pairs if decision is finding.decision else None,
        not_shown=finding.not_shown or over,
        correction=correction,
    )


def level_of(policy: Policy, alpha_accept: float) -> float:
    """Of intervals by labels: that of acceptance, or of a first attempt where no error rate is left."""
    # An error rate of a half or more has no interval, and one below what a double tells from 0 neither.
    return min(1 - LEAST_ALPHA, max(0.5, 1 - 2 * (alpha_accept or policy.alpha_approval)))


def _missing(criterion: Criterion, labels: Labels, interval: Interval) -> str:
    """What the labels lack, empty when they suffice."""
    if labels.labelled < LEAST_LABELS:
        return f"labels ({labels.labelled}) < {LEAST_LABELS}"
    looked_at = labels.labelled + labels.undecided
    if labels.undecided > MOST_OPEN * looked_at:
        return f"pairs left open ({labels.undecided} of {looked_at}) > {MOST_OPEN:.0%}"
    width, widest = interval.upper - interval.lower, WIDEST * criterion.margin
    if width > widest:
        return f"interval width {100 * width:.3g} pp > {100 * widest:.3g} pp, {WIDEST:g} times the margin"
    return ""


def _weigh(
    criterion: Criterion,
    finding: Finding,
    tally: Tally,
    labels: Labels,
    limits: Thresholds,
    interval: Interval,
) -> tuple[Decision, str]:
    within = interval.upper <= criterion.margin and (
        criterion.hypothesis is Hypothesis.NON_INFERIOR or interval.lower >= -criterion.margin
    )
    margin = f"the margin of {criterion.margin:g}"
    if finding.decision is Decision.ACCEPT and not within:
        return (
            Decision.UNDECIDED,
            f"withheld: within {margin} by the evaluator, not by people's labels ({finding.reason})",
        )
    if finding.decision is Decision.REJECT and within and _may_lift(finding, tally, labels, limits):
        return (
            Decision.UNDECIDED,
            f"lifted: harm by the evaluator is within {margin} by people's labels ({finding.reason})",
        )
    return finding.decision, finding.reason


def _may_lift(finding: Finding, tally: Tally, labels: Labels, limits: Thresholds) -> bool:
    """Whether labels are complete and agreed upon, and it is the average that rejects."""
    if finding.worst_strata and finding.worst_strata[0].log_e_harm >= limits.strata:
        return False
    pairs = pairs_by_cell(tally)
    complete = all(sum(labels.of(cell).values()) >= pairs[cell] for cell in DISCORDANT)
    agreed = labels.by_two >= LEAST_BY_TWO and labels.kappa is not None and labels.kappa >= LEAST_KAPPA
    return complete and agreed
