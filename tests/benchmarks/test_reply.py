"""The benchmarks' client notices every byte that is not as the engine sent it."""

from __future__ import annotations

import pytest

from tests.benchmarks.loose_reply import LooseReply
from tests.benchmarks.reply import Damaged, Reply, Times
from tests.benchmarks.scripted_engine import ANSWER, EVENT, LAST, REFUSAL, STREAM, chunk

SENT = [(0, 1_000), (1, 51_000), (2, 101_000)]


def stream(*events: bytes, last: bytes = LAST) -> bytes:
    return STREAM + b"".join(chunk(event) for event in events) + chunk(last) + b"0\r\n\r\n"


WHOLE = stream(*(EVENT % each for each in SENT))


@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
def test_answers_are_whole_however_they_are_cut(size: int) -> None:
    for sent, reply in ((ANSWER, Reply()), (WHOLE, Reply(events=3))):
        for start in range(0, len(sent), size):
            assert not reply.whole
            assert reply.feed(sent[start : start + size], start) == b""
        assert (reply.whole, reply.status) == (True, 200)


def test_events_are_whole_in_chunks_other_than_the_engines() -> None:
    together = b"".join(EVENT % each for each in SENT) + LAST
    parts = [together[:150], together[150:301], together[301:]]
    reply = Reply(events=3)
    reply.feed(STREAM + b"".join(chunk(part) for part in parts) + b"0\r\n\r\n", 0)
    assert reply.whole


def test_a_stream_that_was_written_anew_is_counted() -> None:
    anew = [EVENT.replace(b'"at"', b'"anew"') % each for each in SENT]
    times = Times()
    reply = LooseReply(events=3, times=times)
    for at, byte in enumerate(stream(*anew)):
        reply.feed(bytes((byte,)), at)
    assert reply.whole
    assert (len(times.transit), len(times.gaps)) == (3, 2)
    with pytest.raises(Damaged):
        LooseReply(events=4).feed(stream(*anew), 0)


def test_what_follows_an_answer_is_given_back() -> None:
    assert Reply().feed(ANSWER + b"HTTP/1.1", 0) == b"HTTP/1.1"
    assert Reply(events=3).feed(WHOLE + b"HTTP/1.1", 0) == b"HTTP/1.1"


@pytest.mark.parametrize(
    "sent",
    [
        stream(EVENT % SENT[0], EVENT % SENT[2], EVENT % SENT[1]),
        stream(EVENT % SENT[0], EVENT % SENT[1]),
        stream(*(EVENT % each for each in SENT), EVENT % (3, 0)),
        stream(*(EVENT % each for each in SENT), last=b""),
        WHOLE.replace(b'"tok "', b'"tak "', 1),
    ],
    ids=["out of order", "one lost", "one too many", "no end", "one byte"],
)
def test_a_stream_that_differs_is_damaged(sent: bytes) -> None:
    with pytest.raises(Damaged):
        Reply(events=3).feed(sent, 0)


def test_an_answer_that_differs_is_damaged_and_a_refusal_is_not() -> None:
    with pytest.raises(Damaged):
        Reply().feed(ANSWER.replace(b"aaa", b"aba", 1), 0)
    refused = Reply(events=3)
    refused.feed(REFUSAL, 0)
    assert (refused.whole, refused.status) == (True, 500)


def test_events_are_timed_at_both_ends() -> None:
    times = Times()
    reply = Reply(events=3, times=times)
    reply.feed(STREAM, 0)
    for event, arrived in zip(SENT, (3_000, 60_000, 104_000), strict=True):
        reply.feed(chunk(EVENT % event), arrived)
    assert list(times.transit) == [2_000, 9_000, 3_000]
    assert list(times.gaps) == [57_000, 44_000]
    assert list(times.stretch) == [7_000, -6_000]
