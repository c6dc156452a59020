"""Why: the chain from counts to decision, step by step, in words and in numbers.

Written for two readers. Whoever knows no statistics reads titles and sentences from top to bottom; a
statistician takes the numbers of a step and computes the next one's. Nothing is decided here: every step
repeats what `decide` did, with the same functions.
"""

from __future__ import annotations

from collections.abc import Iterator

from service.decision.decide import limits_of
from service.decision.evidence import Evidence
from service.decision.explain_measured import load_run_steps, noise_step
from service.decision.policy import (
    AlphaSpending,
    BaselineAfterApproval,
    Criterion,
    Hypothesis,
    LadderRule,
    Policy,
    Role,
)
from service.decision.step import Number as Number
from service.decision.step import Step as Step
from service.decision.tally import Tally
from service.decision.thresholds import Thresholds
from service.decision.unscored import lost
from service.decision.verdict import Correction, Decision, Finding, GateState, Verdict
from service.decision.wording import e_value, points


def explain(policy: Policy, evidence: Evidence, verdict: Verdict) -> tuple[Step, ...]:
    """All steps to a verdict that `decide` gave on this evidence under this policy."""
    limits = limits_of(policy, evidence)
    criteria = {criterion.evaluator: criterion for criterion in policy.criteria}
    steps = [_evidence(policy, evidence), _thresholds(policy, evidence, limits)]
    for finding in verdict.findings:
        criterion = criteria[finding.criterion]
        tally = evidence.tallies.get(finding.criterion, Tally())
        steps.extend(_criterion(criterion, tally, finding, limits, evidence))
    steps += [*load_run_steps(policy, evidence), _gates(policy, verdict)]
    return (*steps, _ladder(policy, evidence, verdict), _decision(verdict))


def _evidence(policy: Policy, evidence: Evidence) -> Step:
    return Step(
        title="evidence",
        sentence=(
            f"The same requests were answered by the baseline and by {evidence.tier}, and each answer was "
            f"judged for itself; all evidence is from one epoch, attempt {evidence.attempt} of this tier, "
            f"and counts by {policy.units.value.replace('_', ' ')}."
            + ("" if evidence.restored is None else f" Earlier epochs count no more: {evidence.restored}.")
        ),
        numbers={
            "model": evidence.model,
            "tier": evidence.tier,
            "epoch": evidence.epoch,
            "attempt": evidence.attempt,
            "units": policy.units.value,
            **({} if evidence.restored is None else {"alpha restored": evidence.restored}),
        },
    )


def _thresholds(policy: Policy, evidence: Evidence, limits: Thresholds) -> Step:
    halved = policy.baseline_after_approval is BaselineAfterApproval.SWITCHED_OFF
    m, s = len(policy.decisive) * evidence.tiers_under_test, evidence.strata_under_test
    origin = f"alpha_accept {policy.alpha_accept:g}"
    if halved:
        origin += ", halved because the baseline is switched off on approval"
    if policy.ladder_rule is LadderRule.INDEPENDENT:
        origin += f", shared by {evidence.tiers_under_test} tiers"
    elif evidence.skipped_below:
        origin += f", shared by {evidence.tiers_under_test} tiers because a tier below is skipped"
    if policy.alpha_spending is AlphaSpending.OVER_ATTEMPTS:
        origin += f", of which attempt {evidence.attempt} gets 6/(pi^2 {evidence.attempt}^2)"
    elif not limits.alpha_accept:
        origin += f", spent on the first attempt, and this is attempt {evidence.attempt}"
    return Step(
        title="thresholds",
        sentence=(
            "An e-value is what a bet against a claim has made of a stake of 1: if the claim is true, it "
            "ever reaches 1/alpha with a chance of at most alpha, however often one looks. Acceptance takes "
            f"{e_value(limits.accept)} ({origin}); rejection {e_value(limits.harm)}, for any of {m} criteria "
            f"and tiers may reject; in one stratum {e_value(limits.strata)}, for so may any of {s} strata."
        ),
        numbers={
            "alpha_accept": limits.alpha_accept,
            "accept: 1/alpha_accept": e_value(limits.accept),
            "M: decisive criteria x tiers under test": m,
            "alpha_harm": policy.alpha_harm,
            "harm: M/alpha_harm": e_value(limits.harm),
            "S: strata there can be": s,
            "alpha_strata": policy.alpha_strata,
            "strata: M S/alpha_strata": e_value(limits.strata),
            "alpha_warn": policy.alpha_warn,
            "warn: 1/alpha_warn": e_value(limits.warn),
        },
    )


def _criterion(
    criterion: Criterion, tally: Tally, finding: Finding, limits: Thresholds, evidence: Evidence
) -> Iterator[Step]:
    """Counts, estimate, e-values, strata, finding."""
    name = criterion.evaluator
    yield _counts(name, tally)
    if finding.estimate is not None:
        yield _estimate(name, finding)
        yield _e_values(criterion, tally, finding)
        yield from noise_step(name, evidence)
    if finding.correction is not None:
        yield _correction(name, finding.correction)
    if finding.worst_strata:
        yield _strata(name, finding, limits)
    yield _finding(name, criterion, finding, limits)


def _counts(name: str, tally: Tally) -> Step:
    missing = lost(tally)
    return Step(
        title=f"{name}: counts",
        sentence=(
            f"Of {tally.n:,} counted pairs in {tally.conversations:,} conversations the candidate alone "
            f"failed in {tally.harm:,}, the baseline alone in {tally.benefit:,}, both in "
            f"{tally.both_failed:,}; {missing:,} more were due and have no score."
        ),
        numbers={
            "pairs n": tally.n,
            "conversations": tally.conversations,
            "harm b": tally.harm,
            "benefit c": tally.benefit,
            "both failed": tally.both_failed,
            "not counted": tally.not_counted,
            **{f"unscored: {reason}": count for reason, count in sorted(tally.unscored.items())},
        },
    )


def _estimate(name: str, finding: Finding) -> Step:
    estimate, limits = finding.raw
    found = estimate or 0.0
    told = "as often as"
    if found:
        told = f"in {points(abs(found))} {'more' if found > 0 else 'fewer'} of the requests than"
    return Step(
        title=f"{name}: estimate",
        sentence=(
            f"So far the candidate fails {told} the baseline; in truth the rise lies between "
            f"{points(limits.lower)} and {points(limits.upper)} (level {limits.level:.3g}, at every look), "
            f"and {points(finding.margin)} are tolerated."
        ),
        numbers={
            "estimate (b - c)/n": found,
            "lower limit": limits.lower,
            "upper limit": limits.upper,
            "level": limits.level,
            "method": limits.method,
            "margin": finding.margin,
        },
    )


def _correction(name: str, correction: Correction) -> Step:
    limits, raw = correction.interval, correction.raw_interval
    weight = (
        "so it takes the place of the raw difference; it may withhold acceptance and never brings it about"
        if correction.suffices
        else f"which does not suffice to take its place: {correction.missing}"
    )
    return Step(
        title=f"{name}: labels",
        sentence=(
            f"People judged {correction.labels:,} of these pairs, drawn at random within what the evaluator "
            f"says of them, and left {correction.undecided:,} open. By their word the rise is "
            f"{points(correction.estimate)}, between {points(limits.lower)} and {points(limits.upper)} "
            f"(level {limits.level:.3g}, at one look), {weight}."
        ),
        numbers={
            "labels": correction.labels,
            "left open": correction.undecided,
            "formula": "sum_h (N_h/N) m_h, h = what the evaluator says, m_h = mean D of its labelled pairs",
            "corrected estimate": correction.estimate,
            "corrected lower limit": limits.lower,
            "corrected upper limit": limits.upper,
            "level": limits.level,
            "method": limits.method,
            "raw estimate": correction.raw_estimate,
            "raw lower limit": raw.lower,
            "raw upper limit": raw.upper,
        },
    )


def _e_values(criterion: Criterion, tally: Tally, finding: Finding) -> Step:
    log_e = finding.log_e
    both_ways = criterion.hypothesis is Hypothesis.EQUIVALENT
    margin = f"{criterion.margin:g}"
    claims = (
        f"that the rates differ by {margin} or more (the lesser of both directions)"
        if both_ways
        else f"that it fails {margin} or more too often"
    )
    within = f"{margin} in either direction (the mean of both)" if both_ways else margin
    numbers: dict[str, Number] = {
        "formula": "E(m) = sum_g w_g prod_units (1 + k_g (m - D)/(1 - m)), D = (b - c)/n of the unit",
        "E_NI(margin)": e_value(log_e.noninferiority),
        "E_HARM(margin)": e_value(log_e.harm),
        "E_HARM(0)": e_value(log_e.warn),
        "log E_NI(margin)": log_e.noninferiority,
        "log E_HARM(margin)": log_e.harm,
        "log E_HARM(0)": log_e.warn,
        "units (n, b, c)": ", ".join(
            f"({triple.pairs}, {triple.harm}, {triple.benefit}) x {count}"
            for triple, count in sorted(tally.units.items())
            if count
        ),
    }
    if finding.log_e_holm is not None:
        numbers["E_HARM(margin), e-Holm"] = e_value(finding.log_e_holm)
    return Step(
        title=f"{criterion.evaluator}: e-values",
        sentence=(
            f"Betting against the claim {claims} has made {e_value(log_e.noninferiority)} of 1; against the "
            f"claim that it is within {within}, {e_value(log_e.harm)}; against the claim that nothing is "
            f"worse, {e_value(log_e.warn)}."
        ),
        numbers=numbers,
    )


def _strata(name: str, finding: Finding, limits: Thresholds) -> Step:
    worst = finding.worst_strata[0]
    return Step(
        title=f"{name}: worst stratum",
        sentence=(
            f"It looks worst in stratum {worst.stratum}: {worst.harm:,} harms and {worst.benefit:,} benefits "
            f"in {worst.n:,} pairs. Betting against the claim that it is within {finding.margin:g} there has "
            f"made {e_value(worst.log_e_harm)} of 1, and rejection takes {e_value(limits.strata)}."
        ),
        numbers={
            f"{each.stratum}: (n, b, c), E_HARM(margin)": (
                f"({each.n}, {each.harm}, {each.benefit}), {e_value(each.log_e_harm)}"
            )
            for each in finding.worst_strata
        },
    )


def _finding(name: str, criterion: Criterion, finding: Finding, limits: Thresholds) -> Step:
    weight = "" if finding.role is Role.DECISIVE else " It is only shown, and weighs nothing."
    told = {
        Decision.ACCEPT: "passes",
        Decision.UNDECIDED: "is undecided",
        Decision.REJECT: "is worse",
    }[finding.decision]
    numbers: dict[str, Number] = {
        "finding": finding.decision.value,
        "role": finding.role.value,
        "min_pairs": criterion.min_pairs,
        "accept": f"E_NI {e_value(finding.log_e.noninferiority)}, needed {e_value(limits.accept)}",
        "harm": f"E_HARM {e_value(finding.log_e.harm)}, needed {e_value(limits.harm)}",
        "warn": f"E_HARM(0) {e_value(finding.log_e.warn)}, needed {e_value(limits.warn)}",
    }
    if finding.more_pairs is not None:
        numbers["more pairs, if it is as good as the baseline"] = finding.more_pairs
    return Step(
        title=f"{name}: finding", sentence=f"{name} {told}: {finding.reason}.{weight}", numbers=numbers
    )


def _gates(policy: Policy, verdict: Verdict) -> Step:
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


def _ladder(policy: Policy, evidence: Evidence, verdict: Verdict) -> Step:
    if policy.ladder_rule is LadderRule.INDEPENDENT:
        told = "Every tier is judged for itself, at its share of the error rate."
    elif "rung_below_not_accepted" in verdict.reasons:
        told = "The tier below is not accepted, so this one cannot be: each is tested at the full error rate."
        if evidence.skipped_below:
            told = "The tiers below the skipped one are not all accepted, so this one cannot be."
    elif evidence.skipped_below:
        told = (
            f"An admin decided to skip {', '.join(evidence.skipped_below)}: this tier does not wait for it, "
            "and shares the error rate with all the others."
        )
    else:
        told = "No tier below is in the way: each is tested at the full error rate, after those below it."
    numbers: dict[str, Number] = {"ladder_rule": policy.ladder_rule.value}
    if evidence.skipped_below:
        numbers["skipped below"] = ", ".join(evidence.skipped_below)
    if evidence.skipped is not None:
        told += " An admin lets the tiers above do without this one."
        numbers["skipped"] = evidence.skipped
    return Step(title="ladder", sentence=told, numbers=numbers)


def _decision(verdict: Verdict) -> Step:
    ended = " No more evidence is asked for: it counts as a reject." if verdict.not_shown else ""
    return Step(
        title="decision",
        sentence=f"{verdict.decision.value}: {'; '.join(verdict.reasons)}.{ended}",
        numbers={"decision": verdict.decision.value, "alpha_accept": verdict.alpha_accept},
    )
