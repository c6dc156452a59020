"""Heads met before: read the same as by the parser, however near another head comes to them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.proxy.http.answers import AnswerReader
from service.proxy.http.known import KnownHead, known
from service.proxy.http.requests import Inbound, RequestReader

HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nX-A: 1\r\n\r\n"


def request(body: bytes, *, name: bytes = b"Content-Length", extra: bytes = b"") -> bytes:
    lines = b"Host: a\r\n%b: %d\r\n%bX-A: 1\r\n\r\n" % (name, len(body), extra)
    return b"POST /v1/chat/completions HTTP/1.1\r\n" + lines + body


def reader() -> RequestReader:
    return RequestReader(max_head=65536, max_body=1 << 20, conversation_header=b"x-conversation-id")


def known_head(raw: bytes) -> KnownHead[str]:
    found = known(raw, "meaning")
    assert found is not None
    return found


@pytest.mark.parametrize("digits", [b"0", b"3", b"12", b"000012", b"999999999999999"])
def test_a_head_is_known_with_any_length(digits: bytes) -> None:
    received = HEAD.replace(b"3", digits)
    assert known_head(HEAD).match(received + b"abc") == (int(digits), len(received), digits)


@pytest.mark.parametrize(
    "received",
    [
        HEAD.replace(b"3", b""),
        HEAD.replace(b"3", b"-3"),
        HEAD.replace(b"3", b"+3"),
        HEAD.replace(b"3", b"0x3"),
        HEAD.replace(b"3", b"3, 3"),
        HEAD.replace(b"3", b"3 "),
        HEAD.replace(b"3", "٣".encode()),
        HEAD.replace(b"3", b"1" * 16),
        HEAD.replace(b"X-A: 1", b"X-A: 2"),
        HEAD.replace(b"X-A: 1", b"Transfer-Encoding: chunked"),
        HEAD.replace(b"\r\n\r\n", b"\r\nContent-Length: 4\r\n\r\n"),
        HEAD.replace(b"Content", b"content"),
        HEAD.replace(b"3\r\n", b"3\n"),
        HEAD[:-1],
        HEAD[:-20],
        b"\r\n" + HEAD,
        b"",
    ],
)
def test_any_other_difference_makes_it_unknown(received: bytes) -> None:
    assert known_head(HEAD).match(received) is None


@pytest.mark.parametrize(
    "raw",
    [
        HEAD.replace(b"Content-Length: 3\r\n", b""),
        HEAD.replace(b"X-A: 1", b"content-length: 3"),
        HEAD[:-2],
        b"\r\n" + HEAD,
        HEAD.replace(b"X-A: 1", b"X-A: " + b"1" * 9000),
    ],
)
def test_what_cannot_be_told_by_its_length_alone_is_not_remembered(raw: bytes) -> None:
    assert known(raw, "meaning") is None


BODIES = st.lists(st.binary(max_size=40), min_size=1, max_size=8)
CUTS = st.lists(st.integers(0, 2000), max_size=12)


@given(BODIES, CUTS, st.data())
def test_a_connection_reads_the_same_whether_its_heads_repeat_or_not(
    bodies: list[bytes], cuts: list[int], data: st.DataObject
) -> None:
    spelled = st.sampled_from([b"Content-Length", b"content-length"])
    extra = st.sampled_from([b"", b"X-B: 2\r\n"])
    sent = [request(each, name=data.draw(spelled), extra=data.draw(extra)) for each in bodies]
    stream = b"".join(sent)
    edges = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    warm = reader()
    for start, end in itertools.pairwise(edges):
        warm.feed(stream[start:end])
    for alone, each in zip(sent, warm.ready, strict=True):
        cold = reader()
        cold.feed(alone)
        [expected] = cold.ready
        assert isinstance(each, Inbound)
        assert isinstance(expected, Inbound)
        assert (each.body, each.keep_alive) == (expected.body, expected.keep_alive)
        assert each.head.names == expected.head.names


def test_a_body_above_the_limit_is_refused_under_a_known_head_as_well() -> None:
    warm = reader()
    for _ in range(3):
        warm.feed(request(b"abc"))
    warm.feed(request(b"abc").replace(b": 3", b": %d" % (1 << 30)))
    assert [type(each).__name__ for each in warm.ready] == ["Inbound"] * 3 + ["Refusal"]
    assert warm.is_closed


def test_a_last_request_is_the_last_even_after_known_ones() -> None:
    warm = reader()
    for _ in range(3):
        warm.feed(request(b"abc"))
    warm.feed(request(b"abc", extra=b"Connection: close\r\n") * 2)
    assert len(warm.ready) == 4
    assert warm.is_closed


ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nX-A: 1\r\n\r\n%b"


@given(st.binary(max_size=60), CUTS, st.binary(max_size=5))
def test_an_answer_under_a_known_head_reads_as_by_the_parser(
    body: bytes, cuts: list[int], extra: bytes
) -> None:
    first = AnswerReader(for_head=False)
    first.feed(ANSWER % (3, b"abc"))
    assert first.known is not None
    received = ANSWER % (len(body), body) + extra
    edges = sorted({0, len(received), *(cut % (len(received) + 1) for cut in cuts)})
    got = []
    for before in (None, first.known):
        each, read = AnswerReader(for_head=False, known=before), b""
        for start, end in itertools.pairwise(edges):
            each.feed(received[start:end])
            read += each.take()
        assert each.head is not None
        got.append((read, each.complete, each.leftover, each.length, each.head.status, each.end_of_file()))
    assert got[0] == got[1]


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
    ],
)
def test_answers_whose_end_is_not_told_by_their_length_are_not_remembered(answer: bytes) -> None:
    read = AnswerReader(for_head=False)
    read.feed(answer)
    assert read.head is not None
    assert read.known is None


def test_an_answer_to_head_is_never_read_by_its_length() -> None:
    first = AnswerReader(for_head=False)
    first.feed(ANSWER % (3, b"abc"))
    read = AnswerReader(for_head=True, known=first.known)
    read.feed(ANSWER % (3, b""))
    assert read.complete
    assert read.take() == b""
