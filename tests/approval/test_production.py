"""When a policy is as strict as production's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.approval.production import is_as_strict, production_of
from service.decision.failure_chain import FailureChain
from service.decision.policy import Asked, Criterion, Gate, Hypothesis, Policy, Role
from service.decision.terms import Terms
from tests.approval.live import WIDE

STRICT = Policy(criteria=(Criterion(evaluator="refusal", hypothesis=Hypothesis.EQUIVALENT),))


def test_production_keeps_the_criteria_and_their_hypotheses() -> None:
    production = production_of(WIDE)
    asked = [(criterion.evaluator, criterion.hypothesis) for criterion in production.criteria]
    assert asked == [(criterion.evaluator, criterion.hypothesis) for criterion in WIDE.criteria]
    assert {criterion.margin for criterion in production.criteria} == {0.01}
    assert set(production.gates.values()) == {Asked.REQUIRED}
    priced = FailureChain.of_weight(9)
    terms = production_of(replace(WIDE, load_runs=Terms(slo_margin=0.05, failure=priced))).load_runs
    assert (terms.slo_margin, terms.failure) == (0.01, priced)


@pytest.mark.parametrize(
    ("policy", "strict"),
    [
        (STRICT, True),
        (WIDE, False),
        (replace(STRICT, alpha_accept=0.01), True),
        (replace(STRICT, alpha_accept=0.1), False),
        (replace(STRICT, max_unscored=0.2), False),
        (replace(STRICT, alpha_gates=0.1), False),
        (replace(STRICT, load_runs=Terms(slo_margin=0.02)), False),
        (replace(STRICT, load_runs=Terms(slo_margin=0.005, failure=FailureChain.of_weight(1))), True),
        (replace(STRICT, gates={**STRICT.gates, Gate.SLO: Asked.OFF}), False),
        (replace(STRICT, criteria=(Criterion(evaluator="refusal", margin=0.005),)), True),
        (replace(STRICT, criteria=(Criterion(evaluator="refusal", margin=0.02),)), False),
        (replace(STRICT, criteria=(Criterion(evaluator="refusal", min_pairs=20),)), False),
        (replace(STRICT, criteria=(*STRICT.criteria, Criterion(evaluator="x", role=Role.SHOWN))), True),
    ],
)
def test_a_policy_is_as_strict_when_no_part_of_it_is_laxer(policy: Policy, strict: bool) -> None:
    assert is_as_strict(policy) is strict
