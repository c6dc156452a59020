"""OpenAI's batch files: every line a request, or named with the reason why it is none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from service.traces import BadLine
from service.wire import BatchLine, read_batch, write_batch_line


def line(**changes: Any) -> str:
    fields: dict[str, Any] = {
        "custom_id": "a",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
    }
    return json.dumps({key: each for key, each in {**fields, **changes}.items() if each != "left out"})


def test_lines_are_read_with_their_numbers_and_written_as_they_were() -> None:
    lines = [
        "\n",
        line(),
        "",
        line(
            custom_id="b",
            url="/v1/messages",
            body={"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "x"}]},
        ),
    ]
    found = list(read_batch(lines))
    assert [(each.line, each.custom_id) for each in found if isinstance(each, BatchLine)] == [
        (2, "a"),
        (4, "b"),
    ]
    first = found[0]
    assert isinstance(first, BatchLine)
    written = write_batch_line(custom_id="a", url=first.request.endpoint.value, body=first.request.body)
    assert json.loads(written) == json.loads(lines[1])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "this is not JSON"),
        ("[1, 2]", "this is an array, not an object"),
        (line(custom_id="left out"), "custom_id must be a string of 1 to 512 printable characters"),
        (line(custom_id=""), "custom_id must be a string of 1 to 512 printable characters"),
        (line(custom_id="a\0"), "custom_id must be a string of 1 to 512 printable characters"),
        (line(custom_id=7), "custom_id must be a string of 1 to 512 printable characters"),
        (line(method="GET"), "method must be POST, got 'GET'"),
        (line(url="/v1/embeddings"), "url must be one of /v1/chat/completions"),
        (line(url="left out"), "url must be one of"),
        (line(body="left out"), "body is null, not an object"),
        (line(body={"model": "m"}), "messages is missing or empty"),
        (line(body={"messages": [{"role": "user", "content": "hi"}]}), "model is missing"),
        (
            line(url="/v1/responses", body={"model": "m", "input": "x", "previous_response_id": "r"}),
            "it leans on what only its own server holds",
        ),
        (
            line(
                body={
                    "model": "m",
                    "messages": [
                        {
                            "role": "user",
                            "content": [{"type": "image_url", "image_url": {"url": "https://a/b.png"}}],
                        }
                    ],
                }
            ),
            "it refers to media elsewhere",
        ),
        (line().replace("hi", "\udce4"), "this is not UTF-8"),
        (line().replace("hi", "\\ud83d"), "a text holds half a character"),
        (line().replace('"hi"', '"hi", "\\udca9": 1'), "a text holds half a character"),
        (line().replace('"hi"', '"hi", "x": [1e999]'), "a number is beyond 1.8e308"),
        (line().replace('"hi"', f'"hi", "x": -{10**400}'), "a number is beyond 1.8e308"),
        *(
            (line(body={"model": "m", "messages": [{"role": "user", "content": "x"}], name: told}), name)
            for name in ("max_tokens", "max_completion_tokens")
            for told in (-1, 1.5, True, "9")
        ),
        (
            line(url="/v1/responses", body={"model": "m", "input": "x", "max_output_tokens": -5}),
            "max_output_tokens must be a whole number of at least 0, got -5",
        ),
        (line().replace('"hi"', "NaN"), "this is not JSON"),
    ],
)
def test_a_line_that_is_no_request_is_named_with_its_reason(text: str, reason: str) -> None:
    good, bad = read_batch([line(custom_id="good"), text])
    assert isinstance(good, BatchLine)
    assert isinstance(bad, BadLine)
    assert bad.line == 2
    assert reason in bad.reason


def test_a_custom_id_that_comes_twice_is_refused_the_second_time() -> None:
    found = list(read_batch([line(), line()]))
    assert str(found[1]) == "line 2: custom_id 'a' is that of line 1 as well"


def test_whole_characters_in_escapes_and_great_numbers_are_taken() -> None:
    (found,) = read_batch([line().replace('"hi"', '"\\ud83d\\ude00 1e999", "x": 1e308, "y": 1e-999')])
    assert isinstance(found, BatchLine)
    assert found.request.messages[0].text.startswith("\U0001f600")
