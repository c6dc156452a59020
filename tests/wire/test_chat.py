"""Chat completions: requests and answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from evaluators.exchange import Answer, Endpoint, Fault, FaultKind, Format, Outcome, Tool, ToolCall
from service.wire.chat import read_request, read_tool_choice
from service.wire.shapes import WrongShape

USER = [{"role": "user", "content": "hi"}]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}, "strict": True}}


def test_a_request_is_read_in_full() -> None:
    body = {
        "model": "m",
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "1", "content": "42"},
            {"role": "assistant", "refusal": "no"},
        ],
        "tools": [TOOL],
        "stream": True,
        "max_completion_tokens": 7,
        "max_tokens": 9,
        "response_format": {"type": "json_object"},
    }
    request = read_request(body)
    assert request.endpoint is Endpoint.CHAT_COMPLETIONS
    assert [(m.role, m.text) for m in request.messages] == [
        ("system", "be brief"),
        ("user", "a\nb"),
        ("assistant", ""),
        ("tool", "42"),
        ("assistant", "no"),
    ]
    assert request.messages[2].tool_calls == (ToolCall(name="f", arguments="{}", id="1"),)
    assert request.tools == (Tool(name="f", parameters={"type": "object"}, strict=True),)
    assert (request.tool_choice, request.stream, request.max_tokens) == ("auto", True, 7)
    assert (request.format, request.constrained) == (Format.JSON_OBJECT, True)
    assert request.body is body


def test_older_functions_are_tools_and_calls() -> None:
    request = read_request(
        {
            "model": "m",
            "messages": [
                *USER,
                {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
            ],
            "functions": [{"name": "f", "parameters": {}}],
            "function_call": {"name": "f"},
        }
    )
    assert request.tools == (Tool(name="f", parameters={}),)
    assert request.tool_choice == "f"
    assert request.messages[1].tool_calls == (ToolCall(name="f", arguments="{}"),)


def test_a_custom_tool_takes_free_text() -> None:
    request = read_request(
        {"model": "m", "messages": USER, "tools": [{"type": "custom", "custom": {"name": "sql"}}]}
    )
    assert request.tools == (Tool(name="sql", free_form=True),)


@pytest.mark.parametrize(
    ("choice", "meaning"),
    [
        (None, "auto"),
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ({"type": "function", "function": {"name": "f"}}, "f"),
        ({"type": "custom", "custom": {"name": "g"}}, "g"),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": []}}, "required"),
        ({"type": "allowed_tools", "mode": "auto"}, "auto"),
        ({"type": "allowed_tools", "allowed_tools": {}}, "auto"),
    ],
)
def test_every_tool_choice_is_understood(choice: Any, meaning: str) -> None:
    assert read_tool_choice({"tool_choice": choice}, (Tool(name="f"),)) == meaning
    assert read_tool_choice({"tool_choice": choice}, ()) == "none"


def test_of_allowed_tools_only_those_may_be_called() -> None:
    tools = [{"type": "function", "function": {"name": name}} for name in "abc"]
    named = [{"type": "function", "function": {"name": name}} for name in "ca"]
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": named}}
    request = read_request({"model": "m", "messages": USER, "tools": tools, "tool_choice": choice})
    assert [tool.name for tool in request.tools] == ["a", "c"]
    nothing = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}
    request = read_request({"model": "m", "messages": USER, "tools": tools, "tool_choice": nothing})
    assert len(request.tools) == 3


@pytest.mark.parametrize("choice", ["sometimes", 3, {}, {"type": "function", "function": {}}])
def test_a_tool_choice_that_nobody_knows_is_refused(choice: Any) -> None:
    with pytest.raises(WrongShape):
        read_tool_choice({"tool_choice": choice}, (Tool(name="f"),))


@pytest.mark.parametrize(
    "body",
    [
        {"messages": []},
        {},
        {"messages": "hi"},
        {"messages": [{"content": "x"}]},
        {"messages": ["x"]},
        {"messages": USER, "tools": [{"type": "function", "function": {}}]},
        {"messages": USER, "tools": [{"type": "web_search"}]},
        {"messages": USER, "max_tokens": "many"},
        {"messages": [{"role": "user", "content": 3}]},
    ],
)
def test_a_body_that_is_not_a_chat_request_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(WrongShape):
        read_request({"model": "m", **body})


Read = Callable[..., Outcome]
AnswerOf = Callable[..., Answer]


def message(read_whole: Read, turn: Any, finish: str = "stop") -> Answer:
    found = read_whole({"choices": [{"index": 0, "message": turn, "finish_reason": finish}]})
    assert isinstance(found, Answer), found
    return found


def test_streamed_and_unstreamed_content_are_equal(answer_of: AnswerOf, read_whole: Read) -> None:
    streamed = answer_of({"role": "assistant", "content": ""}, {"content": "你"}, {"content": "好"})
    assert streamed == message(read_whole, {"role": "assistant", "content": "你好"})
    assert streamed == Answer(text="你好", finish_reason="stop")


def test_the_finish_reason_may_come_with_the_last_content(read_stream: Read) -> None:
    found = read_stream({"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "length"}]})
    assert found == Answer(text="a", finish_reason="length")


def test_usage_may_come_alone_or_beside_choices(read_stream: Read) -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 2}
    end = {"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}]}
    expected = Answer(text="a", finish_reason="stop", prompt_tokens=3, completion_tokens=2)
    assert read_stream(end, {"choices": [], "usage": usage}) == expected
    assert read_stream({**end, "usage": usage}) == expected
    assert read_stream({"choices": [], "usage": None}, {**end, "usage": usage}) == expected


def test_of_several_choices_the_first_is_read(read_stream: Read, read_whole: Read) -> None:
    chunks = [
        {"choices": [{"index": 1, "delta": {"content": "b"}}]},
        {"choices": [{"index": 0, "delta": {"content": "a"}}, {"index": 1, "delta": {"content": "B"}}]},
        {"choices": [{"index": 1, "delta": {}, "finish_reason": "length"}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]
    assert read_stream(*chunks) == Answer(text="a", finish_reason="stop")
    whole = {
        "choices": [
            {"index": 1, "message": {"content": "b"}, "finish_reason": "length"},
            {"index": 0, "message": {"content": "a"}, "finish_reason": "stop"},
        ]
    }
    assert read_whole(whole) == Answer(text="a", finish_reason="stop")
    twice = {"choices": [{"index": 0, "message": {"content": c}, "finish_reason": "stop"} for c in "ab"]}
    assert read_whole(twice) == Answer(text="a", finish_reason="stop")
    unnumbered = {"choices": [{"message": {"content": c}, "finish_reason": "stop"} for c in "ab"]}
    assert read_whole(unnumbered) == Answer(text="a", finish_reason="stop")


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_thinking_in_its_own_field_is_not_the_answer(key: str, answer_of: AnswerOf, read_whole: Read) -> None:
    streamed = answer_of({key: "h"}, {key: "m", "content": None}, {"content": "42"})
    assert streamed == Answer(text="42", reasoning="hm", finish_reason="stop")
    assert streamed == message(read_whole, {key: "hm", "content": "42"})


def test_thinking_in_both_fields_is_read_once(read_whole: Read) -> None:
    turn = {"reasoning": "hm", "reasoning_content": "hm", "content": "42"}
    assert message(read_whole, turn).reasoning == "hm"


def test_thinking_in_tags_is_not_the_answer_even_when_a_tag_is_split(answer_of: AnswerOf) -> None:
    assert answer_of({"content": "<thi"}, {"content": "nk>h"}, {"content": "m</think>\n\n42"}) == Answer(
        text="42", reasoning="hm", finish_reason="stop"
    )


def test_thinking_in_a_field_and_in_tags_is_joined(read_whole: Read) -> None:
    assert message(read_whole, {"reasoning": "a", "content": "<think>b</think>c"}).reasoning == "a\nb"


def test_refusal_deltas_are_put_together(answer_of: AnswerOf, read_whole: Read) -> None:
    streamed = answer_of({"refusal": "I ca"}, {"refusal": "n't."}, {"content": None})
    assert streamed == Answer(refusal="I can't.", finish_reason="stop")
    assert streamed == message(read_whole, {"content": None, "refusal": "I can't."})
    parts = [{"type": "refusal", "refusal": "I can't."}]
    assert streamed == message(read_whole, {"content": parts})


def test_content_parts_and_audio_are_read_for_their_text(read_whole: Read) -> None:
    turn = {"content": [{"type": "text", "text": "a"}, {"type": "audio"}, {"type": "text", "text": "b"}]}
    assert message(read_whole, turn).text == "ab"
    assert message(read_whole, {"content": None, "audio": {"id": "x"}}).text == ""


def test_tool_calls_streamed_and_unstreamed_are_equal(answer_of: AnswerOf, read_whole: Read) -> None:
    def part(arguments: str, **more: Any) -> dict[str, Any]:
        return {"tool_calls": [{"index": 0, **more, "function": {"arguments": arguments}}]}

    first = {"tool_calls": [{"index": 0, "id": "1", "function": {"name": "f", "arguments": ""}}]}
    streamed = answer_of(first, part('{"x"'), part(":1}"), finish="tool_calls")
    turn = {"content": None, "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": '{"x":1}'}}]}
    assert streamed == message(read_whole, turn, finish="tool_calls")


def test_an_older_function_call_is_a_tool_call(answer_of: AnswerOf, read_whole: Read) -> None:
    streamed = answer_of(
        {"function_call": {"name": "f", "arguments": "{"}},
        {"function_call": {"arguments": "}"}},
        finish="function_call",
    )
    whole = message(read_whole, {"function_call": {"name": "f", "arguments": "{}"}}, finish="function_call")
    assert streamed == whole
    assert streamed.tool_calls == (ToolCall(name="f", arguments="{}"),)


def test_logprobs_and_unknown_keys_are_passed_over(read_whole: Read) -> None:
    body = b'{"choices":[{"message":{"content":"a"},"logprobs":{"content":[{"logprob":-Infinity}]},"x":NaN,'
    assert read_whole(body + b'"finish_reason":"stop"}]}') == Answer(
        text="a", finish_reason="stop", broken_logprobs=1
    )


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"choices": []},
        {"choices": {}},
        {"choices": ["x"]},
        {"choices": [{"message": []}]},
        {"choices": [{"message": {"content": 5}}]},
        {"choices": [{"message": {"tool_calls": {}}}]},
        {"choices": [{"message": {"tool_calls": [1]}}]},
        {"choices": [{"message": {}, "finish_reason": 5}]},
        {"choices": [{"message": {}, "index": "x"}]},
        {"choices": [{"message": {}}], "usage": 5},
        {"choices": [{"message": {}}], "usage": {"prompt_tokens": "x"}},
        [],
        "text",
        None,
    ],
)
def test_a_body_that_is_no_chat_answer_is_unreadable(body: Any, read_whole: Read) -> None:
    found = read_whole(body)
    assert isinstance(found, Fault)
    assert found.kind is FaultKind.UNREADABLE
    assert found.detail


def test_a_stream_that_is_done_and_had_no_choice_is_unreadable(read_stream: Read) -> None:
    found = read_stream({"choices": []})
    assert isinstance(found, Fault)
    assert found.kind is FaultKind.UNREADABLE


def test_a_whole_message_in_an_event_is_the_answer(read_stream: Read, read_whole: Read) -> None:
    calls = [{"function": {"name": name, "arguments": "{}"}} for name in ("f", "f")]
    choice = {"message": {"content": "hi", "tool_calls": calls}, "finish_reason": "stop"}
    assert read_stream({"choices": [choice]}) == read_whole({"choices": [choice]})


def test_a_whole_message_behind_its_deltas_is_not_read_twice(read_stream: Read) -> None:
    end = {"message": {"content": "hi"}, "finish_reason": "stop"}
    answer = read_stream({"choices": [{"delta": {"content": "hi"}}]}, {"choices": [end]})
    assert answer == Answer(text="hi", finish_reason="stop")


@pytest.mark.parametrize("thought", ["hm", [{"type": "text", "text": "hm"}], ["h", {"text": "m"}]])
def test_thinking_in_content_parts_is_not_the_answer(
    thought: Any, answer_of: AnswerOf, read_whole: Read
) -> None:
    parts = [{"type": "thinking", "thinking": thought}, {"type": "text", "text": "hi"}]
    expected = Answer(text="hi", reasoning="hm", finish_reason="stop")
    assert answer_of({"content": parts}) == expected
    assert read_whole({"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]}) == expected


def test_choices_interleaved_are_kept_apart(read_stream: Read, read_whole: Read) -> None:
    def chunk(index: int, **delta: Any) -> dict[str, Any]:
        return {"choices": [{"index": index, "delta": delta}]}

    call = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}
    streamed = read_stream(
        chunk(1, content="one "),
        chunk(0, content="zero "),
        chunk(1, tool_calls=[call]),
        chunk(2, refusal="no"),
        {"choices": [{"index": 1, "delta": {"content": "more"}, "finish_reason": "tool_calls"}]},
        {
            "choices": [
                {"index": 2, "delta": {}, "finish_reason": "stop"},
                {"index": 0, "delta": {"content": "more"}},
            ]
        },
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]},
    )
    assert streamed == Answer(text="zero more", finish_reason="length")
    late = read_stream(
        chunk(1, content="one"), {"choices": [{"index": 1, "delta": {}, "finish_reason": "stop"}]}
    )
    assert late == Answer(text="one", finish_reason="stop")


def test_one_call_at_most_where_the_request_says_so() -> None:
    body = {"model": "m", "messages": USER, "tools": [TOOL]}
    assert read_request(body).parallel_calls
    assert read_request({**body, "parallel_tool_calls": True}).parallel_calls
    assert not read_request({**body, "parallel_tool_calls": False}).parallel_calls
