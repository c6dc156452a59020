"""Conversations, and requests that only their own server can answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaluators.exchange import Request
from service.wire import explicit_conversation, has_remote_media, is_stateful, message_chain, parse_request


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def chat(*messages: Any, **more: Any) -> Request:
    body = {"model": "m", "messages": list(messages), **more}
    return parse_request("/v1/chat/completions", json.dumps(body).encode())


def responses(**body: Any) -> Request:
    return parse_request("/v1/responses", json.dumps({"model": "m", "input": "hi", **body}).encode())


def anthropic(*messages: Any, **more: Any) -> Request:
    body = {"model": "m", "messages": list(messages), "max_tokens": 5, **more}
    return parse_request("/v1/messages", json.dumps(body).encode())


def is_prefix(first: Request, second: Request) -> bool:
    return message_chain(first)[-1] in message_chain(second)


def test_a_next_turn_holds_the_chain_of_the_turn_before() -> None:
    first = chat(user("a"))
    second = chat(user("a"), assistant("b"), user("c"))
    assert is_prefix(first, second)
    assert not is_prefix(second, first)
    assert message_chain(second)[:1] == message_chain(first)
    assert all(len(link) == 64 for link in message_chain(second))


def test_an_equal_turn_behind_another_beginning_is_another_link() -> None:
    assert not is_prefix(chat(user("a")), chat(user("x"), assistant("y"), user("a")))


def test_requests_that_share_few_shot_turns_are_not_one_conversation() -> None:
    shots = (user("2+2"), assistant("4"))
    assert not is_prefix(chat(*shots, user("3+3")), chat(*shots, user("5+5")))


@pytest.mark.parametrize("role", ["system", "developer"])
def test_instructions_sent_alone_begin_no_conversation_that_has_them_too(role: str) -> None:
    told = {"role": role, "content": "Be brief."}
    warming, talk, later = chat(told), chat(told, user("a")), chat(told, user("a"), assistant("b"), user("c"))
    assert not is_prefix(warming, talk)
    assert is_prefix(warming, warming)
    assert is_prefix(talk, later)
    assert message_chain(talk) != message_chain(chat(user("a")))
    assert not is_prefix(anthropic(user("a"), system="Be brief."), anthropic(user("b"), system="Be brief."))


def test_a_string_and_its_text_part_are_the_same_turn() -> None:
    assert message_chain(chat(user("a"))) == message_chain(chat(user([{"type": "text", "text": "a"}])))


@pytest.mark.parametrize(
    "other",
    [
        assistant("a"),
        user("b"),
        user([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "data:,x"}}]),
        assistant(
            None, tool_calls=[{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
        ),
    ],
)
def test_role_text_media_and_calls_all_tell_turns_apart(other: Any) -> None:
    assert message_chain(chat(user("a"))) != message_chain(chat(other))


def test_a_lone_surrogate_has_a_link() -> None:
    assert message_chain(chat(user("\ud83d"))) != message_chain(chat(user("\ud83e")))


def test_fields_cannot_run_into_each_other() -> None:
    assert message_chain(chat(user("ab"))) != message_chain(chat({"role": "usera", "content": "b"}))


@pytest.mark.parametrize(
    ("request_", "id"),
    [
        (chat(user("a")), None),
        (chat(user("a"), metadata={"conversation_id": "c1", "session_id": "s"}), "c1"),
        (chat(user("a"), metadata={"session_id": 7}), "7"),
        (chat(user("a"), metadata={"conversation_id": "", "thread_id": "t"}), "t"),
        (chat(user("a"), metadata={"other": "x"}), None),
        (chat(user("a"), metadata="x"), None),
        (chat(user("a"), conversation="c"), None),
        (responses(conversation="c"), "c"),
        (responses(conversation={"id": "c"}), "c"),
        (responses(previous_response_id="r"), "r"),
        (responses(), None),
    ],
)
def test_an_id_that_the_client_gives_is_found(request_: Request, id: str | None) -> None:
    assert explicit_conversation(request_) == id


PART = {"type": "input_file", "file_id": "f"}
MESSAGE_FILE = {"type": "document", "source": {"type": "file", "file_id": "f"}}


@pytest.mark.parametrize(
    ("request_", "stateful"),
    [
        (chat(user("a"), store=True), False),
        (chat(user([{"type": "file", "file": {"file_id": "f"}}])), True),
        (chat(user([{"type": "file", "file": {"file_data": "data:,x"}}])), False),
        (chat(user("a"), conversation="kept by nobody here"), False),
        (responses(), False),
        (responses(previous_response_id="r"), True),
        (responses(conversation="c"), True),
        (responses(prompt={"id": "p"}), True),
        (responses(background=True), False),
        (responses(input=[user([PART])]), True),
        (responses(input=[{"type": "item_reference", "id": "x"}, user("a")]), True),
        (responses(tools=[{"type": "web_search"}]), True),
        (responses(tools=[{"type": "function", "name": "f"}, {"type": "local_shell"}]), False),
        (anthropic(user("a"), container="c"), True),
        (anthropic(user("a"), mcp_servers=[{"url": "x"}]), True),
        (anthropic(user([MESSAGE_FILE])), True),
        (anthropic(user("a"), tools=[{"type": "web_search_20250305", "name": "web_search"}]), True),
        (anthropic(user("a"), tools=[{"name": "f"}, {"type": "bash_20250124", "name": "bash"}]), False),
    ],
)
def test_requests_that_lean_on_their_server_are_stateful(request_: Request, stateful: bool) -> None:
    assert is_stateful(request_) is stateful


def image(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


RESULT = {
    "type": "tool_result",
    "tool_use_id": "1",
    "content": [{"type": "image", "source": {"type": "url"}}],
}


@pytest.mark.parametrize(
    ("request_", "remote"),
    [
        (chat(user("see https://example.com/a.png")), False),
        (chat(user([image("data:image/png;base64,AA")])), False),
        (chat(user([image("https://example.com/a.png")])), True),
        (chat(user([{"type": "video_url", "video_url": {"url": "file:///a.mp4"}}])), True),
        (chat(user([{"type": "audio_url", "audio_url": {"url": "s3://a"}}])), True),
        (chat(user([{"type": "input_audio", "input_audio": {"data": "AA"}}])), False),
        (responses(input=[user([{"type": "input_image", "image_url": "https://x/y"}])]), True),
        (responses(input=[user([{"type": "input_file", "file_url": "https://x/y"}])]), True),
        (responses(input=[user([{"type": "input_image", "image_url": "DATA:image/png,x"}])]), False),
        (anthropic(user([{"type": "image", "source": {"type": "url", "url": "https://x/y"}}])), True),
        (anthropic(user([{"type": "image", "source": {"type": "base64", "data": "AA"}}])), False),
        (anthropic(user([{**RESULT, "content": [{"source": {"type": "url", "url": "http://x"}}]}])), True),
        (
            anthropic(
                user("a"), assistant([{"type": "tool_use", "name": "f", "input": {"image_url": "http://x"}}])
            ),
            False,
        ),
    ],
)
def test_media_that_must_be_fetched_are_remote(request_: Request, remote: bool) -> None:
    assert has_remote_media(request_) is remote
