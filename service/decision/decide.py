"""From a policy and the evidence on one tier to a verdict (statistics A3, A4). Total and pure.

`accept` iff every criterion passes, every gate asked for passes, and the rung below is accepted; `reject` iff
harm is shown on a criterion or a gate asked for is shown to fail; `undecided` otherwise, with everything in
the way. A control alarm withholds both: an instrument that sees a difference where there is none proves
nothing. So does a stack that differs in more than the precision.
"""

from __future__ import annotations

from service.decision.evidence import Evidence
from service.decision.finding import find, thresholds
from service.decision.gates import Gated, attribution_gate, control_gate, coverage_gate, measured_gate
from service.decision.policy import Gate, LadderRule, Policy
from service.decision.tally import Tally
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


def decide(policy: Policy, evidence: Evidence, *, rung_below: Decision | None) -> Verdict:
    """The verdict on one tier. `rung_below`: the decision on the tier below, None for the baseline."""
    limits = thresholds(policy, tiers=evidence.tiers_under_test, attempt=evidence.attempt)
    control = evidence.control or {}
    findings = tuple(
        find(
            policy,
            criterion,
            evidence.tallies.get(criterion.evaluator, Tally()),
            limits,
            control=control.get(criterion.evaluator),
            max_pairs=evidence.max_pairs.get(criterion.evaluator),
        )
        for criterion in policy.criteria
    )
    gates = {
        Gate.QUALITY: _quality(findings),
        Gate.CONTROL: control_gate(policy, evidence, limits),
        Gate.COVERAGE: coverage_gate(policy, evidence.coverage),
        Gate.ATTRIBUTION: attribution_gate(policy, evidence.attribution),
        Gate.SLO: measured_gate(policy, Gate.SLO, evidence.slo),
        Gate.MONEY: measured_gate(policy, Gate.MONEY, evidence.money),
    }
    below: tuple[str, ...] = ()
    if policy.ladder_rule is LadderRule.FIXED_SEQUENCE and rung_below not in (None, Decision.ACCEPT):
        below = ("rung_below_not_accepted",)
    decision, reasons = _weigh(gates, below)
    return Verdict(
        model=evidence.model,
        tier=evidence.tier,
        decision=decision,
        reasons=reasons,
        findings=findings,
        gates={gate: gated.state for gate, gated in gates.items()},
        epoch=evidence.epoch,
        attempt=evidence.attempt,
        alpha_accept=limits.alpha_accept,
        not_shown=decision is Decision.UNDECIDED
        and any(
            finding.decision is Decision.UNDECIDED and finding.n >= evidence.max_pairs[finding.criterion]
            for finding in findings
            if finding.criterion in evidence.max_pairs
        ),
    )


def _quality(findings: tuple[Finding, ...]) -> Gated:
    """The worst finding wins, and speaks together with those as bad."""
    worst = next(decision for decision in _WORST_FIRST if any(each.decision is decision for each in findings))
    return Gated(
        state=_WORST_FIRST[worst],
        reasons=tuple(f"{each.criterion}: {each.reason}" for each in findings if each.decision is worst),
    )


def _weigh(gates: dict[Gate, Gated], below: tuple[str, ...]) -> tuple[Decision, tuple[str, ...]]:
    """The decision and its reasons: what withholds both ways, or rejects, or is in the way, or was shown."""
    if withholding := [gate for gate in WITHHOLDING if gates[gate].state is GateState.UNDECIDED]:
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
