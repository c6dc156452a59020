"""A tier's verdict as it stands, with what a single look would say beside what decides."""

from __future__ import annotations

from collections.abc import Mapping

from service.decision import exact, tango
from service.decision.clusters import design_effect
from service.decision.policy import Hypothesis, Policy
from service.decision.tally import Tally
from service.decision.verdict import Finding as Found
from service.report.document import Finding, SingleLook, VerdictFigures
from service.report.measured import Figure
from service.store.verdicts.rung import Rung

SINGLE_LOOK_LEVEL = 0.9


def judged(rung: Rung, policy: Policy) -> VerdictFigures | None:
    """None for the baseline."""
    verdict, evidence = rung.verdict, rung.evidence
    if verdict is None or evidence is None:
        return None
    both_ways = {each.evaluator for each in policy.criteria if each.hypothesis is Hypothesis.EQUIVALENT}
    control: Mapping[str, Tally] = evidence.control or {}
    return VerdictFigures(
        decision=verdict.decision,
        reasons=verdict.reasons,
        findings=tuple(
            _finding(
                each,
                evidence.tallies.get(each.criterion, Tally()),
                control.get(each.criterion),
                both_ways=each.criterion in both_ways,
            )
            for each in verdict.findings
        ),
        gates=dict(verdict.gates),
        epoch=verdict.epoch,
        attempt=verdict.attempt,
        alpha=verdict.alpha_accept,
    )


def _finding(found: Found, tally: Tally, control: Tally | None, *, both_ways: bool) -> Finding:
    return Finding(
        criterion=found.criterion,
        role=found.role,
        decision=found.decision,
        reason=found.reason,
        n=found.n,
        conversations=found.conversations,
        harm=found.harm,
        benefit=found.benefit,
        estimate=found.estimate,
        lower=found.interval.lower,
        upper=found.interval.upper,
        level=found.interval.level,
        margin=found.margin,
        both_ways=both_ways,
        warn=found.warn,
        more_pairs=found.more_pairs,
        single_look=single_look(tally, found.margin, both_ways=both_ways),
        control=None
        if control is None or not control.n
        else Figure(value=(control.harm + control.benefit) / control.n, n=control.n),
    )


def single_look(tally: Tally, margin: float, *, both_ways: bool) -> SingleLook | None:
    """Tango's test and limits over conversations, and the exact p of single pairs (statistics A7)."""
    if not tally.n:
        return None
    effect = design_effect(tally)
    lower, upper = tango.interval(tally.harm, tally.benefit, tally.n, SINGLE_LOOK_LEVEL, design_effect=effect)
    # A fall beyond the margin is a rise of it with the arms exchanged; an equivalence shows neither.
    rises = [(tally.harm, tally.benefit)] + [(tally.benefit, tally.harm)] * both_ways
    return SingleLook(
        difference=Figure(
            value=(tally.harm - tally.benefit) / tally.n,
            lower=lower,
            upper=upper,
            level=SINGLE_LOOK_LEVEL,
            n=tally.n,
        ),
        p_value=max(tango.noninferiority_p(b, c, tally.n, margin, design_effect=effect) for b, c in rises),
        exact_p=max(exact.exact_p(b, c, tally.n, margin) for b, c in rises)
        if exact.is_cheap(tally.harm, tally.benefit, tally.n)
        else None,
        design_effect=effect,
    )
