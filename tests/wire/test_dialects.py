"""The same content scores the same whichever way it came: four dialects, whole or streamed, in any split."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import evaluators
from evaluators.exchange import Answer, Endpoint, Needle, Outcome, Request, ToolCall
from evaluators.score import NotApplicable, Score, Unscored
from service.wire import parse_answer, parse_request
from service.wire.sse import EventParser
from tests.wire.dialects import DIALECTS, Asked, Dialect, to_json, written_as

TEXTS = (
    "",
    "Grüße 你好 🌏 end",
    '{"city": "Paris", "n": 3}',
    '```json\n{"city": "Paris"}\n```',
    "I'm sorry, but I can't help with that.",
    "The code is 4711-X.\u2028\u0085",
    '{"city": "🌏\\ud83d"}',
    '{"city": NaN}',
    "<think>let me see</think>4711-X",
    "lone \ud83d half",
)
ARGUMENTS = (
    {},
    {"city": "Paris"},
    {"city": "🌏", "n": 1.0, "deep": [[[]]]},
    {"city": 5},
    {"n": 10**400, "m": -(10**30)},
    {"": "\u2028\\", "x": None},
)
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}

texts = st.sampled_from(TEXTS) | st.text(max_size=30).filter(lambda text: "think>" not in text)
calls = st.lists(
    st.builds(
        lambda name, value, id: ToolCall(
            name=name, arguments=json.dumps(value, ensure_ascii=False, separators=(",", ":")), id=f"call_{id}"
        ),
        st.sampled_from(["weather", "search", "unknown"]),
        st.sampled_from(ARGUMENTS)
        | st.dictionaries(st.text(max_size=5), st.floats(-1e6, 1e6) | st.text(max_size=9)),
        st.integers(0, 10**6),
    ),
    max_size=3,
    unique_by=lambda call: call.id,
)
answers = st.builds(
    lambda text, thoughts, calls, refusal, tokens, cut: Answer(
        text=text,
        reasoning=thoughts,
        tool_calls=tuple(calls),
        finish_reason="length" if cut else "tool_calls" if calls else "stop",
        refusal=refusal,
        prompt_tokens=tokens,
        completion_tokens=tokens,
    ),
    texts,
    st.sampled_from(["", "", "hm, 你好\n"]),
    calls,
    st.sampled_from([None, None, None, "I can't do that 🌏."]),
    st.none() | st.integers(0, 10**6),
    st.integers(0, 9).map(lambda drawn: drawn == 0),
)
asked = st.builds(
    Asked,
    system=st.sampled_from(["Be brief.", "你好"]),
    question=st.sampled_from(["Weather?", "What is the code? 🌏"]),
    schema=st.sampled_from([None, None, SCHEMA]),
    tools=st.sampled_from(
        [(), (("weather", SCHEMA),), (("weather", SCHEMA), ("search", {"type": "object"}))]
    ),
    choice=st.sampled_from(["auto", "none", "required", "weather"]),
    called=st.none() | st.just(ToolCall(name="weather", arguments='{"city":"Paris"}', id="call_1")),
    limit=st.none() | st.integers(1, 10**6),
)
NEEDLE = Needle(key="code", value="4711-X", question="What is the code?", depth=0.5)


def read(dialect: Dialect, body: bytes, *, type: str) -> Outcome:
    return parse_answer(
        dialect.endpoint, status=200, content_type=type, content_encoding="", body=body, complete=True
    )


def scores(request: Request, outcome: Outcome) -> list[Score | Unscored | NotApplicable]:
    """What every evaluator makes of it, as a request and as a recall probe."""
    assert isinstance(outcome, Answer)
    return [
        evaluator.score(each, outcome)
        for each in (request, replace(request, needle=NEEDLE))
        for evaluator in evaluators.ALL
        if evaluator.applies(each)
    ]


@settings(max_examples=400, deadline=None)
@given(answers, asked, st.integers(0, 2**32))
def test_the_same_content_is_the_same_answer_and_scores_the_same(
    answer: Answer, asked: Asked, seed: int
) -> None:
    chance = Random(seed)
    found: dict[str, Outcome] = {}
    judged: dict[str, list[Score | Unscored | NotApplicable]] = {}
    for dialect in DIALECTS:
        if dialect.can_say(answer):
            request = parse_request(
                dialect.endpoint, json.dumps(written_as(dialect.endpoint, asked)).encode()
            )
            whole = to_json(dialect.whole(answer), chance)
            ways = {
                "whole": read(dialect, whole.encode(), type="application/json"),
                "streamed": read(dialect, dialect.stream(answer, chance), type="text/event-stream"),
            }
            for way, outcome in ways.items():
                found[f"{dialect.endpoint} {way}"] = outcome
                if dialect.endpoint is not Endpoint.COMPLETIONS:  # which cannot offer tools
                    judged[f"{dialect.endpoint} {way}"] = scores(request, outcome)
    assert len({repr(each) for each in found.values()}) == 1, found
    assert len({repr(each) for each in judged.values()}) == 1, judged


@settings(max_examples=200, deadline=None)
@given(asked)
def test_the_same_question_is_the_same_request(asked: Asked) -> None:
    requests = [
        parse_request(endpoint, json.dumps(written_as(endpoint, asked)).encode())
        for endpoint in (Endpoint.CHAT_COMPLETIONS, Endpoint.RESPONSES, Endpoint.MESSAGES)
    ]
    alike = {
        repr(
            replace(
                request,
                endpoint=Endpoint.CHAT_COMPLETIONS,
                body={},
                messages=tuple(
                    replace(message, tool_calls=tuple(replace(call, id="") for call in message.tool_calls))
                    for message in request.messages
                ),
            )
        )
        for request in requests
    }
    assert len(alike) == 1, alike
    assume(asked.called is None)
    alone = replace(asked, tools=())
    [plain, prompt] = [
        parse_request(endpoint, json.dumps(written_as(endpoint, alone)).encode())
        for endpoint in (Endpoint.CHAT_COMPLETIONS, Endpoint.COMPLETIONS)
    ]
    assert (plain.format, plain.schema, plain.constrained) == (
        prompt.format,
        prompt.schema,
        prompt.constrained,
    )
    assert (plain.max_tokens, plain.messages[1:]) == (prompt.max_tokens, prompt.messages)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.endpoint.value)
@pytest.mark.parametrize("seed", range(4))
def test_a_stream_cut_at_every_position_holds_the_same_events(dialect: Dialect, seed: int) -> None:
    chance = Random(seed)
    stream = dialect.stream(Answer(text="Grüße 你好 🌏", finish_reason="stop", prompt_tokens=1), chance)
    whole = EventParser().feed(stream)
    assert whole
    for cut in range(len(stream) + 1):
        parser = EventParser()
        assert parser.feed(stream[:cut]) + parser.feed(stream[cut:]) == whole
    one_by_one = EventParser()
    assert [event for at in range(len(stream)) for event in one_by_one.feed(stream[at : at + 1])] == whole
    edges = sorted({0, len(stream), *(chance.randrange(len(stream)) for _ in range(20))})
    parser = EventParser()
    assert [event for a, b in pairwise(edges) for event in parser.feed(stream[a:b])] == whole


@settings(max_examples=200, deadline=None)
@given(answers, st.integers(0, 2**32), st.floats(0, 1))
def test_a_stream_that_breaks_off_never_passes_for_the_whole(answer: Answer, seed: int, share: float) -> None:
    """Wherever it ends, it is the same answer or none: half an answer is nobody's."""
    for dialect in DIALECTS:
        if dialect.can_say(answer):
            stream = dialect.stream(answer, Random(seed))
            whole = read(dialect, stream, type="text/event-stream")
            part = parse_answer(
                dialect.endpoint,
                status=200,
                content_type="text/event-stream",
                content_encoding="",
                body=stream[: int(len(stream) * share)],
                complete=False,
            )
            if isinstance(part, Answer) and isinstance(whole, Answer):
                # Only the count of tokens may be missing: it comes last.
                assert (
                    replace(
                        part, prompt_tokens=whole.prompt_tokens, completion_tokens=whole.completion_tokens
                    )
                    == whole
                )
