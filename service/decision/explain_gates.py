"""Steps of the explanation about the gates: the control, coverage, attribution, and all of them together."""

from __future__ import annotations

from collections.abc import Iterator

from service.decision.covering import WORTH_COVERING, Covered, covering
from service.decision.evidence import Evidence
from service.decision.gates import log_e_of_control
from service.decision.policy import Asked, Gate, Policy
from service.decision.step import Number, Step
from service.decision.tally import Tally
from service.decision.thresholds import Thresholds
from service.decision.verdict import GateState, Verdict
from service.decision.wording import e_value, units

BAREST_SHOWN = 5
"""Strata whose coverage is told."""


def gate_steps(policy: Policy, evidence: Evidence, limits: Thresholds) -> Iterator[Step]:
    """Of the gates that are asked for and that have evidence of their own here."""
    asked = {gate for gate, how in policy.gates.items() if how is Asked.REQUIRED}
    if Gate.CONTROL in asked and evidence.control is not None:
        yield _control(policy, evidence, limits)
    if Gate.COVERAGE in asked and evidence.coverage is not None and any(evidence.coverage.traffic.values()):
        yield _coverage(covering(evidence.coverage))
    if Gate.ATTRIBUTION in asked and evidence.attribution is not None:
        yield _attribution(evidence)


def _control(policy: Policy, evidence: Evidence, limits: Thresholds) -> Step:
    tallies = {
        each.evaluator: (evidence.control or {}).get(each.evaluator, Tally()) for each in policy.decisive
    }
    found = {name: log_e_of_control(tally) for name, tally in tallies.items()}
    loudest = max(found, key=lambda name: max(found[name]))
    numbers: dict[str, Number] = {"alarm: 1/alpha_warn": e_value(limits.warn)}
    for criterion in policy.decisive:
        name = criterion.evaluator
        up, down = found[name]
        numbers[f"{name}: (n, b, c), min_pairs"] = (
            f"({tallies[name].n}, {tallies[name].harm}, {tallies[name].benefit}), {criterion.min_pairs}"
        )
        if tallies[name].n != tallies[name].conversations:
            numbers[f"{name}: units (n, b, c)"] = units(tallies[name])
        numbers[f"{name}: E_HARM(0), as it is and with -D for D"] = f"{e_value(up)}, {e_value(down)}"
    return Step(
        title="control",
        sentence=(
            "The baseline was held against itself, where nothing can be worse: betting against that has made "
            f"at most {e_value(max(found[loudest]))} of 1 ({loudest}, {tallies[loudest].n:,} pairs), and "
            f"{e_value(limits.warn)} is an alarm, which lets neither acceptance nor rejection stand."
        ),
        numbers=numbers,
    )


def _coverage(every: tuple[Covered, ...]) -> Step:
    worth = sorted(
        (each for each in every if each.worth_covering),
        key=lambda each: (each.evidence_share / each.wanted, each.stratum),
    )
    told = (
        f"Kinds of requests (strata) with {WORTH_COVERING:.0%} of the traffic or more: {len(worth)}; of "
        f"these, with less than half that share of what counts: {sum(each.gap for each in worth)}."
    )
    if worth:
        barest = worth[0]
        told += (
            f" Barest is {barest.stratum}: {barest.traffic_share:.2%} of the traffic, "
            f"{barest.evidence_share:.2%} of the evidence, and {barest.wanted:.2%} is the least."
        )
    return Step(
        title="coverage",
        sentence=told,
        numbers={
            f"{each.stratum}: traffic, evidence, least": (
                f"{each.traffic} requests ({each.traffic_share:.6g}), "
                f"{each.evidence} ({each.evidence_share:.6g}), {each.wanted:.6g}"
            )
            for each in worth[:BAREST_SHOWN]
        },
    )


def _attribution(evidence: Evidence) -> Step:
    attribution = evidence.attribution
    assert attribution is not None, "told only where the engines tell something"
    told = "By what the engines tell of themselves, baseline and candidate differ in their precision alone."
    if attribution.differences:
        named = "; ".join(attribution.differences)
        told = f"Baseline and candidate differ in more than their precision: {named}."
    if attribution.unsettled is not None:
        told = f"It cannot be told yet in what they differ: {attribution.unsettled}."
    if attribution.not_told:
        told += f" Not told, and not compared: {', '.join(attribution.not_told)}."
    return Step(
        title="attribution",
        sentence=told,
        numbers={"differences": len(attribution.differences), "not compared": len(attribution.not_told)},
    )


def gates_step(policy: Policy, verdict: Verdict) -> Step:
    """Every gate with its state."""
    asked = [gate for gate, state in verdict.gates.items() if state is not GateState.NOT_ASKED]
    open_ = [gate.value for gate in asked if verdict.gates[gate] is not GateState.PASSED]
    told = f"not passed: {', '.join(open_)}" if open_ else "all of them passed"
    off = [gate.value for gate in policy.gates if gate not in asked]
    rest = f" Not asked for: {', '.join(off)}." if off else ""
    return Step(
        title="gates",
        sentence=f"The policy asks for {', '.join(gate.value for gate in asked)}: {told}.{rest}",
        numbers={gate.value: state.value for gate, state in verdict.gates.items()},
    )
