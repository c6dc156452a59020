"""The policy from its checked shape."""

from __future__ import annotations

from collections.abc import Iterable

import evaluators
from service.decision.failure_chain import RETRY_OR_ESCALATE, FailureChain
from service.decision.policy import (
    DECISIVE_BY_DEFAULT,
    AlphaSpending,
    Asked,
    BaselineAfterApproval,
    Criterion,
    Gate,
    Hypothesis,
    LadderRule,
    OnHarm,
    Policy,
    Role,
    Units,
)
from service.decision.terms import Terms
from service.settings.policy_shape import LoadRunsShape, PolicyShape
from service.settings.problems import Findings, Place

EQUIVALENT_BY_DEFAULT = frozenset({"refusal", "tool_use"})
"""Where neither way is better: fewer refusals of harmful requests and more of harmless ones can cancel."""


def build_policy(
    shape: PolicyShape, known: Iterable[str], findings: Findings, *, failure: FailureChain = RETRY_OR_ESCALATE
) -> Policy | None:
    """The policy over the evaluators that are `known`, or None when `findings` says why there is none.

    `failure`: what one costs, unless the policy says it itself.
    """
    named = shape.criteria or dict.fromkeys(DECISIVE_BY_DEFAULT)
    unasked = {*DECISIVE_BY_DEFAULT, *(each.name for each in evaluators.ASKED_FOR)}
    others = [name for name in known if name not in named and name not in unasked]
    criteria: list[Criterion] = []
    for name, criterion in [*named.items(), *((name, None) for name in others)]:
        place: Place = ("policy", "criteria", name)
        default = "equivalent" if name in EQUIVALENT_BY_DEFAULT else "non_inferior"
        given = criterion.model_dump(exclude_none=True) if criterion is not None else {}
        try:
            criteria.append(
                Criterion(
                    evaluator=name,
                    hypothesis=Hypothesis(given.get("hypothesis", default)),
                    margin=given.get("margin", shape.margin),
                    min_pairs=given.get("min_pairs", shape.min_pairs),
                    baseline_failure_cap=given.get("baseline_failure_cap", 0.5),
                    role=Role(given.get("role", "decisive" if name in named else "shown")),
                    max_pairs=given.get("max_pairs"),
                )
            )
        except ValueError as error:  # its forms are right, so it ends before it begins
            findings.add((*place, "max_pairs"), str(error))
    gates = {Gate(name): Asked(asked) for name, asked in shape.gates.model_dump().items()}
    terms = _terms(shape.load_runs, failure, findings)
    if terms is None or len(criteria) < len(named) + len(others):
        return None
    try:
        return Policy(
            criteria=tuple(criteria),
            alpha_accept=shape.alpha.accept,
            alpha_harm=shape.alpha.harm,
            alpha_warn=shape.alpha.warn,
            gates=gates,
            on_harm=OnHarm(shape.on_harm),
            max_unscored=shape.max_unscored,
            ladder_rule=LadderRule(shape.ladder_rule),
            alpha_spending=AlphaSpending(shape.alpha_spending),
            alpha_strata=shape.alpha.strata,
            units=Units(shape.units),
            idle_seconds=shape.idle,
            longest_seconds=shape.longest,
            baseline_after_approval=BaselineAfterApproval(shape.baseline_after_approval),
            tenant_share_cap=shape.tenant_share_cap,
            alpha_gates=shape.alpha.gates,
            load_runs=terms,
        )
    except ValueError as error:
        findings.add(("policy", "criteria") if "criterion" in str(error) else ("policy",), str(error))
        return None


def _terms(shape: LoadRunsShape, failure: FailureChain, findings: Findings) -> Terms | None:
    weight = shape.failure_weight
    try:
        return Terms(
            slo_margin=shape.slo_margin,
            least_blocks=shape.blocks,
            most_baseline_misses=shape.baseline_misses,
            power=shape.power,
            least_power=shape.least_power,
            block_correlation=shape.block_correlation,
            failure=failure if weight is None else FailureChain.of_weight(weight),
        )
    except ValueError as error:
        findings.add(("policy", "load_runs"), str(error))
        return None
