"""The nouns that every evaluator sees."""

from __future__ import annotations

import dataclasses

import pytest

from evaluators.exchange import (
    SHADOW_FAULTS,
    Answer,
    AnswerRule,
    Endpoint,
    Expected,
    Fault,
    FaultKind,
    Request,
)


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


@pytest.mark.parametrize(
    ("told", "path", "json", "lines"),
    [
        ("", "/v1/chat/completions", True, False),
        ("", "/v1/completions", True, True),
        ("", "/v1/messages", False, False),
        ("none", "/v1/completions", False, False),
        ("jsonl", "/v1/messages", True, True),
        ("json", "/v1/completions", True, False),
        ("yaml", "/v1/completions", True, True),
    ],
)
def test_a_header_goes_before_the_path_and_the_path_before_the_model(
    told: str, path: str, json: bool, lines: bool
) -> None:
    paths = {"/v1/completions": Expected.JSON_LINES, "/v1/messages": Expected.NONE}
    rule = AnswerRule(expects_json=True, accept_recoverable=True, paths=paths)
    asked = Request(endpoint=Endpoint(path), model="m", messages=())
    found = rule.applied_to(asked, told)
    assert (found.expects_json, found.json_lines, found.accept_recoverable) == (json, lines, True)


@pytest.mark.parametrize(
    ("rule", "json", "lines"),
    [
        (AnswerRule(), False, False),
        (AnswerRule(expects_json=True), True, False),
        (AnswerRule(json_lines=True), True, True),
    ],
)
def test_without_them_the_rule_of_the_model_holds(rule: AnswerRule, json: bool, lines: bool) -> None:
    found = rule.applied_to(Request(endpoint=Endpoint.MESSAGES, model="m", messages=()))
    assert (found.expects_json, found.json_lines) == (json, lines)
