"""A recall question put to a captured context."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaluators.exchange import Format, Message, Needle, Request
from service.wire import NotARequest, parse_request, probe_request

NEEDLE = Needle(key="magic number", value="73512", question="What is the magic number?", depth=0.4)
CONTEXT = "The magic number is 73512.\n\nSummarize."


def captured(path: str, **body: Any) -> Request:
    return parse_request(path, json.dumps({"model": "m", **body}).encode())


def probed(request: Request, **extra: Any) -> Request:
    return probe_request(request, NEEDLE, max_tokens=64, extra_body=extra)


def chat(*messages: Any, **more: Any) -> Request:
    return captured("/v1/chat/completions", messages=list(messages), **more)


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def test_the_question_is_appended_to_the_last_user_message_and_the_prefix_stays() -> None:
    request = chat({"role": "system", "content": "be brief"}, user(CONTEXT))
    probe = probed(request)
    assert probe.body["messages"][0] == request.body["messages"][0]
    assert (
        probe.body["messages"][1]["content"]
        == CONTEXT + "\n\nNow answer only this: What is the magic number?"
    )
    assert probe.messages[1].text.startswith(request.messages[1].text)
    assert probe.needle is NEEDLE
    assert request.needle is None


def test_a_chinese_question_is_introduced_in_chinese() -> None:
    needle = Needle(key="订单号", value="20391", question="订单号是什么？", depth=0.1)
    probe = probe_request(chat(user("订单号为20391。\n\n请总结。")), needle, max_tokens=9, extra_body={})
    assert probe.messages[0].text.endswith("请总结。\n\n现在只回答这个问题：订单号是什么？")


@pytest.mark.parametrize(
    "last",
    [
        {"role": "assistant", "content": "done"},
        {"role": "tool", "tool_call_id": "1", "content": "42"},
    ],
)
def test_after_an_assistant_or_tool_message_it_is_a_new_user_turn(last: dict[str, Any]) -> None:
    probe = probed(chat(user(CONTEXT), last))
    assert probe.body["messages"][:2] == [user(CONTEXT), last]
    assert probe.body["messages"][2] == user("What is the magic number?")


def test_content_parts_get_one_more_part() -> None:
    parts = [{"type": "text", "text": CONTEXT}]
    probe = probed(chat(user(parts)))
    content = probe.body["messages"][0]["content"]
    assert content == [
        *parts,
        {"type": "text", "text": "\n\nNow answer only this: What is the magic number?"},
    ]


def test_an_empty_user_message_becomes_the_question() -> None:
    assert probed(chat(user(None))).messages == (Message(role="user", text="What is the magic number?"),)


def test_everything_that_shapes_an_answer_is_dropped_and_the_probe_is_greedy() -> None:
    shaping = {
        "response_format": {"type": "json_object"},
        "structured_outputs": {"json": {}},
        "guided_json": {"type": "object"},
        "stop": ["\n"],
        "n": 3,
        "logprobs": True,
        "top_logprobs": 2,
        "temperature": 1.3,
        "top_p": 0.5,
        "seed": 4,
        "presence_penalty": 1,
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_completion_tokens": 4000,
        "min_tokens": 10,
        "ignore_eos": True,
        "user": "alice",
    }
    probe = probed(chat(user(CONTEXT), **shaping, chat_template_kwargs={"a": 1}))
    assert set(probe.body) == {
        "model",
        "messages",
        "temperature",
        "max_completion_tokens",
        "chat_template_kwargs",
    }
    assert probe.body["temperature"] == 0
    assert probe.max_tokens == 64
    assert (probe.stream, probe.format, probe.schema, probe.constrained) == (False, Format.TEXT, None, False)


def test_tools_stay_in_the_prompt_and_may_not_be_called() -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]
    probe = probed(chat(user(CONTEXT), tools=tools, tool_choice="required"))
    assert probe.body["tools"] == tools
    assert (probe.body["tool_choice"], probe.tool_choice) == ("none", "none")
    assert "tool_choice" not in probed(chat(user(CONTEXT))).body


def test_the_extra_body_has_the_last_word_and_merges_objects() -> None:
    request = chat(user(CONTEXT), chat_template_kwargs={"a": 1})
    probe = probed(request, chat_template_kwargs={"enable_thinking": False}, max_tokens=1024, top_k=1)
    assert probe.body["chat_template_kwargs"] == {"a": 1, "enable_thinking": False}
    assert (probe.body["max_tokens"], probe.body["top_k"]) == (1024, 1)


def test_a_completion_is_asked_in_its_prompt() -> None:
    probe = probed(captured("/v1/completions", prompt=[CONTEXT, "other"], echo=True))
    assert probe.body["prompt"] == CONTEXT + "\n\nQuestion: What is the magic number?\nAnswer:"
    assert "echo" not in probe.body
    assert probed(captured("/v1/completions", prompt=CONTEXT)).body["prompt"] == probe.body["prompt"]


def test_token_ids_cannot_be_asked() -> None:
    with pytest.raises(NotARequest, match="token ids"):
        probed(captured("/v1/completions", prompt=[1, 2, 3]))


def test_responses_are_asked_in_their_input() -> None:
    one = probed(captured("/v1/responses", input=CONTEXT, max_output_tokens=9))
    assert one.body["input"] == CONTEXT + "\n\nNow answer only this: What is the magic number?"
    assert (one.body["max_output_tokens"], one.body["store"]) == (64, False)
    turns = [user([{"type": "input_text", "text": CONTEXT}])]
    text = {"format": {"type": "json_object"}, "other": 1}
    two = probed(captured("/v1/responses", input=turns, text=text))
    assert two.body["input"][0]["content"][-1] == {
        "type": "input_text",
        "text": "\n\nNow answer only this: What is the magic number?",
    }
    assert two.body["text"] == {"other": 1}
    three = probed(captured("/v1/responses", input=[*turns, {"type": "reasoning", "summary": []}]))
    assert three.body["input"][-1] == user("What is the magic number?")


def test_messages_are_asked_like_a_chat_without_calling_tools() -> None:
    request = captured(
        "/v1/messages",
        system="be brief",
        messages=[user(CONTEXT)],
        tools=[{"name": "f"}],
        tool_choice={"type": "any"},
        thinking={"type": "enabled", "budget_tokens": 2000},
        stop_sequences=["x"],
        max_tokens=9000,
    )
    probe = probed(request)
    assert probe.body["tool_choice"] == {"type": "none"}
    assert not {"thinking", "stop_sequences"} & set(probe.body)
    assert (probe.max_tokens, probe.tool_choice) == (64, "none")
    assert probe.messages[1].text == CONTEXT + "\n\nNow answer only this: What is the magic number?"


TOOLS = [{"type": "function", "name": "f", "function": {"name": "f", "parameters": {"type": "object"}}}]


@pytest.mark.parametrize(
    ("path", "prompt_key", "body"),
    [
        (
            "/v1/chat/completions",
            "messages",
            {"messages": [user("Ünïcode\r\n 前"), user(CONTEXT)], "tools": TOOLS},
        ),
        ("/v1/chat/completions", "messages", {"messages": [user([{"type": "text", "text": CONTEXT}])]}),
        (
            "/v1/chat/completions",
            "messages",
            {"messages": [user(CONTEXT), {"role": "assistant", "content": "", "tool_calls": []}]},
        ),
        ("/v1/completions", "prompt", {"prompt": CONTEXT}),
        ("/v1/responses", "input", {"input": CONTEXT, "instructions": "be brief", "tools": TOOLS}),
        ("/v1/responses", "input", {"input": [user(CONTEXT)], "instructions": "be brief"}),
        (
            "/v1/messages",
            "messages",
            {"messages": [user(CONTEXT)], "system": "be brief", "max_tokens": 9, "tools": TOOLS},
        ),
    ],
)
def test_the_captured_prompt_stays_byte_for_byte(path: str, prompt_key: str, body: dict[str, Any]) -> None:
    request = captured(path, **body)
    probe = probed(request)
    for key in ("system", "instructions", "tools"):
        assert json.dumps(probe.body.get(key)) == json.dumps(request.body.get(key))
    before, after = (json.dumps(each.body[prompt_key]) for each in (request, probe))
    # all of it but what closes its last string, list and object
    assert after.startswith(before.rstrip('"]}'))
    assert len(after) > len(before)
    texts = [message.text for message in request.messages]
    asked = [message.text for message in probe.messages]
    assert asked[: len(texts) - 1] == texts[:-1]
    assert asked[len(texts) - 1].startswith(texts[-1])
