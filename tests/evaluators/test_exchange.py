"""The nouns that every evaluator sees."""

from __future__ import annotations

import dataclasses

import pytest

from evaluators.exchange import SHADOW_FAULTS, Answer, Endpoint, Fault, FaultKind


@pytest.mark.parametrize("kind", list(FaultKind))
def test_a_fault_is_of_the_infrastructure_or_of_generation(kind: FaultKind) -> None:
    assert Fault(kind=kind).of_infrastructure is (kind in SHADOW_FAULTS)


def test_unknown_paths_and_kinds_raise() -> None:
    with pytest.raises(ValueError, match="embeddings"):
        Endpoint("/v1/embeddings")
    with pytest.raises(ValueError, match="melted"):
        FaultKind("melted")


def test_an_answer_is_a_value() -> None:
    answer = Answer(text="hi")
    assert answer == Answer(text="hi")
    with pytest.raises(dataclasses.FrozenInstanceError):
        answer.text = "ho"  # type: ignore[misc]
