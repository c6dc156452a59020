"""Anthropic messages: requests and answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from evaluators.exchange import Answer, Fault, FaultKind, Format, Outcome, Tool, ToolCall
from service.wire.messages import read_request
from service.wire.shapes import WrongShape

Read = Callable[..., Outcome]
PATH = "/v1/messages"


def delta(index: int, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": fields}


def start(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def ending(reason: str) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 2}}


BEGIN = {
    "type": "message_start",
    "message": {"content": [], "usage": {"input_tokens": 3, "output_tokens": 1}},
}
STOP = {"type": "message_stop"}


def test_a_request_is_read_in_full() -> None:
    request = read_request(
        {
            "model": "m",
            "system": [{"type": "text", "text": "be brief"}],
            "messages": [
                {"role": "user", "content": "a"},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "hm"},
                        {"type": "text", "text": "calling"},
                        {"type": "tool_use", "id": "1", "name": "f", "input": {"x": 1}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "1",
                            "content": [{"type": "text", "text": "42"}],
                        },
                        {"type": "text", "text": "and?"},
                    ],
                },
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "43"}]},
            ],
            "tools": [{"name": "f", "input_schema": {"type": "object"}}, {"type": "web_search_20250305"}],
            "tool_choice": {"type": "any"},
            "output_config": {"format": {"type": "json_schema", "schema": {"type": "array"}}},
            "max_tokens": 9,
            "stream": True,
        }
    )
    assert [(m.role, m.text) for m in request.messages] == [
        ("system", "be brief"),
        ("user", "a"),
        ("assistant", "calling"),
        ("tool", "42"),
        ("user", "and?"),
        ("tool", "43"),
    ]
    assert request.messages[2].tool_calls == (ToolCall(name="f", arguments='{"x":1}', id="1"),)
    assert request.tools == (Tool(name="f", parameters={"type": "object"}),)
    assert (request.tool_choice, request.max_tokens, request.stream) == ("required", 9, True)
    assert (request.format, request.schema) == (Format.JSON_SCHEMA, {"type": "array"})


@pytest.mark.parametrize(
    ("choice", "meaning"),
    [
        (None, "auto"),
        ({"type": "auto"}, "auto"),
        ({"type": "none"}, "none"),
        ({"type": "tool", "name": "f"}, "f"),
        ({"type": "tool"}, "required"),
    ],
)
def test_every_tool_choice_is_understood(choice: Any, meaning: str) -> None:
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "x"}],
        "tools": [{"name": "f"}],
        "tool_choice": choice,
    }
    assert read_request(body).tool_choice == meaning


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"messages": []},
        {"messages": [{"content": "x"}]},
        {"messages": [{"role": "user", "content": "x"}], "tools": [{"input_schema": {}}]},
        {
            "messages": [{"role": "user", "content": "x"}],
            "tools": [{"name": "f"}],
            "tool_choice": {"type": "x"},
        },
    ],
)
def test_a_body_that_is_not_a_request_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(WrongShape):
        read_request({"model": "m", **body})


def test_an_empty_message_is_a_message() -> None:
    assert read_request({"model": "m", "messages": [{"role": "user", "content": []}]}).messages[0].text == ""


def test_streamed_and_unstreamed_answers_are_equal_pings_set_aside(
    read_stream: Read, read_whole: Read
) -> None:
    streamed = read_stream(
        BEGIN,
        {"type": "ping"},
        start(0, type="thinking", thinking=""),
        delta(0, type="thinking_delta", thinking="hm"),
        delta(0, type="signature_delta", signature="s"),
        start(1, type="text", text=""),
        delta(1, type="text_delta", text="h"),
        {"type": "ping"},
        delta(1, type="text_delta", text="i"),
        {"type": "content_block_stop", "index": 1},
        start(2, type="tool_use", id="1", name="f", input={}),
        delta(2, type="input_json_delta", partial_json=""),
        delta(2, type="input_json_delta", partial_json='{"x": "é'),
        delta(2, type="input_json_delta", partial_json='"}'),
        ending("tool_use"),
        STOP,
        path=PATH,
        done=False,
    )
    whole = read_whole(
        {
            "type": "message",
            "content": [
                {"type": "thinking", "thinking": "hm"},
                {"type": "text", "text": "hi"},
                {"type": "tool_use", "id": "1", "name": "f", "input": {"x": "é"}},
            ],
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 3, "output_tokens": 2},
        },
        path=PATH,
    )
    assert streamed == whole
    assert streamed == Answer(
        text="hi",
        reasoning="hm",
        tool_calls=(ToolCall(name="f", arguments='{"x":"é"}', id="1"),),
        finish_reason="tool_calls",
        prompt_tokens=3,
        completion_tokens=2,
    )


def test_a_missing_message_stop_is_no_fault_once_the_stop_reason_came(read_stream: Read) -> None:
    found = read_stream(
        BEGIN, start(0, type="text", text="hi"), ending("end_turn"), path=PATH, done=False, complete=False
    )
    assert isinstance(found, Answer)
    assert (found.text, found.finish_reason) == ("hi", "stop")


def test_without_a_stop_reason_the_stream_was_cut_off(read_stream: Read) -> None:
    found = read_stream(BEGIN, start(0, type="text", text="hi"), path=PATH, done=False)
    assert isinstance(found, Fault)
    assert found.kind is FaultKind.CUT_OFF


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refusal"),
        ("pause_turn", "pause_turn"),
    ],
)
def test_stop_reasons_are_put_in_openai_s_words(reason: str, finish: str, read_whole: Read) -> None:
    found = read_whole({"content": [], "stop_reason": reason}, path=PATH)
    assert isinstance(found, Answer)
    assert found.finish_reason == finish


@pytest.mark.parametrize(
    ("pieces", "arguments"),
    [
        ([], "{}"),
        (['{"x":', "1"], '{"x":1'),
        (['{"x":1,"x":2}'], '{"x":1,"x":2}'),
        (['{ "x" : 1 }'], '{"x":1}'),
    ],
)
def test_broken_or_ambiguous_input_stays_as_it_was_written(
    pieces: list[str], arguments: str, read_stream: Read
) -> None:
    found = read_stream(
        start(0, type="tool_use", name="f", input={}),
        *(delta(0, type="input_json_delta", partial_json=piece) for piece in pieces),
        ending("tool_use"),
        path=PATH,
    )
    assert isinstance(found, Answer)
    assert found.tool_calls[0].arguments == arguments


def test_a_delta_without_its_start_is_text(read_stream: Read) -> None:
    found = read_stream(delta(0, type="text_delta", text="hi"), ending("end_turn"), path=PATH)
    assert isinstance(found, Answer)
    assert found.text == "hi"


def test_an_error_event_is_a_fault(read_stream: Read) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    assert read_stream(BEGIN, error, path=PATH) == Fault(
        kind=FaultKind.STREAM_ERROR, status=200, detail="Overloaded"
    )


@pytest.mark.parametrize("body", [{}, {"content": "text"}, {"content": [3]}, {"content": [], "usage": []}])
def test_a_body_that_is_no_message_is_unreadable(body: Any, read_whole: Read) -> None:
    found = read_whole(body, path=PATH)
    assert isinstance(found, Fault)
    assert found.kind is FaultKind.UNREADABLE


def test_blocks_that_say_nothing_to_us_are_passed_over(read_whole: Read) -> None:
    blocks = [{"type": "server_tool_use", "id": "1"}, {"type": "text", "text": "hi"}]
    found = read_whole({"content": blocks, "stop_reason": "end_turn"}, path=PATH)
    assert found == Answer(text="hi", finish_reason="stop")


@pytest.mark.parametrize(
    "blocks",
    [
        [{"type": "redacted_thinking", "data": "x"}],
        [{"type": "thinking", "thinking": "", "signature": "x"}],
        [{"type": "thinking", "thinking": "Let me"}, {"type": "redacted_thinking", "data": "x"}],
    ],
)
def test_thinking_that_is_not_shown_is_told(
    blocks: list[dict[str, Any]], read_whole: Read, read_stream: Read
) -> None:
    whole = read_whole({"content": blocks, "stop_reason": "max_tokens"}, path=PATH)
    assert isinstance(whole, Answer)
    assert (whole.reasoning_hidden, whole.finish_reason) == (True, "length")
    streamed = read_stream(
        BEGIN, *(start(i, **block) for i, block in enumerate(blocks)), ending("max_tokens"), STOP, path=PATH
    )
    assert isinstance(streamed, Answer)
    assert streamed.reasoning_hidden


def test_thinking_that_is_shown_is_not_unseen(read_whole: Read, read_stream: Read) -> None:
    block = {"type": "thinking", "thinking": "Let me", "signature": "x"}
    whole = read_whole({"content": [block], "stop_reason": "max_tokens"}, path=PATH)
    assert whole == Answer(reasoning="Let me", finish_reason="length")
    streamed = read_stream(
        BEGIN,
        start(0, type="thinking", thinking=""),
        delta(0, thinking="Let me"),
        ending("max_tokens"),
        path=PATH,
    )
    assert isinstance(streamed, Answer)
    assert not streamed.reasoning_hidden


@pytest.mark.parametrize(
    ("usage", "prompt", "cached"),
    [
        ({"input_tokens": 5}, 5, None),
        ({"input_tokens": 5, "cache_read_input_tokens": 2}, 7, 2),
        ({"input_tokens": 5, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 4}, 9, 0),
        ({"input_tokens": 5, "cache_read_input_tokens": None, "cache_creation_input_tokens": "x"}, 5, None),
        ({"cache_read_input_tokens": 2}, None, 2),
    ],
)
def test_a_prompt_is_counted_whole_whatever_came_from_the_cache(
    usage: dict[str, Any], prompt: int | None, cached: int | None, read_whole: Read
) -> None:
    found = read_whole({"content": [], "stop_reason": "end_turn", "usage": usage}, path=PATH)
    assert isinstance(found, Answer)
    assert (found.prompt_tokens, found.cached_tokens) == (prompt, cached)


def test_blocks_that_share_an_index_or_have_none_are_kept_apart(read_stream: Read) -> None:
    for index in ({"index": 0}, {}):
        tool = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
        answer = read_stream(
            {"type": "content_block_start", **index, "content_block": {"type": "text", "text": "so "}},
            {"type": "content_block_delta", **index, "delta": {"type": "text_delta", "text": "be it"}},
            {"type": "content_block_start", **index, "content_block": tool},
            {"type": "content_block_delta", **index, "delta": {"partial_json": '{"x":'}},
            {"type": "content_block_delta", **index, "delta": {"partial_json": "1}"}},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
            path=PATH,
        )
        call = ToolCall(name="f", arguments='{"x":1}', id="a")
        assert answer == Answer(text="so be it", tool_calls=(call,), finish_reason="tool_calls")


def test_numbers_beyond_a_double_are_the_same_arguments_streamed_and_unstreamed(
    read_stream: Read, read_whole: Read
) -> None:
    block = b'{"type":"tool_use","id":"a","name":"f","input":{"n":1e400,"m":0.1}}'
    whole = read_whole(b'{"content":[%b],"stop_reason":"tool_use"}' % block, path=PATH)
    streamed = read_stream(
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "tool_use", "id": "a", "name": "f"},
        },
        {"type": "content_block_delta", "index": 0, "delta": {"partial_json": '{"n": 1e400, "m": 0.1}'}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        path=PATH,
    )
    assert whole == streamed


def test_input_as_deep_as_evaluators_read_is_read_whole(read_whole: Read) -> None:
    value: Any = 1
    for _ in range(127):
        value = [value]
    tool = {"type": "tool_use", "id": "a", "name": "f", "input": {"x": value}}
    answer = read_whole({"content": [tool], "stop_reason": "tool_use"}, path=PATH)
    assert isinstance(answer, Answer)
    assert answer.tool_calls[0].arguments == '{"x":' + "[" * 127 + "1" + "]" * 127 + "}"


def test_one_call_at_most_where_parallel_use_is_disabled() -> None:
    tool = {"name": "f", "input_schema": {"type": "object"}}
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 5, "tools": [tool]}
    assert read_request(body).parallel_calls
    choice = {"type": "auto", "disable_parallel_tool_use": True}
    assert not read_request({**body, "tool_choice": choice}).parallel_calls
