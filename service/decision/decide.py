"""From a policy and the evidence on one tier to a verdict (statistics A3, A4). Total and pure.

`accept` iff every decisive criterion passes, every gate asked for passes, and the rung below is accepted;
`reject` iff harm is shown on a decisive criterion or a gate asked for is shown to fail; `undecided`
otherwise, with everything in the way. Criteria that are only shown are found like the others and weigh
nothing. A control alarm withholds both: an instrument that sees a difference where there is none proves
nothing. So does a stack that differs in more than the precision.
"""

from __future__ import annotations

from collections.abc import Iterator

from service.decision.ending import out_of_pairs, out_of_time
from service.decision.evidence import Evidence
from service.decision.finding import NO_TALLIES, find
from service.decision.gates import (
    Gated,
    attribution_gate,
    control_gate,
    coverage_gate,
    measured_gate,
)
from service.decision.labelled import NO_LABELS, with_labels
from service.decision.policy import Criterion, Gate, LadderRule, Policy, Role
from service.decision.tally import Tally
from service.decision.thresholds import Thresholds, thresholds
from service.decision.verdict import Decision, Finding, GateState, Verdict

_WORST_FIRST = {
    Decision.REJECT: GateState.FAILED,
    Decision.UNDECIDED: GateState.UNDECIDED,
    Decision.ACCEPT: GateState.PASSED,
}
WITHHOLDING = (Gate.CONTROL, Gate.ATTRIBUTION)
"""Gates that withhold acceptance and rejection alike: the instrument, or the stack, may be at fault."""
_OPEN = frozenset({GateState.FAILED, GateState.UNDECIDED, GateState.MISSING})
"""States of a gate that stand in the way of acceptance."""


def limits_of(policy: Policy, evidence: Evidence) -> Thresholds:
    """What the e-values of this evidence are compared with."""
    return thresholds(
        policy,
        tiers=evidence.tiers_under_test,
        attempt=evidence.attempt,
        strata=evidence.strata_under_test,
        after_skip=bool(evidence.skipped_below),
    )


def decide(policy: Policy, evidence: Evidence, *, rung_below: Decision | None) -> Verdict:
    """The verdict on one tier. `rung_below`: the decision on the tier that it waits for, None for the
    baseline: the tier below, or the one below the lowest that is skipped (`ladder`).
    """
    limits = limits_of(policy, evidence)
    control = evidence.control or {}
    any_met = any(tally.due for tally in evidence.tallies.values())
    findings = tuple(
        with_labels(
            policy,
            criterion,
            find(
                policy,
                criterion,
                evidence.tallies.get(criterion.evaluator, Tally()),
                limits,
                control=control.get(criterion.evaluator),
                strata=evidence.strata.get(criterion.evaluator, NO_TALLIES),
                tenants=evidence.tenants.get(criterion.evaluator, NO_TALLIES),
                max_pairs=evidence.max_pairs.get(criterion.evaluator),
                age_seconds=evidence.age_seconds,
                others_met=any_met,
            ),
            evidence.tallies.get(criterion.evaluator, Tally()),
            evidence.labels.get(criterion.evaluator, NO_LABELS),
            limits,
            ended=_ended(policy, criterion, evidence),
        )
        for criterion in policy.visible
    )
    decisive = tuple(finding for finding in findings if finding.role is Role.DECISIVE)
    gates = {
        Gate.QUALITY: _quality(decisive),
        Gate.CONTROL: control_gate(policy, evidence, limits),
        Gate.COVERAGE: coverage_gate(policy, evidence.coverage),
        Gate.ATTRIBUTION: attribution_gate(policy, evidence.attribution),
        Gate.SLO: measured_gate(policy, evidence, Gate.SLO),
        Gate.MONEY: measured_gate(policy, evidence, Gate.MONEY),
    }
    below: tuple[str, ...] = ()
    if policy.ladder_rule is LadderRule.FIXED_SEQUENCE and rung_below not in (None, Decision.ACCEPT):
        below = ("rung_below_not_accepted",)
    decision, reasons = _weigh(gates, below)
    reasons += tuple(_skips(evidence))
    not_shown, late = False, None
    if decision is Decision.UNDECIDED and not _withholding(gates):
        not_shown = any(finding.not_shown for finding in decisive)
        if not not_shown and any(gated.state in _OPEN for gated in gates.values()):
            # Quality is shown, and what a gate asks for has not come in all that time.
            late = out_of_time(policy, evidence.age_seconds)
    return Verdict(
        model=evidence.model,
        tier=evidence.tier,
        decision=decision,
        reasons=(f"not_shown: {late}", *reasons) if late is not None else reasons,
        findings=findings,
        gates={gate: gated.state for gate, gated in gates.items()},
        epoch=evidence.epoch,
        attempt=evidence.attempt,
        alpha_accept=limits.alpha_accept,
        not_shown=not_shown or late is not None,
        baseline_after_approval=policy.baseline_after_approval,
    )


def _ended(policy: Policy, criterion: Criterion, evidence: Evidence) -> str | None:
    """Why no more evidence on the criterion is asked for in this epoch; None while some is."""
    tally = evidence.tallies.get(criterion.evaluator, Tally())
    planned = evidence.max_pairs.get(criterion.evaluator)
    return out_of_pairs(criterion, tally, planned) or out_of_time(policy, evidence.age_seconds)


def _skips(evidence: Evidence) -> Iterator[str]:
    """What an admin's decision to skip a tier has to do with this one."""
    if evidence.skipped_below:
        names = ", ".join(evidence.skipped_below)
        yield f"after_skipped: {names}, so alpha_accept is shared by {evidence.tiers_under_test} tiers"
    if evidence.skipped is not None:
        yield f"skipped: {evidence.skipped}"


def _withholding(gates: dict[Gate, Gated]) -> list[Gate]:
    """The gates that withhold acceptance and rejection now."""
    return [gate for gate in WITHHOLDING if gates[gate].state is GateState.UNDECIDED]


def _quality(findings: tuple[Finding, ...]) -> Gated:
    """The worst decisive finding wins, and speaks together with those as bad."""
    worst = next(decision for decision in _WORST_FIRST if any(each.decision is decision for each in findings))
    return Gated(
        state=_WORST_FIRST[worst],
        reasons=tuple(f"{each.criterion}: {each.reason}" for each in findings if each.decision is worst),
    )


def _weigh(gates: dict[Gate, Gated], below: tuple[str, ...]) -> tuple[Decision, tuple[str, ...]]:
    """The decision and its reasons: what withholds both ways, or rejects, or is in the way, or was shown."""
    if withholding := _withholding(gates):
        blocked = (*withholding, *(gate for gate in gates if gate not in withholding))
        return Decision.UNDECIDED, tuple(
            reason for gate in blocked if gates[gate].state in _OPEN for reason in gates[gate].reasons
        ) + below
    failed = [gated for gated in gates.values() if gated.state is GateState.FAILED]
    if failed:
        return Decision.REJECT, tuple(reason for gated in failed for reason in gated.reasons)
    in_the_way = (
        tuple(reason for gated in gates.values() if gated.state in _OPEN for reason in gated.reasons) + below
    )
    if in_the_way:
        return Decision.UNDECIDED, in_the_way
    return Decision.ACCEPT, gates[Gate.QUALITY].reasons
