"""Responses: requests and answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from evaluators.exchange import Answer, Fault, FaultKind, Format, Outcome, Tool, ToolCall
from service.wire.responses import read_request
from service.wire.shapes import WrongShape

Read = Callable[..., Outcome]
PATH = "/v1/responses"
TEXT = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}
CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
THOUGHT = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}


def response(*output: Any, **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 3, "output_tokens": 2}
    return {
        "object": "response",
        "status": "completed",
        "output": [*output],
        "usage": usage,
        "error": None,
        **more,
    }


def test_a_request_is_read_in_full() -> None:
    request = read_request(
        {
            "model": "m",
            "instructions": "be brief",
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "a"}]},
                {"type": "reasoning", "summary": []},
                CALL,
                {"type": "function_call_output", "call_id": "c", "output": "42"},
                {"type": "custom_tool_call", "name": "sql", "input": "select"},
                {"type": "web_search_call", "id": "w"},
                {"type": "message", "role": "user", "content": "b"},
            ],
            "tools": [
                {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": True},
                {"type": "custom", "name": "sql"},
                {"type": "web_search"},
            ],
            "text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}}},
            "max_output_tokens": 9,
            "stream": True,
        }
    )
    assert [(m.role, m.text) for m in request.messages] == [
        ("system", "be brief"),
        ("user", "a"),
        ("assistant", ""),
        ("assistant", ""),
        ("tool", "42"),
        ("assistant", ""),
        ("assistant", ""),
        ("user", "b"),
    ]
    assert request.messages[3].tool_calls == (ToolCall(name="f", arguments="{}", id="c"),)
    assert request.tools == (
        Tool(name="f", parameters={"type": "object"}, strict=True),
        Tool(name="sql", free_form=True),
    )
    assert (request.format, request.schema) == (Format.JSON_SCHEMA, {"type": "object"})
    assert (request.max_tokens, request.stream, request.tool_choice) == (9, True, "auto")


def test_a_string_is_one_user_message() -> None:
    assert [(m.role, m.text) for m in read_request({"model": "m", "input": "hi"}).messages] == [
        ("user", "hi")
    ]


@pytest.mark.parametrize(
    ("choice", "meaning"),
    [
        ("none", "none"),
        ("required", "required"),
        ({"type": "function", "name": "f"}, "f"),
        ({"type": "allowed_tools", "mode": "required"}, "required"),
        ({"type": "allowed_tools"}, "auto"),
        ({"type": "web_search"}, "required"),
    ],
)
def test_every_tool_choice_is_understood(choice: Any, meaning: str) -> None:
    tools = [{"type": "function", "name": "f"}]
    assert (
        read_request({"model": "m", "input": "x", "tools": tools, "tool_choice": choice}).tool_choice
        == meaning
    )


def test_of_allowed_tools_only_those_may_be_called() -> None:
    tools = [{"type": "function", "name": name} for name in "abc"]
    named = [{"type": "function", "name": "b"}, {"type": "mcp", "server_label": "x"}]
    choice = {"type": "allowed_tools", "mode": "required", "tools": named}
    request = read_request({"model": "m", "input": "x", "tools": tools, "tool_choice": choice})
    assert ([tool.name for tool in request.tools], request.tool_choice) == (["b"], "required")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"input": []},
        {"input": [{"content": "x"}]},
        {"input": "x", "tools": [{"type": "function"}]},
        {"input": "x", "tools": [{"type": "function", "name": "f"}], "tool_choice": "maybe"},
    ],
)
def test_a_body_that_is_not_a_request_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(WrongShape):
        read_request({"model": "m", **body})


def test_the_last_event_carries_the_whole_answer(read_stream: Read, read_whole: Read) -> None:
    whole = response(THOUGHT, TEXT, CALL)
    streamed = read_stream(
        {"type": "response.created", "response": {"status": "in_progress", "output": []}},
        {"type": "response.output_text.delta", "delta": "h"},
        {"type": "response.completed", "response": whole},
        path=PATH,
        done=False,
    )
    assert streamed == read_whole(whole, path=PATH)
    assert streamed == Answer(
        text="hi",
        reasoning="hm",
        tool_calls=(ToolCall(name="f", arguments="{}", id="c"),),
        finish_reason="tool_calls",
        prompt_tokens=3,
        completion_tokens=2,
    )


def test_items_that_came_before_a_bare_end_are_put_in_their_order(read_stream: Read) -> None:
    found = read_stream(
        {"type": "response.output_item.done", "output_index": 1, "item": TEXT},
        {"type": "response.output_item.done", "output_index": 0, "item": CALL},
        {"type": "response.output_item.done", "item": TEXT},
        {"type": "response.completed", "response": response()},
        path=PATH,
    )
    assert isinstance(found, Answer)
    assert found.text == "hihi"
    assert found.tool_calls[0].name == "f"


@pytest.mark.parametrize(
    ("reason", "finish"),
    [("max_output_tokens", "length"), ("content_filter", "content_filter"), (None, None)],
)
def test_an_incomplete_response_says_why(reason: str | None, finish: str | None, read_whole: Read) -> None:
    details = {"reason": reason} if reason else None
    found = read_whole(response(TEXT, status="incomplete", incomplete_details=details), path=PATH)
    assert isinstance(found, Answer)
    assert found.finish_reason == finish


def test_a_failed_response_is_a_fault_streamed_or_not(read_stream: Read, read_whole: Read) -> None:
    failed = response(status="failed", error={"message": "out of memory"})
    for found in (
        read_whole(failed, path=PATH),
        read_stream({"type": "response.failed", "response": failed}, path=PATH),
        read_stream({"type": "response.cancelled", "response": response(status="cancelled")}, path=PATH),
        read_stream({"type": "error", "message": "out of memory"}, path=PATH),
    ):
        assert isinstance(found, Fault)
        assert found.kind is FaultKind.STREAM_ERROR
    assert read_whole(failed, path=PATH) == Fault(
        kind=FaultKind.STREAM_ERROR, status=200, detail="out of memory"
    )


def test_a_stream_without_its_last_event_is_cut_off(read_stream: Read) -> None:
    found = read_stream({"type": "response.output_text.delta", "delta": "h"}, path=PATH, done=False)
    assert isinstance(found, Fault)
    assert found.kind is FaultKind.CUT_OFF


def test_refusals_shown_thinking_and_arguments_as_objects_are_read(read_whole: Read) -> None:
    refused = {"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}
    thought = {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "deep"}], "summary": []}
    empty = {"type": "reasoning", "summary": [], "encrypted_content": "x"}
    call = {**CALL, "arguments": {"x": 1}}
    found = read_whole(response(refused, thought, empty, call, {"type": "web_search_call"}), path=PATH)
    assert isinstance(found, Answer)
    assert (found.refusal, found.reasoning, found.reasoning_hidden) == ("no", "deep", True)
    shown = read_whole(response(refused, thought, call), path=PATH)
    assert isinstance(shown, Answer)
    assert not shown.reasoning_hidden
    assert found.tool_calls[0].arguments == '{"x":1}'


@pytest.mark.parametrize("body", [{}, {"status": "completed"}, {"status": "completed", "output": 3}])
def test_a_body_that_is_no_response_is_unreadable(body: Any, read_whole: Read) -> None:
    found = read_whole(body, path=PATH)
    assert isinstance(found, Fault)
    assert found.kind is FaultKind.UNREADABLE


@pytest.mark.parametrize("end", ["completed", "incomplete"])
def test_the_last_event_names_the_status_where_the_response_does_not(end: str, read_stream: Read) -> None:
    item = {"type": "message", "content": [{"type": "output_text", "text": "hi"}]}
    answer = read_stream({"type": f"response.{end}", "response": {"output": [item]}}, path=PATH, done=False)
    assert answer == Answer(text="hi", finish_reason="stop" if end == "completed" else None)


def test_a_failed_end_is_a_fault_even_where_the_response_does_not_say_so(read_stream: Read) -> None:
    found = read_stream({"type": "response.failed", "response": {}}, path=PATH, done=False)
    assert isinstance(found, Fault)
    assert (found.kind, found.detail) == (FaultKind.STREAM_ERROR, "failed")


def test_one_call_at_most_where_the_request_says_so() -> None:
    body = {"model": "m", "input": "hi", "tools": [{"type": "function", "name": "f"}]}
    assert read_request(body).parallel_calls
    assert not read_request({**body, "parallel_tool_calls": False}).parallel_calls
