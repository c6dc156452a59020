"""What is sent so that an engine tells how likely given words are, and what is read of its answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaluators.exchange import Endpoint, Request
from service.prescreen.forcing import (
    LONGEST_ANSWER,
    CannotForce,
    Method,
    asking_body,
    forcing_bodies,
    method_of,
    read_forced,
)
from service.prescreen.surprise import Forced
from service.wire import parse_request


def chat(**fields: Any) -> Request:
    body = {"model": "c", "messages": [{"role": "user", "content": "hi"}], **fields}
    return parse_request(Endpoint.CHAT_COMPLETIONS, json.dumps(body).encode())


def bare(prompt: str = "Once ", **fields: Any) -> Request:
    return parse_request(
        Endpoint.COMPLETIONS, json.dumps({"model": "c", "prompt": prompt, **fields}).encode()
    )


@pytest.mark.parametrize(
    ("engine", "endpoint", "method"),
    [
        ("vllm", Endpoint.CHAT_COMPLETIONS, Method.PROMPT_LOGPROBS),
        ("vllm", Endpoint.COMPLETIONS, Method.PROMPT_LOGPROBS),
        ("sglang", Endpoint.COMPLETIONS, Method.ECHO),
        ("llama.cpp", Endpoint.CHAT_COMPLETIONS, Method.GRAMMAR),
        ("llama.cpp", Endpoint.COMPLETIONS, Method.GRAMMAR),
        (None, Endpoint.COMPLETIONS, Method.ECHO),
        (None, Endpoint.CHAT_COMPLETIONS, Method.PROMPT_LOGPROBS),
    ],
)
def test_each_engine_is_asked_as_it_can_be(engine: str | None, endpoint: Endpoint, method: Method) -> None:
    assert method_of(engine, endpoint) is method


@pytest.mark.parametrize(
    ("engine", "endpoint"), [("sglang", Endpoint.CHAT_COMPLETIONS), ("vllm", Endpoint.MESSAGES)]
)
def test_where_there_is_no_way_it_says_so(engine: str, endpoint: Endpoint) -> None:
    with pytest.raises(CannotForce):
        method_of(engine, endpoint)


def test_the_baseline_is_asked_greedily_and_for_plain_text() -> None:
    request = chat(
        stream=True,
        temperature=0.9,
        user="u",
        response_format={"type": "json_object"},
        seed=1,
        top_logprobs=2,
        stop_token_ids=[5],
        allowed_token_ids=[7],
        use_beam_search=True,
    )
    assert asking_body(request, model="m", max_tokens=7) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 7,
        "temperature": 0,
    }


def test_a_chat_of_vllm_ends_with_the_answer_and_is_measured_without_it_first() -> None:
    short, long = forcing_bodies(Method.PROMPT_LOGPROBS, chat(), "The sea.", model="m")
    assert "prompt_logprobs" not in short
    assert long["messages"][-1] == {"role": "assistant", "content": "The sea."}
    assert (long["prompt_logprobs"], long["continue_final_message"], long["add_generation_prompt"]) == (
        0,
        True,
        False,
    )
    assert long["max_tokens"] == 1


def test_a_bare_prompt_goes_on_with_the_answer() -> None:
    (echo,) = forcing_bodies(Method.ECHO, bare(), "upon a time", model="m")
    assert (echo["prompt"], echo["echo"], echo["logprobs"]) == ("Once upon a time", True, 1)
    _, long = forcing_bodies(Method.PROMPT_LOGPROBS, bare(), "upon a time", model="m")
    assert (long["prompt"], long["prompt_logprobs"]) == ("Once upon a time", 0)


def test_a_grammar_allows_the_answer_alone() -> None:
    (body,) = forcing_bodies(Method.GRAMMAR, chat(), 'a "b"\\\n\u00e9\x01', model="m")
    assert body["grammar"] == 'root ::= "a \\"b\\"\\\\\\n\u00e9\\x01"'
    assert body["logprobs"] is True
    assert body["max_tokens"] == 10 + 8


@pytest.mark.parametrize("answer", ["", " \n", "a" * (LONGEST_ANSWER + 1)])
def test_answers_that_cannot_be_forced_are_named(answer: str) -> None:
    with pytest.raises(CannotForce):
        forcing_bodies(Method.GRAMMAR, chat(), answer, model="m")
    with pytest.raises(CannotForce, match="surrogate"):
        forcing_bodies(Method.GRAMMAR, chat(), "\ud83d", model="m")


def prompt_logprobs(*entries: tuple[str, float | None]) -> list[Any]:
    return [
        None,
        *({str(at): {"logprob": p, "rank": 1, "decoded_token": t}} for at, (t, p) in enumerate(entries)),
    ]


def test_what_stands_behind_the_prompt_is_the_answer() -> None:
    told = prompt_logprobs(("hi", -9.0), ("The", -1.0), (" sea.", -0.5))
    said = [{"usage": {"prompt_tokens": 2}}, {"prompt_logprobs": told}]
    found = read_forced(Method.PROMPT_LOGPROBS, chat(), "The sea.", said)
    assert found == Forced(nats=1.5, tokens=2)
    within = [said[0], {"choices": [{"prompt_logprobs": told}]}]
    assert read_forced(Method.PROMPT_LOGPROBS, bare(), "The sea.", within) == found


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ([{}, {}], "gives no prompt_logprobs"),
        (
            [{"usage": {"prompt_tokens": 1}}, {"prompt_logprobs": prompt_logprobs(("<think>", -1.0))}],
            "template",
        ),
        (
            [{"usage": {"prompt_tokens": 9}}, {"prompt_logprobs": prompt_logprobs(("a", -1.0))}],
            "none of the answer's",
        ),
        (["text", 5], "gives no prompt_logprobs"),
    ],
)
def test_what_is_not_the_answer_is_not_measured(said: list[Any], why: str) -> None:
    with pytest.raises(CannotForce, match=why):
        read_forced(Method.PROMPT_LOGPROBS, chat(), "The sea.", said)


def test_of_an_echo_the_tokens_behind_the_prompt_count_and_what_was_written_does_not() -> None:
    told = {
        "tokens": ["On", "ce ", "upon", " it", "!"],
        "token_logprobs": [None, -3.0, -1.0, -2.0, -7.0],
        "text_offset": [0, 2, 5, 9, 12],
    }
    said = [{"choices": [{"text": "Once upon it!", "logprobs": told}]}]
    assert read_forced(Method.ECHO, bare(), "upon it", said) == Forced(nats=3.0, tokens=2)
    del told["text_offset"]
    assert read_forced(Method.ECHO, bare(), "upon it", said) == Forced(nats=3.0, tokens=2)
    with pytest.raises(CannotForce, match="does not echo"):
        read_forced(Method.ECHO, bare(), "upon it", [{"choices": [{"logprobs": {"content": []}}]}])


def written(text: str, *entries: tuple[str, float | None]) -> list[Any]:
    content = [{"token": token, "logprob": value} for token, value in entries]
    return [{"choices": [{"message": {"content": text}, "logprobs": {"content": content}}]}]


def test_of_a_grammar_each_token_counts_if_it_wrote_the_answer() -> None:
    said = written("The sea", ("The", -1.0), (" sea", -0.25), ("", -4.0))
    assert read_forced(Method.GRAMMAR, chat(), "The sea", said) == Forced(nats=1.25, tokens=2)
    with pytest.raises(CannotForce, match="does not write"):
        read_forced(Method.GRAMMAR, chat(), "The sea", written("The", ("The", -1.0)))


def test_numbers_that_are_none_are_counted_apart() -> None:
    said = written("The sea", ("The", None), (" sea", -0.25))
    assert read_forced(Method.GRAMMAR, chat(), "The sea", said) == Forced(nats=0.25, tokens=1, broken=1)
