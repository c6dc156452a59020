"""The conditions on acceptance besides quality: control, coverage, attribution, SLO, money.

Each answers with a state and its reasons; a gate that the policy does not ask for is `not_asked` and says
nothing. Absence of evidence is `missing`, never `passed`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from service.decision.covering import gaps
from service.decision.eprocess import Differences, log_e_harm
from service.decision.evidence import Attribution, Coverage, Evidence, Measured, Shown
from service.decision.money import at_terms
from service.decision.policy import Asked, Gate, Policy, Units
from service.decision.tally import Tally
from service.decision.thresholds import Thresholds
from service.decision.verdict import GateState
from service.decision.wording import ago, compared_e_values, compared_shares, span

_LATER_TURNS = "; later turns of a conversation count with units: closed_conversations"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gated:
    """What one gate says."""

    state: GateState
    reasons: tuple[str, ...] = ()


def control_gate(policy: Policy, evidence: Evidence, limits: Thresholds) -> Gated:
    """The baseline against itself must be quiet both ways (A11), on as many pairs as a criterion needs.

    `undecided` means an alarm: order, cache or arm bias, so that neither accept nor reject can be believed.
    Only criteria that decide are asked.
    """
    if policy.gates[Gate.CONTROL] is Asked.OFF:
        return Gated(state=GateState.NOT_ASKED)
    if evidence.control is None:
        return Gated(state=GateState.MISSING, reasons=("no_control_capacity",))
    tallies = {
        criterion.evaluator: evidence.control.get(criterion.evaluator, Tally())
        for criterion in policy.decisive
    }
    if alarms := tuple(
        alarm
        for evaluator, tally in tallies.items()
        if (alarm := _control_alarm(evaluator, tally, limits.warn))
    ):
        return Gated(state=GateState.UNDECIDED, reasons=alarms)
    if not any(tally.n for tally in tallies.values()):
        return Gated(state=GateState.MISSING, reasons=("missing_control",))
    if short := tuple(
        f"missing_control: {criterion.evaluator}: control pairs ({tallies[criterion.evaluator].n}) "
        f"< min_pairs ({criterion.min_pairs})"
        for criterion in policy.decisive
        if tallies[criterion.evaluator].n < criterion.min_pairs
    ):
        return Gated(state=GateState.MISSING, reasons=short)
    return Gated(state=GateState.PASSED)


def log_e_of_control(tally: Tally) -> tuple[float, float]:
    """log E_HARM(0) of the baseline against itself: of the answer asked for second, and of the first."""
    differences = Differences.of_tally(tally)
    return log_e_harm(differences, 0.0), log_e_harm(differences.mirrored(), 0.0)


def _control_alarm(evaluator: str, tally: Tally, threshold: float) -> str | None:
    loudest = max(log_e_of_control(tally))
    if loudest < threshold:
        return None
    found, allowed = compared_e_values(loudest, threshold)
    return f"control_alarm: {evaluator}: the baseline differs from itself: e-value {found} >= {allowed}"


def coverage_gate(policy: Policy, coverage: Coverage | None) -> Gated:
    """Every stratum worth covering holds half its share of the evidence; names those that do not."""
    if policy.gates[Gate.COVERAGE] is Asked.OFF:
        return Gated(state=GateState.NOT_ASKED)
    if coverage is None or not sum(coverage.traffic.values()):
        return Gated(state=GateState.MISSING, reasons=("missing_coverage",))
    reasons = {}
    for each in gaps(coverage):
        found, wanted = compared_shares(each.evidence_share, each.wanted)
        hint = _LATER_TURNS if each.dimension == "turns" and policy.units is Units.FIRST_SAMPLED else ""
        reasons[each.stratum] = (
            f"coverage: stratum {each.stratum}: evidence share {found} < {wanted}, half its traffic share"
            + hint
        )
    if reasons:
        return Gated(
            state=GateState.UNDECIDED, reasons=tuple(reasons[stratum] for stratum in sorted(reasons))
        )
    return Gated(state=GateState.PASSED)


def attribution_gate(policy: Policy, attribution: Attribution | None) -> Gated:
    """Nothing but the precision differs. `undecided` withholds accept and reject alike."""
    if policy.gates[Gate.ATTRIBUTION] is Asked.OFF:
        return Gated(state=GateState.NOT_ASKED)
    if attribution is None:
        return Gated(state=GateState.MISSING, reasons=("missing_attribution",))
    reasons = [f"attribution: {difference}" for difference in attribution.differences]
    if attribution.unsettled is not None:
        reasons.append(f"attribution: {attribution.unsettled}")
    if reasons:
        return Gated(state=GateState.UNDECIDED, reasons=tuple(reasons))
    return Gated(state=GateState.PASSED)


def in_force(policy: Policy, evidence: Evidence, gate: Gate) -> Measured | None:
    """What the latest load run says under this policy: its SLO margin, its price of a failure.

    However old it is (`is_stale`); None without one.
    """
    if gate is Gate.SLO:
        return evidence.slo and _at_margin(evidence.slo, policy.load_runs.slo_margin)
    return evidence.money and at_terms(evidence.money, policy.load_runs)


def is_stale(measured: Measured, within: float | None) -> bool:
    """Whether the run ended so long ago that it counts as none."""
    return measured.age_seconds is not None and within is not None and measured.age_seconds > within


def measured_gate(policy: Policy, evidence: Evidence, gate: Gate) -> Gated:
    """A gate that a load run decides: SLO or money."""
    if policy.gates[gate] is Asked.OFF:
        return Gated(state=GateState.NOT_ASKED)
    measured, within = in_force(policy, evidence, gate), evidence.measured_within
    if measured is None:
        return Gated(state=GateState.MISSING, reasons=(f"missing_{gate}",))
    age = measured.age_seconds
    if age is not None and within is not None and is_stale(measured, within):
        old = (
            f"missing_{gate}: the last load run ended {ago(age)}, and after {span(within)} it counts as none"
        )
        return Gated(state=GateState.MISSING, reasons=(old,))
    state = {
        Shown.PASSED: GateState.PASSED,
        Shown.FAILED: GateState.FAILED,
        Shown.UNDECIDED: GateState.UNDECIDED,
    }[measured.shown]
    when = "" if age is None else f" (load run {ago(age)})"
    told = f"{gate}: {measured.reason}{when}"
    return Gated(state=state, reasons=() if state is GateState.PASSED else (told,))


def _at_margin(measured: Measured, margin: float) -> Measured:
    """A run that passed at a wider margin has not passed at this one, nor failed that failed at a lesser."""
    held_to = measured.numbers.get("margin")
    if not isinstance(held_to, float):
        return measured
    if measured.shown is Shown.PASSED and held_to > margin:
        told = (
            f"passed at a margin of {held_to:g} > {margin:g}, the policy's; the next load run is held to that"
        )
    elif measured.shown is Shown.FAILED and held_to < margin:
        told = (
            f"failed at a margin of {held_to:g} < {margin:g}, the policy's; the next load run is held to that"
        )
    else:
        return measured
    return replace(measured, shown=Shown.UNDECIDED, reason=told)
