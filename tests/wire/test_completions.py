"""Completions of a bare prompt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from evaluators.exchange import Answer, Fault, FaultKind, Format, Outcome
from service.wire.completions import read_request
from service.wire.shapes import WrongShape

Read = Callable[..., Outcome]
PATH = "/v1/completions"


def test_a_prompt_is_one_user_message() -> None:
    request = read_request({"model": "m", "prompt": "once", "max_tokens": 5, "stream": True})
    assert [(m.role, m.text) for m in request.messages] == [("user", "once")]
    assert (request.max_tokens, request.stream, request.tool_choice) == (5, True, "none")


def test_of_several_prompts_the_first_is_the_request() -> None:
    assert read_request({"model": "m", "prompt": ["a", "b"]}).messages[0].text == "a"


def test_token_ids_have_no_text_but_a_name() -> None:
    one, two = (read_request({"model": "m", "prompt": p}).messages[0] for p in ([1, 2], [[1, 2], [3]]))
    assert one.text == ""
    assert one.media == two.media
    assert one != read_request({"model": "m", "prompt": [1, 3]}).messages[0]


def test_a_schema_counts_unless_the_answer_repeats_its_prompt() -> None:
    body = {"model": "m", "prompt": "x", "guided_json": {"type": "object"}}
    assert read_request(body).format is Format.JSON_SCHEMA
    assert read_request({**body, "echo": True}).format is Format.TEXT


@pytest.mark.parametrize("prompt", [None, [], 3, {}, [None], [[]]])
def test_no_prompt_is_refused(prompt: Any) -> None:
    with pytest.raises(WrongShape):
        read_request({"model": "m", "prompt": prompt})


def test_streamed_and_unstreamed_text_are_equal(read_stream: Read, read_whole: Read) -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 2}
    streamed = read_stream(
        {"choices": [{"index": 1, "text": "x"}]},
        {"choices": [{"index": 0, "text": "<think>h</think>a"}]},
        {"choices": [{"index": 0, "text": "b", "finish_reason": "stop"}]},
        {"choices": [], "usage": usage},
        path=PATH,
    )
    body = {
        "choices": [{"index": 0, "text": "<think>h</think>ab", "finish_reason": "stop"}],
        "usage": usage,
    }
    assert streamed == read_whole(body, path=PATH)
    assert streamed == Answer(
        text="ab", reasoning="h", finish_reason="stop", prompt_tokens=1, completion_tokens=2
    )


def test_no_choice_is_unreadable_or_cut_off(read_stream: Read, read_whole: Read) -> None:
    whole = read_whole({"choices": []}, path=PATH)
    assert isinstance(whole, Fault)
    assert whole.kind is FaultKind.UNREADABLE
    done = read_stream({"choices": []}, path=PATH)
    assert isinstance(done, Fault)
    assert done.kind is FaultKind.UNREADABLE
    broken = read_stream({"choices": [{"text": "a"}]}, path=PATH, done=False)
    assert isinstance(broken, Fault)
    assert broken.kind is FaultKind.CUT_OFF


def test_choices_without_an_index_are_choices_of_their_own(read_whole: Read) -> None:
    body = {"choices": [{"text": "one", "finish_reason": "stop"}, {"text": "two", "finish_reason": "stop"}]}
    assert read_whole(body, path=PATH) == Answer(text="one", finish_reason="stop")


def test_of_two_choices_of_one_index_the_first_is_read_in_a_whole_body(read_whole: Read) -> None:
    body = {"choices": [{"index": 0, "text": "one", "finish_reason": "stop"}, {"index": 0, "text": "two"}]}
    assert read_whole(body, path=PATH) == Answer(text="one", finish_reason="stop")
