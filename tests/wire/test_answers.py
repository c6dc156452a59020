"""What a backend sent back becomes an answer or a fault, whatever the bytes."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.exchange import Answer, Endpoint, Fault, FaultKind, Outcome, ToolCall
from evaluators.score import Score
from evaluators.structured_output import StructuredOutput
from service.wire import parse_answer, parse_request
from service.wire.sse import EventParser

Read = Callable[..., Outcome]
PATH = "/v1/chat/completions"


def outcome(
    body: bytes,
    *,
    status: int = 200,
    type: str = "application/json",
    encoding: str = "",
    complete: bool = True,
    path: str = PATH,
) -> Outcome:
    return parse_answer(
        path, status=status, content_type=type, content_encoding=encoding, body=body, complete=complete
    )


# --- streamed and unstreamed answers of the same content are equal ---

texts = st.text(st.characters(blacklist_categories=["Cs"]), max_size=40).filter(lambda t: "think" not in t)
names = st.text("abcdefghij_", min_size=1, max_size=12)
calls = st.lists(
    st.builds(
        lambda name, arguments, id: ToolCall(name=name, arguments=arguments, id=id),
        names,
        st.dictionaries(texts, st.one_of(texts, st.integers(), st.booleans(), st.none()), max_size=3).map(
            lambda value: json.dumps(value, ensure_ascii=False)
        ),
        st.uuids().map(str),
    ),
    max_size=3,
    unique_by=lambda call: call.id,
)
answers = st.builds(
    lambda text, reasoning, calls, finish, refusal, tokens: Answer(
        text=text,
        reasoning=reasoning,
        tool_calls=tuple(calls),
        finish_reason=finish,
        refusal=refusal or None,
        prompt_tokens=tokens,
        completion_tokens=tokens,
    ),
    texts,
    texts,
    calls,
    st.sampled_from(["stop", "length", "tool_calls", "content_filter"]),
    st.one_of(st.none(), texts),
    st.one_of(st.none(), st.integers(0, 10**6)),
)


def whole_body(answer: Answer) -> bytes:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None, "refusal": answer.refusal}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.tool_calls:
        message["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in answer.tool_calls
        ]
    body: dict[str, Any] = {
        "choices": [{"index": 0, "message": message, "finish_reason": answer.finish_reason}]
    }
    if answer.prompt_tokens is not None:
        body["usage"] = {
            "prompt_tokens": answer.prompt_tokens,
            "completion_tokens": answer.completion_tokens,
        }
    return json.dumps(body, ensure_ascii=False).encode()


def pieces(text: str, draw: st.DataObject) -> list[str]:
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def stream_body(answer: Answer, draw: st.DataObject) -> bytes:
    """The answer as deltas, cut at random, fields and parallel calls interleaved at random."""
    tracks: list[list[dict[str, Any]]] = [
        [{"content": piece} for piece in pieces(answer.text, draw)],
        [{"reasoning_content": piece} for piece in pieces(answer.reasoning, draw)],
        [{"refusal": piece} for piece in pieces(answer.refusal, draw)] if answer.refusal else [],
    ]
    for index, call in enumerate(answer.tool_calls):
        head = {"index": index, "id": call.id, "function": {"name": call.name, "arguments": ""}}
        rest = [
            {"index": index, "function": {"arguments": piece}}
            for piece in pieces(call.arguments, draw)
            if piece
        ]
        tracks.append([{"tool_calls": [fragment]} for fragment in (head, *rest)])
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": None}]
    while any(tracks):
        track = draw.draw(st.sampled_from([track for track in tracks if track]))
        deltas.append(track.pop(0))
    chunks: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": answer.finish_reason}]})
    if answer.prompt_tokens is not None:
        usage = {"prompt_tokens": answer.prompt_tokens, "completion_tokens": answer.completion_tokens}
        chunks.append({"choices": [], "usage": usage})
    end = draw.draw(st.sampled_from(["\n\n", "\r\n\r\n", "\n: ping\n\n", "\r\r"]))
    written = "".join(f"data: {json.dumps(chunk, ensure_ascii=False)}{end}" for chunk in chunks)
    return (written + draw.draw(st.sampled_from(["data: [DONE]\n\n", ""]))).encode()


@settings(deadline=None, max_examples=150)
@given(answer=answers, draw=st.data())
def test_any_answer_reads_the_same_streamed_and_unstreamed(answer: Answer, draw: st.DataObject) -> None:
    streamed = outcome(stream_body(answer, draw), type="text/event-stream")
    assert outcome(whole_body(answer)) == streamed
    assert streamed == answer


@settings(deadline=None, max_examples=15)
@given(answer=answers, draw=st.data())
def test_a_stream_split_at_every_byte_holds_the_same_events(answer: Answer, draw: st.DataObject) -> None:
    body = stream_body(answer, draw)
    whole = EventParser().feed(body)
    one_by_one = EventParser()
    assert [event for at in range(len(body)) for event in one_by_one.feed(body[at : at + 1])] == whole
    for cut in range(0, len(body), 7):
        parser = EventParser()
        assert parser.feed(body[:cut]) + parser.feed(body[cut:]) == whole


# --- never raises ---

values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "message",
                    "delta",
                    "content",
                    "tool_calls",
                    "function",
                    "arguments",
                    "index",
                    "usage",
                    "error",
                    "output",
                    "type",
                    "item",
                    "response",
                    "status",
                    "content_block",
                    "stop_reason",
                    "text",
                    "finish_reason",
                    "name",
                    "id",
                    "reasoning",
                    "refusal",
                ]
            ),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=12,
)
bodies = st.one_of(
    st.binary(max_size=200),
    values.map(lambda value: json.dumps(value).encode()),
    st.lists(values, max_size=4).map(
        lambda listed: b"".join(b"data: " + json.dumps(value).encode() + b"\n\n" for value in listed)
    ),
)


@settings(deadline=None, max_examples=600)
@given(
    body=bodies,
    path=st.sampled_from([*Endpoint, "/v1/models", ""]),
    status=st.sampled_from([200, 204, 301, 404, 429, 500, 0, 999]),
    type=st.sampled_from(["text/event-stream", "application/json", "", "TEXT/Event-Stream; charset=UTF8"]),
    encoding=st.sampled_from(["", "gzip", "zstd", "deflate", "br", "x"]),
    complete=st.booleans(),
)
def test_no_bytes_make_it_raise(
    body: bytes, path: str, status: int, type: str, encoding: str, complete: bool
) -> None:
    found = outcome(body, status=status, type=type, encoding=encoding, complete=complete, path=path)
    assert isinstance(found, Answer | Fault)
    if isinstance(found, Fault):
        found.detail.encode()
        assert len(found.detail) <= 200


def test_a_depth_of_ten_thousand_is_unreadable() -> None:
    found = outcome(b'{"choices":' + b"[" * 10_000 + b"]" * 10_000 + b"}")
    assert isinstance(found, Fault)
    assert found.kind is FaultKind.UNREADABLE


# --- what a body is ---

WHOLE = b'{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}'
STREAM = (
    b'data: {"choices":[{"delta":{"content":"h"}}]}\n\n'
    b'data: {"choices":[{"delta":{"content":"i"},"finish_reason":"stop"}]}\n\n'
)
HI = Answer(text="hi", finish_reason="stop")


@pytest.mark.parametrize(
    "type",
    [
        "text/event-stream",
        "text/event-stream; charset=utf-8",
        "Text/Event-Stream;CHARSET=UTF-8",
        "",
        "text/plain",
    ],
)
def test_a_stream_is_known_by_its_type_or_its_beginning(type: str) -> None:
    assert outcome(STREAM, type=type) == HI
    assert outcome(b": ping\n\n" + STREAM, type=type) == HI
    assert outcome(b"\xef\xbb\xbf" + STREAM, type=type) == HI


@pytest.mark.parametrize("type", ["application/json", "text/event-stream", "", "application/octet-stream"])
def test_a_json_body_where_a_stream_was_asked_for_is_read_as_json(type: str) -> None:
    assert outcome(WHOLE, type=type) == HI
    assert outcome(b"\xef\xbb\xbf\n" + WHOLE, type=type) == HI


def test_a_query_or_slash_behind_the_path_changes_nothing() -> None:
    assert outcome(WHOLE, path=PATH + "?api-version=1") == HI
    assert outcome(WHOLE, path=PATH + "/") == HI


def test_a_compressed_body_is_decoded_and_an_unknown_coding_is_unreadable() -> None:
    assert outcome(gzip.compress(WHOLE), encoding="gzip") == HI
    found = outcome(WHOLE, encoding="br")
    assert isinstance(found, Fault)
    assert (found.kind, found.status) == (FaultKind.UNREADABLE, 200)
    refused = outcome(b"?", encoding="br", status=503)
    assert isinstance(refused, Fault)
    assert refused.kind is FaultKind.OVERLOADED


def test_a_path_that_generates_nothing_is_unreadable() -> None:
    found = outcome(WHOLE, path="/v1/embeddings")
    assert isinstance(found, Fault)
    assert found.kind is FaultKind.UNREADABLE


# --- how a stream ends ---


def kind_of(found: Outcome) -> FaultKind:
    assert isinstance(found, Fault), found
    return found.kind


def test_a_stream_without_done_is_whole_once_it_finished() -> None:
    assert outcome(STREAM) == HI
    assert outcome(STREAM, complete=False) == HI
    assert outcome(STREAM.rstrip(b"\n")) == HI


def test_done_and_an_open_connection_is_whole() -> None:
    assert outcome(STREAM + b"data: [DONE]\n\n", complete=False) == HI


def test_bytes_after_done_are_not_the_answer() -> None:
    assert outcome(STREAM + b"data: [DONE]\n\ndata: {{{ junk\n\n" + STREAM) == HI
    assert outcome(STREAM + b"data:[DONE]\n\n" + STREAM) == HI


def test_an_empty_data_line_is_passed_over() -> None:
    assert outcome(b"data:\n\n" + STREAM) == HI


@pytest.mark.parametrize("complete", [True, False])
def test_a_stream_that_ends_unfinished_was_cut_off(complete: bool) -> None:
    first = STREAM.split(b"\n\n")[0] + b"\n\n"
    assert kind_of(outcome(first, complete=complete)) is FaultKind.CUT_OFF
    assert kind_of(outcome(first + b'data: {"cho', complete=False)) is FaultKind.CUT_OFF
    assert kind_of(outcome(b"", type="text/event-stream", complete=complete)) is FaultKind.CUT_OFF
    assert kind_of(outcome(b"data: [DONE]\n\n", complete=complete)) is FaultKind.CUT_OFF


def test_done_without_a_finish_reason_is_an_answer_without_one() -> None:
    first = STREAM.split(b"\n\n")[0] + b"\n\ndata: [DONE]\n\n"
    assert outcome(first) == Answer(text="h")


def test_a_json_body_that_broke_off_was_cut_off_and_a_whole_one_was_not() -> None:
    assert kind_of(outcome(WHOLE[:-5], complete=False)) is FaultKind.CUT_OFF
    assert kind_of(outcome(WHOLE[:-5])) is FaultKind.UNREADABLE
    assert outcome(WHOLE, complete=False) == HI
    assert kind_of(outcome(b"")) is FaultKind.UNREADABLE


@pytest.mark.parametrize(
    "event",
    [
        b'data: {"error": {"message": "CUDA out of memory", "code": 500}}\n\n',
        b'event: error\ndata: {"message": "CUDA out of memory"}\n\n',
        b'event: error\ndata: {"error": "CUDA out of memory"}\n\n',
        b'data: {"object": "error", "message": "CUDA out of memory", "code": 500}\n\n',
    ],
)
def test_an_error_within_a_stream_of_status_200_is_a_fault(event: bytes) -> None:
    found = outcome(STREAM.split(b"\n\n")[0] + b"\n\n" + event + b"data: [DONE]\n\n")
    assert isinstance(found, Fault)
    assert (found.kind, found.status) == (FaultKind.STREAM_ERROR, 200)
    assert "CUDA out of memory" in found.detail


def test_an_error_within_a_json_body_of_status_200_is_the_same_fault() -> None:
    found = outcome(b'{"error": {"message": "boom"}}')
    assert found == Fault(kind=FaultKind.STREAM_ERROR, status=200, detail="boom")


@pytest.mark.parametrize(
    ("finish", "kind"), [("error", FaultKind.STREAM_ERROR), ("abort", FaultKind.CUT_OFF)]
)
def test_a_finish_reason_of_failure_is_a_fault_streamed_or_not(finish: str, kind: FaultKind) -> None:
    assert kind_of(outcome(WHOLE.replace(b"stop", finish.encode()))) is kind
    assert kind_of(outcome(STREAM.replace(b"stop", finish.encode()))) is kind


@pytest.mark.parametrize("event", [b"data: {nope}\n\n", b"data: 3\n\n", b'data: {"choices": 3}\n\n'])
def test_an_event_that_is_not_of_the_dialect_makes_the_stream_unreadable(event: bytes) -> None:
    assert kind_of(outcome(event + STREAM)) is FaultKind.UNREADABLE


# --- statuses ---


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (429, FaultKind.OVERLOADED),
        (503, FaultKind.OVERLOADED),
        (400, FaultKind.REJECTED),
        (401, FaultKind.REJECTED),
        (422, FaultKind.REJECTED),
        (500, FaultKind.SERVER_ERROR),
        (502, FaultKind.SERVER_ERROR),
        (504, FaultKind.SERVER_ERROR),
        (301, FaultKind.UNREADABLE),
        (101, FaultKind.UNREADABLE),
    ],
)
def test_a_status_says_who_is_to_blame_and_the_body_why(status: int, kind: FaultKind) -> None:
    found = outcome(b'{"error": {"message": "too long"}}', status=status)
    assert found == Fault(kind=kind, status=status, detail="too long")
    assert outcome(b"<html>\n bad  gateway", status=status) == Fault(
        kind=kind, status=status, detail="<html> bad gateway"
    )


def test_a_success_without_a_body_is_unreadable() -> None:
    assert kind_of(outcome(b"", status=204)) is FaultKind.UNREADABLE


def test_an_error_body_is_cut_to_what_can_be_stored() -> None:
    found = outcome(b"\xff\xfe" * 100_000, status=500)
    assert isinstance(found, Fault)
    assert len(found.detail) <= 200
    surrogate = outcome(b'{"error":{"message":"\\ud83d"}}', status=500)
    assert isinstance(surrogate, Fault)
    surrogate.detail.encode()


# --- odd strings ---


def test_lone_surrogates_in_strings_are_kept() -> None:
    found = outcome(WHOLE.replace(b'"hi"', b'"\\ud83d!"'))
    assert isinstance(found, Answer)
    assert found.text == "\ud83d!"


def test_separators_of_unicode_and_line_ends_within_json_strings_are_kept() -> None:
    text = "a\u2028b\u0085c"
    stream = STREAM.replace(b'"h"', json.dumps(text, ensure_ascii=False).encode())
    found = outcome(stream)
    assert isinstance(found, Answer)
    assert found.text == text + "i"


def test_two_megabytes_of_arguments_in_one_line_are_read() -> None:
    arguments = '{"x":"' + "y" * 2_000_000 + '"}'
    fragment = {"index": 0, "id": "1", "function": {"name": "f", "arguments": arguments}}
    chunk = {"choices": [{"delta": {"tool_calls": [fragment]}, "finish_reason": "tool_calls"}]}
    found = outcome(b"data: " + json.dumps(chunk).encode() + b"\n\n", type="text/event-stream")
    assert isinstance(found, Answer)
    assert found.tool_calls[0].arguments == arguments


@pytest.mark.parametrize("said", ["CUDA out of memory", '"CUDA out of memory"', "{broken"])
def test_an_error_event_is_a_fault_even_when_it_is_no_object(said: str) -> None:
    found = outcome(f"event: error\ndata: {said}\n\n".encode(), type="text/event-stream")
    assert isinstance(found, Fault)
    assert found.kind is FaultKind.STREAM_ERROR


LAST = {
    Endpoint.MESSAGES: [
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ],
    Endpoint.RESPONSES: [{"type": "response.completed", "response": {"status": "completed", "output": []}}],
}


@pytest.mark.parametrize("endpoint", LAST)
@pytest.mark.parametrize("behind", [b"data: nonsense\n\n", b'event: error\ndata: {"message": "late"}\n\n'])
def test_what_follows_the_last_event_is_not_the_answer(endpoint: Endpoint, behind: bytes) -> None:
    stream = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in LAST[endpoint])
    assert outcome(stream + behind, path=endpoint) == Answer(finish_reason="stop")


NUMBERS = {
    "NaN": (b"NaN", "not_json"),
    "Infinity": (b"-Infinity", "not_json"),
    "beyond a double": (b"1e400", "ok"),
    "of ten thousand digits": (b"9" * 10_000, "unjudgeable"),
    "a name used twice": (b'1, "x": 2', "ok"),
    "ten thousand deep": (b"[" * 10_000 + b"1" + b"]" * 10_000, "unjudgeable"),
}


@pytest.mark.parametrize(("value", "label"), NUMBERS.values(), ids=NUMBERS)
def test_odd_values_are_judged_alike_streamed_or_not(value: bytes, label: str) -> None:
    """In content and in arguments alike: they are text to the dialect, and the evaluator's to judge."""
    request = parse_request(
        PATH, b'{"model":"m","messages":[{"role":"user"}],"response_format":{"type":"json_object"}}'
    )
    text = (b'{"x": ' + value + b"}").decode()
    cuts = [0, len(text) // 3, len(text) // 2, len(text)]
    chunks = [{"choices": [{"delta": {"content": text[a:b]}}]} for a, b in pairwise(cuts)]
    chunks.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    stream = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)
    whole = json.dumps({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}).encode()
    for found in (outcome(stream), outcome(whole)):
        assert isinstance(found, Answer)
        score = StructuredOutput().score(request, found)
        assert isinstance(score, Score)
        assert score.label == label


def test_logprobs_that_are_no_numbers_are_no_fault() -> None:
    """`-inf` is how engines write the logarithm of nothing; some answer 500 instead, which is a fault."""
    body = WHOLE.replace(b'"message"', b'"logprobs": {"content": [{"logprob": -Infinity}]}, "message"')
    assert outcome(body) == replace(HI, broken_logprobs=1)
    error = b'{"error": {"message": "Out of range float values are not JSON compliant: -inf"}}'
    assert kind_of(outcome(error, status=500)) is FaultKind.SERVER_ERROR
