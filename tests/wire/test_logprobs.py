"""Log probabilities that are no numbers, in each shape that engines give them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaluators.exchange import Answer, Endpoint
from service.wire import parse_answer
from service.wire.logprobs import broken


@pytest.mark.parametrize(
    ("logprobs", "found"),
    [
        ({"content": [{"token": "a", "logprob": -0.1}, {"token": "b", "logprob": -12}]}, 0),
        ({"content": [{"token": "a", "logprob": None}, {"token": "b", "logprob": float("nan")}]}, 2),
        ({"content": [{"token": "a", "logprob": float("-inf")}], "refusal": [{"logprob": "NaN"}]}, 2),
        ({"content": [{"token": "a", "logprob": -9999.0}]}, 0),
        ({"content": [{"token": "a", "logprob": -1, "top_logprobs": [{"logprob": float("-inf")}]}]}, 0),
        ({"token_logprobs": [None, -1.0, None]}, 1),
        ({"token_logprobs": [float("nan"), -1.0]}, 1),
        ([{"token": "a", "logprob": None}], 1),
        (None, 0),
        ("none", 0),
        ({"content": "text"}, 0),
    ],
)
def test_tokens_written_without_a_number_are_counted(logprobs: Any, found: int) -> None:
    assert broken(logprobs) == found


def test_a_list_that_goes_on_has_no_first_token_without_one() -> None:
    assert broken({"token_logprobs": [None, -1.0]}, first=False) == 1


def whole(path: Endpoint, body: dict[str, Any]) -> Answer:
    found = parse_answer(
        path,
        status=200,
        content_type="application/json",
        content_encoding="",
        body=json.dumps(body).encode(),
        complete=True,
    )
    assert isinstance(found, Answer)
    return found


def test_chat_answers_tell_of_them_whole_and_streamed() -> None:
    told = {"content": [{"token": "a", "logprob": float("nan")}]}
    choice = {"index": 0, "finish_reason": "stop", "logprobs": told}
    body = {"choices": [{**choice, "message": {"content": "a"}}]}
    assert whole(Endpoint.CHAT_COMPLETIONS, body).broken_logprobs == 1
    events = [
        {"choices": [{**choice, "finish_reason": None, "delta": {"content": "a"}}]},
        {"choices": [{**choice, "delta": {"content": "b"}}]},
    ]
    stream = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    found = parse_answer(
        Endpoint.CHAT_COMPLETIONS,
        status=200,
        content_type="text/event-stream",
        content_encoding="",
        body=stream.encode(),
        complete=True,
    )
    assert isinstance(found, Answer)
    assert found.broken_logprobs == 2


def test_completions_and_responses_tell_of_them() -> None:
    logprobs = {"tokens": ["a", "b"], "token_logprobs": [-0.5, None]}
    body = {"choices": [{"index": 0, "text": "ab", "finish_reason": "stop", "logprobs": logprobs}]}
    assert whole(Endpoint.COMPLETIONS, body).broken_logprobs == 1
    part = {"type": "output_text", "text": "a", "logprobs": [{"token": "a", "logprob": None}]}
    said = {"status": "completed", "output": [{"type": "message", "content": [part]}]}
    assert whole(Endpoint.RESPONSES, said).broken_logprobs == 1


def test_tokens_from_the_cache_and_hidden_thoughts_are_read_where_they_are_told() -> None:
    usage = {
        "prompt_tokens": 9,
        "prompt_tokens_details": {"cached_tokens": 8},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    message = {"index": 0, "message": {"content": "a"}, "finish_reason": "stop"}
    chat = whole(Endpoint.CHAT_COMPLETIONS, {"choices": [message], "usage": usage})
    assert (chat.cached_tokens, chat.reasoning_tokens) == (8, 3)
    silent = whole(Endpoint.CHAT_COMPLETIONS, {"choices": [message], "usage": {"prompt_tokens_details": "?"}})
    assert (silent.cached_tokens, silent.reasoning_tokens) == (None, None)
    said = {"content": [{"type": "text", "text": "a"}], "stop_reason": "end_turn"}
    told = whole(Endpoint.MESSAGES, {**said, "usage": {"cache_read_input_tokens": 7}})
    assert told.cached_tokens == 7
