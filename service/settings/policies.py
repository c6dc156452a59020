"""The policy from its checked shape."""

from __future__ import annotations

import evaluators
from service.decision.policy import (
    AlphaSpending,
    Asked,
    Criterion,
    Gate,
    Hypothesis,
    LadderRule,
    OnHarm,
    Policy,
)
from service.settings.nearest import nearest
from service.settings.policy_shape import PolicyShape
from service.settings.problems import Findings, Place

EQUIVALENT_BY_DEFAULT = frozenset({"refusal"})
"""Fewer refusals of harmful requests and more of harmless ones can cancel, so both ways count."""


def build_policy(shape: PolicyShape, findings: Findings) -> Policy | None:
    known = [evaluator.name for evaluator in evaluators.ALL]
    named = shape.criteria or dict.fromkeys(known)
    criteria: list[Criterion] = []
    for name, criterion in named.items():
        place: Place = ("policy", "criteria", name)
        if name not in known:
            findings.add(place, f"no evaluator has this name; did you mean `{nearest(name, known)}`?")
            continue
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
                )
            )
        except ValueError as error:
            findings.add(place, str(error))
    gates = {Gate(name): Asked(asked) for name, asked in shape.gates.model_dump().items()}
    if not criteria:
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
        )
    except ValueError as error:
        findings.add(("policy",), str(error))
        return None
