"""Calls that a model wrote into its text."""

from __future__ import annotations

import pytest

from evaluators.call_marks import call_in


@pytest.mark.parametrize(
    "call",
    [
        '<tool_call>{"name": "f"}',
        "<|tool_call|>[",
        "<|tool_calls_begin|>f",
        "<｜tool▁calls▁begin｜>f",
        '[TOOL_CALLS] [{"name"',
        "<|python_tag|>f(",
        "<function=f>{",
        "<function_calls>",
        '<invoke name="f">',
    ],
)
def test_a_call_in_the_text_is_found_from_where_it_begins(call: str) -> None:
    assert call_in(f"Let me see. {call}") == call


@pytest.mark.parametrize("text", ["", "I would call the tool.", "`tool_call` is a field", "<b>function</b>"])
def test_talk_of_tools_is_no_call(text: str) -> None:
    assert call_in(text) == ""
