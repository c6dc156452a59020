"""Why: the chain from counts to decision, step by step, in words and in numbers.

Written for two readers. Whoever knows no statistics reads titles and sentences from top to bottom; a
statistician takes the numbers of a step and computes the next one's. Nothing is decided here: every step
repeats what `decide` did, with the same functions.
"""

from __future__ import annotations

from service.decision.decide import limits_of
from service.decision.evidence import Evidence
from service.decision.explain_criterion import criterion_steps
from service.decision.explain_gates import gate_steps, gates_step
from service.decision.explain_measured import load_run_steps
from service.decision.grid import G10, H5, Grid
from service.decision.policy import AlphaSpending, BaselineAfterApproval, LadderRule, Policy, Units
from service.decision.step import Number as Number
from service.decision.step import Step as Step
from service.decision.thresholds import Thresholds
from service.decision.verdict import Verdict
from service.decision.wording import e_value

_COUNTED = {
    Units.FIRST_SAMPLED: "of each conversation the first request that was sampled counts",
    Units.CLOSED_CONVERSATIONS: "conversations count once they are over, each by the mean of its pairs",
}


def explain(policy: Policy, evidence: Evidence, verdict: Verdict) -> tuple[Step, ...]:
    """All steps to a verdict that `decide` gave on this evidence under this policy."""
    limits = limits_of(policy, evidence)
    criteria = {criterion.evaluator: criterion for criterion in policy.criteria}
    steps = [_evidence(policy, evidence), _thresholds(policy, evidence, limits)]
    for finding in verdict.findings:
        criterion = criteria[finding.criterion]
        steps.extend(criterion_steps(policy, criterion, finding, limits, evidence))
    steps += [*gate_steps(policy, evidence, limits), *load_run_steps(policy, evidence)]
    return (*steps, gates_step(policy, verdict), _ladder(policy, evidence, verdict), _decision(verdict))


def _evidence(policy: Policy, evidence: Evidence) -> Step:
    return Step(
        title="evidence",
        sentence=(
            f"The same requests were answered by the baseline and by {evidence.tier}, and each answer was "
            f"judged for itself; all evidence is from one epoch, attempt {evidence.attempt} of this tier, "
            f"and {_COUNTED[policy.units]}."
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
            "bets k_g of E_NI, with their weights w_g": _written(G10),
            "bets k_g of E_HARM, with their weights w_g": _written(H5),
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
            "alpha_gates of this attempt; load run j gets 6/(pi^2 j^2) of it": limits.alpha_gates,
        },
    )


def _written(grid: Grid) -> str:
    return ", ".join(f"{bet:.10g} ({weight:g})" for bet, weight in zip(grid.bets, grid.weights, strict=True))


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
