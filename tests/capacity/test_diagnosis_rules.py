"""The table: every stage has rules, every rule an experiment, and no rule of TTFT touches decode's batch."""

from __future__ import annotations

import pytest

from service.capacity.diagnosis_rules import DECODE_BATCH, RULES, TO_MEASURE, Cause, Remedy, Rule
from service.capacity.symptoms import Signals, Stage


def test_every_stage_cause_and_remedy_stands_in_the_table() -> None:
    assert {rule.stage for rule in RULES} == set(Stage) == set(TO_MEASURE)
    assert {rule.cause for rule in RULES} == set(Cause) - {Cause.UNKNOWN}
    assert {remedy for rule in RULES for remedy in rule.remedies} == set(Remedy)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.stage}-{rule.cause}")
def test_a_rule_has_remedies_an_experiment_and_no_evidence_in_nothing(rule: Rule) -> None:
    assert rule.remedies
    assert rule.experiment
    assert rule.evidence(Signals()) is None
    if rule.stage is Stage.TTFT:
        assert not DECODE_BATCH & set(rule.remedies)
