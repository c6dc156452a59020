"""What is asked in a pre-screen."""

from __future__ import annotations

import json

import pytest

from evaluators.exchange import Endpoint
from service.prescreen.texts import OWN, UnusableTexts, own_requests, read_requests


def test_there_are_questions_of_our_own_in_both_languages() -> None:
    found = own_requests()
    assert len(found) == len(OWN) == 12
    assert sum(any("\u4e00" <= char <= "\u9fff" for char in each.messages[0].text) for each in found) == 6


def test_a_file_has_one_body_a_line_and_may_name_the_path() -> None:
    lines = [{"messages": [{"role": "user", "content": "a"}]}, {"path": "/v1/completions", "prompt": "b"}]
    found = read_requests("\n\n".join(map(json.dumps, lines)), "f")
    assert [each.endpoint for each in found] == [Endpoint.CHAT_COMPLETIONS, Endpoint.COMPLETIONS]
    assert "path" not in found[1].body


def test_a_text_may_hold_what_ends_lines_elsewhere() -> None:
    body = {"messages": [{"role": "user", "content": "a\u2028b\u0085c"}]}
    found = read_requests(json.dumps(body, ensure_ascii=False) + "\r\n", "f")
    assert [each.messages[0].text for each in found] == ["a\u2028b\u0085c"]


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ("", "f: no request in it"),
        ("{}\n{", "line 1: not a request"),
        ('{"messages": [{"role": "user", "content": "a"}]}\n{', "line 2: not JSON"),
        pytest.param("[" * 200_000, "line 1: not JSON", id="deep"),
        ("5", "line 1: a request's body is an object"),
        ('{"path": "/v1/x", "prompt": "b"}', "generates nothing"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(lines: str, why: str) -> None:
    with pytest.raises(UnusableTexts, match=why):
        read_requests(lines, "f")
