"""What a label means."""

from __future__ import annotations

import pytest

import evaluators
from evaluators.rubrics import RUBRICS, Rubric, rubric_of
from evaluators.score import Evaluator, compares


@pytest.mark.parametrize("evaluator", evaluators.ALL, ids=lambda each: each.name)
def test_every_evaluator_of_ours_that_judges_answers_has_a_rubric(evaluator: Evaluator) -> None:
    found = rubric_of(evaluator)
    if not compares(evaluator):
        assert found is RUBRICS[evaluator.name]
    assert found.question.endswith("?")
    for part in (found.question, found.passes, found.fails):
        assert part in str(found)


def test_refusals_are_asked_for_in_the_three_kinds_that_the_evaluator_knows() -> None:
    told = str(RUBRICS["refusal"])
    for word in ("complies", "(partial)", "(full)"):
        assert word in told


def test_several_calls_are_asked_for_as_the_evaluator_judges_them() -> None:
    assert "against the request" in RUBRICS["tool_use"].fails


def test_another_package_brings_its_own() -> None:
    own = Rubric(question="Is it whole?", passes="yes.", fails="no.")

    class Whole:
        name, version, rubric = "whole", "1", own

    class Plain:
        name, version = "plain", "1"

    assert rubric_of(Whole()) is own  # type: ignore[arg-type]
    assert "`plain`" in rubric_of(Plain()).question  # type: ignore[arg-type]
