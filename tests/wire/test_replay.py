"""The body of a replay."""

from __future__ import annotations

import json
from typing import Any

import pytest

from service.wire import parse_request, replay_body


def replayed(path: str, body: dict[str, Any]) -> dict[str, Any]:
    request = parse_request(path, json.dumps(body).encode())
    found: dict[str, Any] = json.loads(replay_body(request, model="m-w8a8"))
    return found


BODY = {
    "model": "m",
    "messages": [{"role": "user", "content": "hi 你好"}],
    "stream": True,
    "stream_options": {"include_usage": True},
    "temperature": 0.7,
    "seed": 12345678901234567890,
    "response_format": {"type": "json_object"},
    "user": "alice",
    "metadata": {"conversation_id": "c"},
    "safety_identifier": "s",
    "background": True,
    "chat_template_kwargs": {"enable_thinking": False},
}


def test_the_model_is_the_tier_s_and_nothing_of_the_client_s_is_left() -> None:
    expected = {
        k: v for k, v in BODY.items() if k not in ("user", "metadata", "safety_identifier", "background")
    }
    assert replayed("/v1/chat/completions", BODY) == {**expected, "model": "m-w8a8"}


def test_keys_keep_their_order() -> None:
    assert list(replayed("/v1/chat/completions", BODY))[:4] == [
        "model",
        "messages",
        "stream",
        "stream_options",
    ]


@pytest.mark.parametrize(
    ("path", "body", "store"),
    [
        ("/v1/chat/completions", {"store": True}, False),
        ("/v1/chat/completions", {}, None),
        ("/v1/responses", {"input": "x"}, False),
        ("/v1/responses", {"input": "x", "store": True}, False),
        ("/v1/messages", {}, None),
    ],
)
def test_nothing_is_stored_where_the_dialect_stores(
    path: str, body: dict[str, Any], store: bool | None
) -> None:
    messages = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    assert replayed(path, {**messages, **body}).get("store") is store


def test_lone_surrogates_survive_as_they_came() -> None:
    body = b'{"model":"m","messages":[{"role":"user","content":"\\ud83d"}]}'
    assert b"\\ud83d" in replay_body(parse_request("/v1/chat/completions", body), model="m")
