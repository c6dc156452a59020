"""Prompts of a wanted length: as long as an engine's own count says, and each another."""

from __future__ import annotations

import json

import pytest

from service.load.filler import FEW, MANY, Measure, body, marked, measure, requests, text
from service.wire import parse_request


def test_tokens_of_words_are_told_by_two_answers() -> None:
    # A template of 10 tokens, 1.5 tokens a word.
    found = measure(10 + FEW * 3 // 2, 10 + MANY * 3 // 2)
    assert (found.fixed, found.word) == (10, 1.5)
    assert found.words(2048) == round((2048 - 10) / 1.5)
    assert found.words(5) == 1, "no prompt is without a word"


def test_an_engine_that_counts_backwards_is_not_believed() -> None:
    with pytest.raises(ValueError, match="cannot be right"):
        measure(300, 300)
    with pytest.raises(ValueError, match="template"):
        Measure(fixed=-1.0)


def test_a_fixed_part_is_never_below_nothing() -> None:
    assert measure(FEW, 2 * MANY).fixed == 0.0


def test_texts_have_as_many_words_and_begin_unlike_one_another() -> None:
    one, other = text(50, seed="a:1"), text(50, seed="a:2")
    assert len(one.split()) == len(other.split()) == 50
    assert one.split()[0] != other.split()[0], "no prefix cache knows it"
    assert one == text(50, seed="a:1")
    assert len(text(1, seed="x").split()) == 1


def test_requests_ask_for_answers_of_one_length() -> None:
    made = list(requests(3, words=20, seed="cell", model="m", output_tokens=16, ignore_eos=True))
    told = [each.body for each in made]
    assert {(each["max_tokens"], each["ignore_eos"], each["temperature"]) for each in told} == {(16, True, 0)}
    assert len({json.dumps(each["messages"]) for each in told}) == 3
    plain = json.loads(body(20, seed="s", model="m", output_tokens=16, ignore_eos=False))
    assert "ignore_eos" not in plain


def test_captured_prompts_get_one_mark_a_cell_and_keep_what_they_share() -> None:
    asked = [
        {
            "model": "m",
            "messages": [{"role": "system", "content": "rules"}, {"role": "user", "content": each}],
        }
        for each in ("one", "two")
    ]
    made = [marked(parse_request("/v1/chat/completions", json.dumps(each).encode()), "c1") for each in asked]
    assert [each.body["messages"][0]["content"] for each in made] == ["c1 rules", "c1 rules"]  # type: ignore[index, call-overload]
    assert [each.body["messages"][1] for each in made] == [each["messages"][1] for each in asked]  # type: ignore[index, call-overload]


def test_what_has_no_text_to_mark_stays_as_it_is() -> None:
    parts = {"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]}
    request = parse_request("/v1/chat/completions", json.dumps(parts).encode())
    assert marked(request, "c1") is request
    plain = parse_request("/v1/completions", json.dumps({"model": "m", "prompt": "a"}).encode())
    assert marked(plain, "c1") is plain
