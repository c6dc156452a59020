from __future__ import annotations

import json
from typing import Any

import pytest

from service.load.bodies import load_body
from service.wire import parse_request


def sent(path: str, body: dict[str, Any]) -> Any:
    return json.loads(load_body(parse_request(path, json.dumps(body).encode()), model="theirs"))


def test_a_chat_request_is_asked_streamed_with_its_usage_and_otherwise_as_it_was() -> None:
    body = {
        "model": "ours",
        "messages": [{"role": "user", "content": "hello"}],
        "temperature": 0.7,
        "max_tokens": 20,
        "seed": 1,
        "stream": False,
    }
    assert sent("/v1/chat/completions", body) == {
        **body,
        "model": "theirs",
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_options_of_the_stream_stay_but_for_usage_in_every_event() -> None:
    options = {"include_usage": False, "continuous_usage_stats": True, "include_obfuscation": False}
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream_options": options}
    asked = sent("/v1/chat/completions", body)
    assert asked["stream_options"] == {"include_usage": True, "include_obfuscation": False}


def test_one_request_asks_for_one_answer_and_leaves_no_trace() -> None:
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "x"}],
        "n": 4,
        "user": "alice",
        "metadata": {"ticket": "7"},
        "store": True,
    }
    asked = sent("/v1/chat/completions", body)
    assert not {"n", "user", "metadata"} & set(asked)
    assert asked["store"] is False


@pytest.mark.parametrize(
    ("prompt", "asked"), [("one", "one"), (["one", "two"], "one"), ([1, 2], [1, 2]), ([[1, 2], [3]], [1, 2])]
)
def test_of_several_prompts_the_first_is_sent(prompt: object, asked: object) -> None:
    body = {"model": "m", "prompt": prompt, "best_of": 3, "echo": True}
    told = sent("/v1/completions", body)
    assert told["prompt"] == asked
    assert not {"best_of", "echo"} & set(told)


def test_the_other_dialects_tell_usage_unasked() -> None:
    responses = sent("/v1/responses", {"model": "m", "input": "x", "background": True})
    assert responses == {"model": "theirs", "input": "x", "store": False, "stream": True}
    messages = sent(
        "/v1/messages", {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "x"}]}
    )
    assert messages["stream"] is True
    assert "stream_options" not in messages
