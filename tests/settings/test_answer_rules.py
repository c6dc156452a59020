"""What is expected of a model's answers besides what its requests say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluators.exchange import AnswerRule
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
