"""Hashes of a prompt's beginnings: the same for what begins alike, under one key."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaluators.exchange import Request
from service.wire import parse_request
from service.wire.prompt_blocks import MOST_BLOCKS, UNIT_TOKENS, PromptBlocks, prompt_blocks

KEY = b"key"
LONG = "sixteen letters " * 64
"""1,024 bytes: four blocks."""


def chat(*contents: str, **more: Any) -> Request:
    roles = ("user", "assistant")
    turns = [{"role": roles[place % 2], "content": content} for place, content in enumerate(contents)]
    body = {"model": "m", "messages": [*more.pop("before", []), *turns], **more}
    return parse_request("/v1/chat/completions", json.dumps(body).encode())


def completion(prompt: Any) -> Request:
    return parse_request("/v1/completions", json.dumps({"model": "m", "prompt": prompt}).encode())


def blocks(request: Request, key: bytes = KEY) -> PromptBlocks:
    return prompt_blocks(request, key=key)


def in_common(one: Request, other: Request) -> int:
    pairs = zip(blocks(one).named, blocks(other).named, strict=False)
    return next((place for place, (left, right) in enumerate(pairs) if left != right), -1)


def test_a_next_turn_begins_with_the_turns_before_it() -> None:
    assert in_common(chat(LONG), chat(LONG, "answer", "and now?")) == 4
    assert len(blocks(chat(LONG)).named) == 5
    assert blocks(chat(LONG)).tokens == (len("user\n") + 1024) // 4


def test_what_follows_another_beginning_is_another_block() -> None:
    assert in_common(chat(f"a{LONG}"), chat(f"b{LONG}")) == 0


def test_instructions_come_first_then_tools_then_turns() -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": {"description": LONG}}}
    instructed = {"before": [{"role": "system", "content": LONG}]}
    assert in_common(chat("hi", **instructed, tools=[tool]), chat("ho", **instructed)) == 4
    assert in_common(chat("hi", **instructed, tools=[tool]), chat("ho", **instructed, tools=[tool])) > 7


def test_another_key_or_another_model_has_nothing_in_common() -> None:
    assert set(blocks(chat(LONG)).named).isdisjoint(blocks(chat(LONG), b"other").named)
    assert set(blocks(chat(LONG)).named).isdisjoint(blocks(chat(LONG, model="n")).named)


def test_without_a_key_nothing_is_hashed() -> None:
    with pytest.raises(ValueError, match="need a key"):
        blocks(chat("hello"), b"")


def test_calls_and_media_are_part_of_a_turn() -> None:
    called = [{"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
    turn = {"role": "assistant", "content": None, "tool_calls": called}
    silent = {"role": "assistant", "content": ""}
    first = {"role": "user", "content": "hi"}
    assert in_common(chat(before=[first, turn]), chat(before=[first, silent])) == 0


@pytest.mark.parametrize("nested", [True, False])
def test_prompts_of_token_ids_are_counted_exactly(nested: bool) -> None:
    ids = list(range(1000, 1000 + 3 * UNIT_TOKENS + 5))
    found = blocks(completion([ids] if nested else ids))
    assert (found.tokens, len(found.named)) == (3 * UNIT_TOKENS + 5, 4)
    other = blocks(completion([*ids[:-1], 7]))
    assert found.named[:3] == other.named[:3]
    assert found.named[3] != other.named[3]


def test_of_a_prompt_beyond_all_windows_the_beginning_is_compared() -> None:
    found = blocks(completion("x" * (MOST_BLOCKS + 9) * 256))
    assert len(found.named) == MOST_BLOCKS
    assert found.tokens > MOST_BLOCKS * UNIT_TOKENS


@pytest.mark.parametrize("text", ["", "\ud800 half", "日本語"])
def test_any_text_has_its_blocks(text: str) -> None:
    found = blocks(chat(text))
    assert found.tokens >= 1
    assert all(0 <= name < 2**63 for name in found.named)
