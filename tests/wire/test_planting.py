"""Sentences written into a captured prompt."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaluators.exchange import Request
from service.wire import NotARequest, parse_request
from service.wire.planting import plant

PARAGRAPHS = [f"Paragraph {n} says little, and says it slowly." for n in range(20)]
CONTEXT = "\n\n".join([*PARAGRAPHS, "What does it say?"])


def captured(path: str, **body: Any) -> Request:
    return parse_request(path, json.dumps({"model": "m", **body}).encode())


def chat(*turns: tuple[str, Any]) -> Request:
    return captured(
        "/v1/chat/completions", messages=[{"role": role, "content": content} for role, content in turns]
    )


@pytest.mark.parametrize(
    "request_",
    [
        chat(("user", CONTEXT)),
        chat(("user", [{"type": "text", "text": CONTEXT}])),
        chat(("system", "\n\n".join(PARAGRAPHS)), ("user", "What does it say?")),
        captured("/v1/completions", prompt=CONTEXT),
        captured("/v1/completions", prompt=[CONTEXT]),
        captured("/v1/responses", input=CONTEXT),
        captured("/v1/responses", input=[{"role": "user", "content": CONTEXT}]),
        captured(
            "/v1/messages", system="\n\n".join(PARAGRAPHS), messages=[{"role": "user", "content": "What?"}]
        ),
    ],
)
def test_every_sentence_stands_at_its_depth_and_all_else_as_it_was(request_: Request) -> None:
    sentences = [(0.1, "One is K1."), (0.9, "Two is K2."), (0.5, "Three is K3.")]
    planted = plant(request_, sentences)
    whole = "\n\n".join(message.text for message in planted.messages)
    for depth, sentence in sentences:
        assert whole.count(f"{sentence}\n\n") == 1
        assert abs(whole.index(sentence) / len(whole) - depth) < 0.1
    left = [message.text for message in planted.messages]
    for _, sentence in sentences:
        left = [text.replace(f"{sentence}\n\n", "") for text in left]
    assert left == [message.text for message in request_.messages]
    assert "K1" not in json.dumps(request_.body)


@pytest.mark.parametrize(
    "text", ["a line\nand another\n" * 9 + "\nWhat?", "One. Two. Three. Four. Five. Six.\n\nWhat?"]
)
def test_without_paragraphs_it_stands_between_lines_or_sentences(text: str) -> None:
    planted = plant(chat(("user", text)), [(0.5, "It is K1.")])
    (message,) = planted.messages
    assert "It is K1. " in message.text or "\nIt is K1.\n" in message.text


def test_neither_the_closing_question_nor_what_a_model_or_a_tool_wrote_is_touched() -> None:
    request = chat(("user", CONTEXT), ("assistant", CONTEXT), ("tool", CONTEXT), ("user", CONTEXT))
    planted = plant(request, [(depth / 10, f"It is K{depth}.") for depth in range(11)])
    assert [message.text == CONTEXT for message in planted.messages] == [False, True, True, False]
    assert all(message.text.endswith("\n\nWhat does it say?") for message in planted.messages)


@pytest.mark.parametrize(
    "request_", [chat(("user", "What is it? And why? I ask.")), captured("/v1/completions", prompt=[1, 2])]
)
def test_where_there_is_no_place_it_says_so(request_: Request) -> None:
    with pytest.raises(NotARequest, match="no place"):
        plant(request_, [(0.5, "It is K1.")])
