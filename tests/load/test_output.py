from __future__ import annotations

from typing import Any

import pytest

from evaluators.exchange import Endpoint
from service.load.output import OUTPUTS, Output


def delta(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


def reader(endpoint: Endpoint) -> Output:
    return OUTPUTS[endpoint]()


CHAT = Endpoint.CHAT_COMPLETIONS


@pytest.mark.parametrize(
    "fields",
    [
        {"content": "a"},
        {"content": " "},
        {"reasoning": "hm"},
        {"reasoning_content": "hm"},
        {"refusal": "I can't"},
        {"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]},
        {"tool_calls": [{"index": 0, "custom": {"input": "x"}}]},
        {"function_call": {"arguments": "{"}},
    ],
)
def test_content_reasoning_arguments_and_refusals_of_a_chat_are_output(fields: dict[str, Any]) -> None:
    assert reader(CHAT).take(delta(**fields))


@pytest.mark.parametrize(
    "event",
    [
        delta(role="assistant", content=""),
        delta(content=None),
        delta(tool_calls=[{"index": 0, "id": "1", "function": {"name": "search", "arguments": ""}}]),
        delta(function_call=None),
        delta(),
        {"choices": []},
        {"choices": None},
        {"choices": [{"index": 0, "delta": None}]},
        {"usage": {"completion_tokens": 3}},
        {},
    ],
)
def test_roles_names_and_usage_of_a_chat_are_no_output(event: dict[str, Any]) -> None:
    assert not reader(CHAT).take(event)


def test_a_chat_tells_its_end_and_its_usage() -> None:
    read = reader(CHAT)
    assert read.take({"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "length"}]})
    assert (read.ended, read.failure, read.tokens) == (True, False, None)
    read.take(
        {
            "choices": [],
            "usage": {
                "prompt_tokens": 9,
                "completion_tokens": 4,
                "prompt_tokens_details": {"cached_tokens": 8},
            },
        }
    )
    assert (read.tokens, read.prompt_tokens, read.cached_tokens) == (4, 9, 8)
    read.take({"choices": [], "usage": {"completion_tokens": True, "prompt_tokens_details": None}})
    assert read.tokens == 4


@pytest.mark.parametrize(
    ("endpoint", "event"),
    [
        (CHAT, {"error": {"message": "x"}}),
        (CHAT, {"choices": [{"delta": {}, "finish_reason": "error"}]}),
        (CHAT, {"choices": [{"delta": {}, "finish_reason": "abort"}]}),
        (Endpoint.COMPLETIONS, {"error": {"message": "x"}}),
        (Endpoint.RESPONSES, {"type": "response.failed", "response": {}}),
        (Endpoint.RESPONSES, {"type": "error", "message": "x"}),
        (Endpoint.MESSAGES, {"type": "error", "error": {"type": "overloaded_error"}}),
        (Endpoint.MESSAGES, {"type": "message_delta", "delta": {"stop_reason": "abort"}}),
    ],
)
def test_an_engine_that_gives_up_says_so(endpoint: Endpoint, event: dict[str, Any]) -> None:
    read = reader(endpoint)
    read.take(event)
    assert read.failure


def test_completions_tell_text_end_and_usage() -> None:
    read = reader(Endpoint.COMPLETIONS)
    assert read.take({"choices": [{"index": 0, "text": "a", "finish_reason": None}]})
    assert not read.take({"choices": [{"index": 0, "text": "", "finish_reason": "stop"}]})
    assert not read.take({"choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": 1}})
    assert (read.ended, read.tokens, read.prompt_tokens) == (True, 1, 2)


@pytest.mark.parametrize(
    ("kind", "carries"),
    [
        ("response.output_text.delta", True),
        ("response.reasoning_text.delta", True),
        ("response.reasoning_summary_text.delta", True),
        ("response.refusal.delta", True),
        ("response.function_call_arguments.delta", True),
        ("response.output_text.done", False),
        ("response.output_item.added", False),
        ("response.created", False),
    ],
)
def test_deltas_of_responses_are_output(kind: str, carries: bool) -> None:
    assert reader(Endpoint.RESPONSES).take({"type": kind, "delta": "a"}) is carries
    assert not reader(Endpoint.RESPONSES).take({"type": kind, "delta": ""})


def test_responses_end_with_their_usage() -> None:
    read = reader(Endpoint.RESPONSES)
    usage = {"input_tokens": 5, "output_tokens": 3, "input_tokens_details": {"cached_tokens": 1}}
    read.take({"type": "response.incomplete", "response": {"usage": usage}})
    assert (read.ended, read.tokens, read.prompt_tokens, read.cached_tokens) == (True, 3, 5, 1)


@pytest.mark.parametrize(
    ("delta", "carries"),
    [
        ({"type": "text_delta", "text": "a"}, True),
        ({"type": "thinking_delta", "thinking": "a"}, True),
        ({"type": "input_json_delta", "partial_json": "{"}, True),
        ({"type": "input_json_delta", "partial_json": ""}, False),
        ({"type": "signature_delta", "signature": "abc"}, False),
    ],
)
def test_text_thinking_and_input_of_messages_are_output(delta: dict[str, Any], carries: bool) -> None:
    event = {"type": "content_block_delta", "index": 0, "delta": delta}
    assert reader(Endpoint.MESSAGES).take(event) is carries


@pytest.mark.parametrize(
    ("begin", "end", "prompt", "cached"),
    [
        ({"input_tokens": 5}, {}, 5, None),
        ({"input_tokens": 5, "cache_read_input_tokens": 2}, {}, 7, 2),
        ({"input_tokens": 5, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 4}, {}, 11, 2),
        ({"input_tokens": 5, "cache_creation_input_tokens": 4}, {}, 9, None),
        # the engine knows only at the end what came from its cache
        ({"input_tokens": 7}, {"input_tokens": 5, "cache_read_input_tokens": 2}, 7, 2),
        ({}, {"cache_read_input_tokens": 2}, None, 2),
    ],
)
def test_messages_tell_usage_at_the_start_and_at_the_end_the_cached_apart(
    begin: dict[str, int], end: dict[str, int], prompt: int | None, cached: int | None
) -> None:
    read = reader(Endpoint.MESSAGES)
    read.take({"type": "message_start", "message": {"usage": {**begin, "output_tokens": 1}}})
    assert not read.ended
    usage = {**end, "output_tokens": 9}
    read.take({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage})
    assert (read.ended, read.tokens, read.prompt_tokens, read.cached_tokens) == (True, 9, prompt, cached)


@pytest.mark.parametrize("event", [[], 3, "x", {"choices": 3}, {"choices": [7]}, {"choices": [{"delta": 3}]}])
def test_what_is_not_of_the_dialect_raises_what_the_connection_expects(event: Any) -> None:
    with pytest.raises((TypeError, AttributeError)):
        reader(CHAT).take(event)


@pytest.mark.parametrize(
    ("endpoint", "events"),
    [
        (CHAT, [delta(role="assistant", content=""), delta(content="ab"), delta(reasoning="é"), delta()]),
        (
            CHAT,
            [delta(tool_calls=[{"function": {"name": "f", "arguments": each}} for each in ("{", "{}}", "")])],
        ),
        (CHAT, [delta(refusal="\ud83d"), delta(function_call={"arguments": "x"})]),
        (Endpoint.COMPLETIONS, [{"choices": [{"index": 0, "text": "a中"}]}]),
        (
            Endpoint.RESPONSES,
            [{"type": "response.output_text.delta", "delta": "abcd"}, {"type": "x", "delta": "y"}],
        ),
        (
            Endpoint.MESSAGES,
            [
                {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "ab"}},
                {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": "{}"}},
            ],
        ),
    ],
)
def test_bytes_of_output_are_counted_in_utf_8(endpoint: Endpoint, events: list[Any]) -> None:
    read = reader(endpoint)
    for event in events:
        read.take(event)
    assert read.written == 4
