"""Which stage of serving hurts, why, and what to do about it: `diagnosis_rules` over what was measured.

A stage hurts when its figure misses its limit; a rule of that stage then needs evidence of its own. Where a
stage hurts and no rule has evidence, the cause is unknown and the answer is what to measure.
"""

from __future__ import annotations

from dataclasses import dataclass

from service.capacity.diagnosis_rules import RULES, TO_MEASURE, Cause, Remedy
from service.capacity.symptoms import Signals, Stage, hurts


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """One cause that has evidence; without remedies where it is unknown."""

    stage: Stage
    cause: Cause
    hurts: str
    """By how much the stage misses its limit."""
    evidence: str
    remedies: tuple[Remedy, ...]
    experiment: str


def diagnose(signals: Signals) -> tuple[Diagnosis, ...]:
    """Every cause with evidence, of every stage that hurts, as the table has them; empty where none hurts."""
    found = []
    for stage in Stage:
        by = hurts(signals, stage)
        if by is None:
            continue
        causes = [
            Diagnosis(
                stage=stage,
                cause=rule.cause,
                hurts=by,
                evidence=evidence,
                remedies=rule.remedies,
                experiment=rule.experiment,
            )
            for rule in RULES
            if rule.stage is stage and (evidence := rule.evidence(signals)) is not None
        ]
        found += causes or [
            Diagnosis(
                stage=stage,
                cause=Cause.UNKNOWN,
                hurts=by,
                evidence="none of the causes has evidence",
                remedies=(),
                experiment=TO_MEASURE[stage],
            )
        ]
    return tuple(found)
