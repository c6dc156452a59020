"""Thinking in tags is parted from the answer."""

from __future__ import annotations

import pytest

from service.wire.thinking import join_thinking, split_thinking


@pytest.mark.parametrize(
    ("written", "answer", "thinking"),
    [
        ("plain", "plain", ""),
        ("<think>\nhm\n</think>\n\n42", "42", "hm"),
        ("\n <think>hm</think>42", "42", "hm"),
        ("<thinking>hm</thinking>42", "42", "hm"),
        ("<think>never ends", "", "never ends"),
        ("<think></think>\n\n42", "42", ""),
        ("hm, so\n</think>\n\n42", "42", "hm, so"),
        ("</think>42", "42", ""),
        ("use the </think> tag", "use the </think> tag", ""),
        ('{"a": "x</think>y"}', '{"a": "x</think>y"}', ""),
        ("first <think>no</think>", "first <think>no</think>", ""),
    ],
)
def test_thinking_is_what_stands_in_the_tags_at_the_start(written: str, answer: str, thinking: str) -> None:
    assert split_thinking(written) == (answer, thinking)


def test_thinking_from_several_places_is_joined() -> None:
    assert join_thinking("", "a", "", "b") == "a\nb"
