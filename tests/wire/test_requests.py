"""Captured request bodies become requests, or a reason why not."""

from __future__ import annotations

import contextlib
import gzip
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.exchange import Endpoint
from service.wire import NotARequest, endpoint_of, parse_request

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


@pytest.mark.parametrize(
    ("path", "body", "endpoint"),
    [
        ("/v1/chat/completions", CHAT, Endpoint.CHAT_COMPLETIONS),
        ("/v1/chat/completions?x=1", CHAT, Endpoint.CHAT_COMPLETIONS),
        ("/v1/completions/", {"model": "m", "prompt": "hi"}, Endpoint.COMPLETIONS),
        ("/v1/responses", {"model": "m", "input": "hi"}, Endpoint.RESPONSES),
        ("/v1/messages", {**CHAT, "max_tokens": 5}, Endpoint.MESSAGES),
    ],
)
def test_each_generating_path_has_its_dialect(path: str, body: dict[str, Any], endpoint: Endpoint) -> None:
    request = parse_request(path, json.dumps(body).encode())
    assert request.endpoint is endpoint
    assert request.model == "m"
    assert [message.text for message in request.messages] == ["hi"]
    assert request.body == body


def test_other_paths_generate_nothing() -> None:
    assert endpoint_of("/v1/embeddings") is None
    assert endpoint_of("") is None
    with pytest.raises(NotARequest, match="/v1/models generates nothing"):
        parse_request("/v1/models", b"{}")


def test_a_compressed_body_is_decoded() -> None:
    packed = gzip.compress(json.dumps(CHAT).encode())
    assert parse_request("/v1/chat/completions", packed, content_encoding="gzip").model == "m"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "body: Expecting value"),
        (b"{", "body: "),
        (b"[]", "body is an array, not an object"),
        (b"\xff", "not UTF-8 at byte 0"),
        (b'\xef\xbb\xbf{"model":"m"}', "byte order mark"),
        (b'{"model":"m","seed":NaN}', "NaN is not a JSON number"),
        (b'{"model":"m","messages":' + b"[" * 500, "nested deeper"),
        (b'{"messages":[{"role":"user","content":"hi"}]}', "model is missing"),
        (b'{"model":5,"messages":[{"role":"user","content":"hi"}]}', "model is a number, not a string"),
        (b'{"model":"m"}', "messages is missing or empty"),
    ],
)
def test_what_is_not_a_request_says_why(body: bytes, reason: str) -> None:
    with pytest.raises(NotARequest, match=reason):
        parse_request("/v1/chat/completions", body)


def test_bytes_that_do_not_decode_say_so() -> None:
    with pytest.raises(NotARequest, match="'br' is not supported"):
        parse_request("/v1/chat/completions", b"x", content_encoding="br")


@settings(deadline=None)
@given(
    st.one_of(
        st.binary(max_size=100),
        st.dictionaries(
            st.sampled_from(
                ["model", "messages", "input", "prompt", "tools", "tool_choice", "response_format"]
            ),
            st.recursive(
                st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
                lambda inner: st.one_of(
                    st.lists(inner, max_size=3),
                    st.dictionaries(
                        st.sampled_from(["role", "content", "type", "function", "name", "text", "schema"]),
                        inner,
                    ),
                ),
            ),
        ).map(lambda body: json.dumps(body).encode()),
    ),
    st.sampled_from(list(Endpoint)),
)
def test_no_bytes_raise_anything_else(body: bytes, path: str) -> None:
    with contextlib.suppress(NotARequest):
        assert parse_request(path, body).messages
