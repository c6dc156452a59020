"""The answer reader: however an answer is framed and cut, the same bytes come out."""

from __future__ import annotations

import itertools

import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.proxy.http.answers import AnswerReader, AnswerUnreadable

BODIES = st.binary(max_size=300) | st.text(max_size=100).map(str.encode)


def framed(body: bytes, framing: str, chunks: list[int]) -> bytes:
    head = b"HTTP/1.1 200 Fine\r\nX-A: 1\r\n"
    if framing == "length":
        return head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    if framing == "end of file":
        return head + b"\r\n" + body
    made, at = [head, b"Transfer-Encoding: chunked\r\n\r\n"], 0
    for size in itertools.chain(chunks, [len(body)]):
        part = body[at : at + size]
        if part:
            made.append(b"%x;ext=1\r\n%b\r\n" % (len(part), part))
        at += len(part)
    return b"".join(made) + b"0\r\nX-Trailer: 1\r\n\r\n"


def read(received: bytes, cuts: list[int]) -> tuple[AnswerReader, bytes]:
    reader, body = AnswerReader(for_head=False), b""
    edges = sorted({0, len(received), *(cut % (len(received) + 1) for cut in cuts)})
    for start, end in itertools.pairwise(edges):
        reader.feed(received[start:end])
        body += reader.take()
    return reader, body


CUTS = st.lists(st.integers(0, 1000), max_size=8)
FRAMINGS = st.sampled_from(["length", "end of file", "chunks"])


@given(BODIES, FRAMINGS, st.lists(st.integers(1, 50), max_size=5), CUTS)
def test_every_framing_and_every_cut_gives_the_same_body(
    body: bytes, framing: str, chunks: list[int], cuts: list[int]
) -> None:
    reader, got = read(framed(body, framing, chunks), cuts)
    assert got == body
    assert reader.head.headers[0] == (b"X-A", b"1")
    assert reader.complete == (framing != "end of file")
    assert reader.end_of_file() == (framing == "end of file")
    assert not reader.leftover
    assert reader.trailers == ([(b"X-Trailer", b"1")] if framing == "chunks" else [])


@given(BODIES, st.sampled_from(["length", "chunks"]), st.binary(min_size=1, max_size=50), CUTS)
def test_what_follows_an_answer_is_never_part_of_it(
    body: bytes, framing: str, extra: bytes, cuts: list[int]
) -> None:
    answer = framed(body, framing, [])
    if framing == "length" and not body and not cuts:
        cuts = [len(answer)]
    reader, got = read(answer + b"HTTP/1.1 " + extra, cuts)
    assert got == body
    assert reader.complete
    assert reader.leftover


@settings(max_examples=300)
@given(st.binary(max_size=200), CUTS)
def test_noise_is_unreadable_or_unfinished_and_nothing_else(noise: bytes, cuts: list[int]) -> None:
    reader = AnswerReader(for_head=False)
    try:
        reader.feed(noise)
        reader.feed(noise)
    except AnswerUnreadable:
        return
    assert not reader.complete


@given(BODIES, FRAMINGS, st.lists(st.integers(1, 50), max_size=5))
def test_an_independent_client_reads_what_is_written_again(
    body: bytes, framing: str, chunks: list[int]
) -> None:
    reader, got = read(framed(body, framing, chunks), [])
    head, chunked = reader.head.for_client(
        http10=False, keep_alive=True, marks=b"x-extra: 1\r\n", length=reader.length, request_id=b"r"
    )
    if chunked:
        written = head + (b"%x\r\n%b\r\n" % (len(got), got) if got else b"") + reader.last_chunk()
    else:
        written = head + got
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
    client.send(h11.EndOfMessage())
    client.receive_data(written)
    answer = client.next_event()
    assert isinstance(answer, h11.Response)
    assert (answer.status_code, answer.reason) == (200, b"Fine")
    assert (b"x-extra", b"1") in answer.headers
    heard = b""
    while isinstance(each := client.next_event(), h11.Data):
        heard += bytes(each.data)
    assert isinstance(each, h11.EndOfMessage)
    assert heard == body


@pytest.mark.parametrize("status", [100, 102, 103, 199])
def test_interim_answers_are_no_answers(status: int) -> None:
    reader, body = read(
        b"HTTP/1.1 %d X\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nz" % status, []
    )
    assert (reader.head.status, body) == (200, b"z")
    assert reader.interims == ([] if status == 100 else [b"HTTP/1.1 %d X\r\nA: b\r\n\r\n" % status])


@pytest.mark.parametrize("status", [0, 1, 50, 99])
def test_a_status_that_is_none_is_no_interim_answer(status: int) -> None:
    """llhttp reads a body behind it, which would be taken for the beginning of the next answer's."""
    reader = AnswerReader(for_head=False)
    with pytest.raises(AnswerUnreadable, match=f"status {status:03}"):
        reader.feed(
            b"HTTP/1.1 %03d X\r\nContent-Length: 5\r\n\r\nhello"
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nz" % status
        )
    assert reader.interims == []


@pytest.mark.parametrize(
    "codings", [(b"chunked", b"gzip"), (b"chunked", b"chunked"), (b"gzip", b"chunked"), (b"identity",)]
)
def test_a_body_in_other_codings_than_chunked_is_unreadable(codings: tuple[bytes, ...]) -> None:
    lines = b"".join(b"Transfer-Encoding: %b\r\n" % coding for coding in codings)
    with pytest.raises(AnswerUnreadable, match="unknown transfer coding"):
        AnswerReader(for_head=False).feed(b"HTTP/1.1 200 OK\r\n" + lines + b"\r\n5\r\nhello\r\n0\r\n\r\n")


@pytest.mark.parametrize("start", [b"0\r\nX-Endless: ", b"5;ext=", b"5\r\nhello\r\n0\r\nX-Endless: "])
def test_what_frames_a_body_is_bounded(start: bytes) -> None:
    reader = AnswerReader(for_head=False)
    reader.feed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + start)
    reader.take()
    for _ in range(25):
        reader.feed(b"y" * 10_000)
    with pytest.raises(AnswerUnreadable, match="bytes of headers"):
        reader.feed(b"y" * 20_000)


def test_a_long_body_in_small_chunks_is_not_taken_for_endless_framing() -> None:
    reader = AnswerReader(for_head=False)
    reader.feed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(1000):
        for part in (b"1;" + b"e" * 1000, b"\r\n", b"z", b"\r\n"):
            reader.feed(part)
        assert reader.take() == b"z"


def test_a_flood_of_interim_answers_is_bounded() -> None:
    reader = AnswerReader(for_head=False)
    flood = b"HTTP/1.1 102 Processing\r\n\r\n" * 10_000
    with pytest.raises(AnswerUnreadable, match="bytes of headers"):
        reader.feed(flood)
