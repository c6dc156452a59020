"""What is expected of a model's answers besides what its requests say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluators.exchange import AnswerRule, Expected
from service.settings import SettingsError, load

Write = Callable[[object], Path]


@pytest.mark.parametrize(
    ("written", "rule"),
    [
        (None, AnswerRule()),
        ({"expects": "none"}, AnswerRule()),
        ({"expects": "json"}, AnswerRule(expects_json=True)),
        ({"expects": "jsonl"}, AnswerRule(expects_json=True, json_lines=True)),
        ({"accept_recoverable": True}, AnswerRule(accept_recoverable=True)),
    ],
)
def test_a_model_has_its_own_rule(
    written: object, rule: AnswerRule, minimal: dict[str, Any], write: Write
) -> None:
    minimal["models"]["qwen"]["structured_output"] = written
    loaded = load(write(minimal), {})
    assert loaded.answer_rule_of("qwen") == rule
    assert loaded.answer_rule_of("another") == AnswerRule()


def test_another_rule_judges_otherwise_and_begins_a_new_epoch(minimal: dict[str, Any], write: Write) -> None:
    before = load(write(minimal), {}).epoch_of("qwen", "w8a8")
    minimal["models"]["qwen"]["structured_output"] = {"accept_recoverable": True}
    assert load(write(minimal), {}).epoch_of("qwen", "w8a8") != before


def test_what_cannot_be_expected_is_told_on_its_line(minimal: dict[str, Any], write: Write) -> None:
    minimal["models"]["qwen"]["structured_output"] = {"expects": "yaml"}
    with pytest.raises(
        SettingsError, match=r"models\.qwen\.structured_output\.expects.*'none', 'json' or 'jsonl'"
    ):
        load(write(minimal), {})


def test_a_path_may_have_a_rule_of_its_own_and_without_any_the_epoch_stays(
    minimal: dict[str, Any], write: Write
) -> None:
    before = load(write(minimal), {}).epoch_of("qwen", "w8a8")
    minimal["models"]["qwen"]["structured_output"] = {"paths": {}}
    assert load(write(minimal), {}).epoch_of("qwen", "w8a8") == before
    minimal["models"]["qwen"]["structured_output"] = {"paths": {"/v1/completions": "jsonl"}}
    loaded = load(write(minimal), {})
    assert loaded.answer_rule_of("qwen").paths == {"/v1/completions": Expected.JSON_LINES}
    assert loaded.epoch_of("qwen", "w8a8") != before


@pytest.mark.parametrize(
    "paths", [{"/v1/embeddings": "json"}, {"/v1/completions": "xml"}, {"completions": "json"}]
)
def test_a_path_that_generates_nothing_or_expects_nothing_known_is_told(
    paths: dict[str, str], minimal: dict[str, Any], write: Write
) -> None:
    minimal["models"]["qwen"]["structured_output"] = {"paths": paths}
    with pytest.raises(SettingsError, match=r"models\.qwen\.structured_output\.paths"):
        load(write(minimal), {})
