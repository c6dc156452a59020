"""Damage that only the reader of a text can find, in whole answers and in streams."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from evaluators.refusal_rules import Stance, read_stance
from service.drill.damage import damaged, rewrite
from service.drill.defects import Defect
from service.wire import parse_answer

RECORD = '{"name": "Anna Smith", "city": "Berlin", "amount": 42}'


@pytest.mark.parametrize("seed", range(20))
def test_damaged_json_is_no_json_or_lacks_a_field(seed: int) -> None:
    text = damaged(RECORD, Defect.JSON, Random(seed))
    try:
        found = json.loads(text)
    except ValueError:
        assert text != RECORD
        assert RECORD.startswith(text)
    else:
        assert set(found) != {"name", "city", "amount"}


def test_both_ways_of_damaging_json_occur() -> None:
    ways = {damaged(RECORD, Defect.JSON, Random(seed)).startswith('{"name_"') for seed in range(20)}
    assert ways == {True, False}


@pytest.mark.parametrize("record", ["[1, 2, 3]", '{"a": 1}', "{}", '{"a": {"b": [1, {"c": 2}]}}', "7"])
@pytest.mark.parametrize("seed", range(8))
def test_no_json_comes_through_as_it_was(record: str, seed: int) -> None:
    text = damaged(record, Defect.JSON, Random(seed))
    assert text != record or record == "7"


@pytest.mark.parametrize("seed", range(20))
def test_a_forgotten_fact_is_gone(seed: int) -> None:
    text = damaged("The door code is 4821.", Defect.RECALL, Random(seed))
    assert "4821" not in text
    assert read_stance(text).stance is Stance.COMPLY, "forgetting is no refusal: another criterion's"


@pytest.mark.parametrize("seed", range(20))
def test_an_inserted_refusal_reads_as_one(seed: int) -> None:
    assert read_stance(damaged("Sure, boil it.", Defect.REFUSAL, Random(seed))).stance is Stance.FULL


@pytest.mark.parametrize("defect", Defect)
def test_nothing_written_stays_nothing(defect: Defect) -> None:
    assert damaged("", defect, Random(1)) == ""


def stream(*texts: str, ending: str = "\n\n") -> bytes:
    def event(choices: list[dict[str, Any]], **more: Any) -> str:
        chunk = {"id": "1", "object": "chat.completion.chunk", "choices": choices, **more}
        return f"data: {json.dumps(chunk, ensure_ascii=False)}{ending}"

    deltas = [{"role": "assistant", "content": ""}, *({"content": text} for text in texts)]
    events = [event([{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
    events.append(event([{"index": 0, "delta": {}, "finish_reason": "stop"}]))
    events.append(event([], usage={"prompt_tokens": 5, "completion_tokens": 7}))
    return ("".join(events) + f"data: [DONE]{ending}").encode()


def read(body: bytes, content_type: str) -> Any:
    return parse_answer(
        "/v1/chat/completions",
        status=200,
        content_type=content_type,
        content_encoding="",
        body=body,
        complete=True,
    )


@pytest.mark.parametrize(
    "text", ["你好 👋🏽", "", "x", "a text that is far longer than all that was written before"]
)
@pytest.mark.parametrize("ending", ["\n\n", "\r\n\r\n"])
def test_a_stream_keeps_everything_but_its_text(text: str, ending: str) -> None:
    before = stream("Hel", "lo wor", "ld", ending=ending)
    after = rewrite(before, "text/event-stream; charset=utf-8", lambda whole: text)
    assert read(before, "text/event-stream").text == "Hello world"
    answer = read(after, "text/event-stream")
    assert answer.text == text
    assert (answer.finish_reason, answer.completion_tokens) == ("stop", 7)
    assert after.count(b"data:") == before.count(b"data:")
    assert after.endswith(f"data: [DONE]{ending}".encode())


def test_a_whole_answer_keeps_everything_but_its_text() -> None:
    message = {"role": "assistant", "content": "Hello", "reasoning_content": "hm"}
    before = {
        "id": "1",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2},
    }
    after = json.loads(rewrite(json.dumps(before).encode(), "application/json", str.upper))
    assert after["choices"][0]["message"]["content"] == "HELLO"
    after["choices"][0]["message"]["content"] = "Hello"
    assert after == before


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"not json", "application/json"),
        (b'{"choices": 3}', "application/json"),
        (b'{"choices": [{"message": null}]}', "application/json"),
        (b"\xff\xfe", "text/event-stream"),
        (b"data: {broken\n\n", "text/event-stream"),
        (b"", "text/event-stream"),
    ],
)
def test_what_is_no_chat_completion_passes_as_it_is(body: bytes, content_type: str) -> None:
    assert rewrite(body, content_type, str.upper) == body
