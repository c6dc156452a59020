"""The answer parser under fire: no crash, no second meaning, and h11 agrees or the difference is listed.

As `test_fuzz_requests`, for what backends send; the first word of a name in `corpus/answers` is its end.
"""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from random import Random

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from service.proxy.http.answers import AnswerReader, AnswerUnreadable
from tests.proxy.differences import ANSWERS_LAXER, ANSWERS_STRICTER
from tests.proxy.generated import cuts_of, distort, make_answer
from tests.proxy.parsing import AnswerOutline, h11_answer, head_learnt_from, read_answer
from tests.proxy.test_fuzz_requests import CHANCES, search

CORPUS = sorted((Path(__file__).parent / "corpus" / "answers").iterdir())
WHOLE = ("complete", "ends with the connection")


def seen(outline: AnswerOutline, received: bytes) -> AnswerOutline:
    """All but what may depend on cuts: line ends behind an answer end its connection, or are passed over."""
    return outline._replace(reusable=False) if received.endswith((b"\r", b"\n")) else outline


def check_segments(received: bytes, cuts: list[int], *, for_head: bool) -> None:
    whole = read_answer(received, for_head=for_head)
    cut = read_answer(received, cuts, for_head=for_head)
    assert seen(cut, received) == seen(whole, received), (received, cuts)


def check_warm(before: bytes, received: bytes, cuts: list[int]) -> None:
    """A backend whose last head is known is read as one that was never heard of."""
    known = head_learnt_from(before)
    cold = seen(read_answer(received), received)
    for at in ([], cuts):
        assert seen(read_answer(received, at, known=known), received) == cold, (before, received, at)


def check_against_h11(received: bytes, *, for_head: bool = False) -> set[object]:
    """Both make the same answer of it; returns the differences met."""
    ours, theirs = read_answer(received, for_head=for_head), h11_answer(received, for_head=for_head)
    if ours.end in WHOLE and theirs.end in WHOLE:
        assert (ours.status, ours.body, ours.end) == (theirs.status, theirs.body, theirs.end), received
    elif ours.end in WHOLE:
        assert theirs.end == "unreadable", (received, theirs)
        lax = {each for each in ANSWERS_LAXER if each.explains(theirs.why, received)}
        assert lax, f"we accept, h11 does not ({theirs.why}): {received!r}"
        return set(lax)
    elif theirs.end in WHOLE:
        assert ours.end == "unreadable", (received, ours)
        strict = {each for each in ANSWERS_STRICTER if each.explains(ours.why)}
        assert strict, f"we refuse, h11 accepts: {ours.why}: {received!r}"
        return set(strict)
    return set()


def check_for_client(received: bytes, *, for_head: bool = False) -> None:
    """What a client gets is, to h11, exactly the one answer that was meant."""
    ours = read_answer(received, for_head=for_head)
    if ours.end not in WHOLE:
        return
    theirs = h11_answer(ours.for_client, for_head=for_head)
    if any(each.explains(theirs.why, ours.for_client) for each in ANSWERS_LAXER):
        return  # the bytes pass as they came
    assert (theirs.end, theirs.status, theirs.body) == ("complete", ours.status, ours.body), (received, ours)
    assert not any(b"\0" in value or b"\n" in value for _, value in theirs.headers)


def check(received: bytes, cuts: list[int], *, for_head: bool = False) -> None:
    """Everything that must hold of any bytes from a backend."""
    check_segments(received, cuts, for_head=for_head)
    check_against_h11(received, for_head=for_head)
    check_for_client(received, for_head=for_head)
    if not for_head:
        check_warm(received, received, cuts)


@search(600)
@given(CHANCES)
def test_a_well_formed_answer_is_read_as_it_is_meant(chance: Random) -> None:
    made = make_answer(chance)
    read = read_answer(made.wire, cuts_of(chance, len(made.wire)))
    assert (read.status, read.body) == (made.status, made.body)
    assert read.end in WHOLE
    check(made.wire, cuts_of(chance, len(made.wire)), for_head=chance.random() < 0.2)


@search(2500)
@given(CHANCES)
def test_a_distorted_answer_has_one_meaning_or_is_unreadable(chance: Random) -> None:
    received = distort(chance, make_answer(chance).wire)
    event(read_answer(received).end)
    check(received, cuts_of(chance, len(received)), for_head=chance.random() < 0.1)


@search(2000)
@given(CHANCES)
def test_a_backend_that_is_known_is_read_as_a_new_one(chance: Random) -> None:
    before = make_answer(chance, delimited=True).wire
    event("not known" if head_learnt_from(before) is None else "known")
    received = distort(chance, before) + chance.choice((b"", b"", b"", before))
    check_warm(before, received, cuts_of(chance, len(received)))


@search(400)
@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=5), st.booleans())
def test_noise_is_unreadable_or_waited_for(received: bytes, cuts: list[int], for_head: bool) -> None:
    for bytes_ in (received, b"HTTP/1.1 200 OK\r\n" + received):
        check(bytes_, cuts, for_head=for_head)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_the_corpus_is_read_as_its_names_say(path: Path) -> None:
    received = path.read_bytes()
    read = read_answer(received)
    assert read.end.partition(" ")[0] == path.stem.partition("-")[0]
    for cut in range(1, len(received)):
        assert seen(read_answer(received, [cut]), received) == seen(read, received)
    check(received, list(range(len(received))))
    check_segments(received, list(range(len(received))), for_head=True)


def test_every_listed_difference_is_shown_by_the_corpus() -> None:
    shown: set[object] = set()
    for path in CORPUS:
        for for_head in (False, True):
            shown |= check_against_h11(path.read_bytes(), for_head=for_head)
    assert {*ANSWERS_STRICTER, *ANSWERS_LAXER} - shown == set()


START = b"HTTP/1.1 200 OK\r\n"
CHUNKED = START + b"Transfer-Encoding: chunked\r\n\r\n"
ENDLESS = {
    "reason": (b"HTTP/1.1 200 ", b"x"),
    "header value": (START + b"X: ", b"x"),
    "headers": (START, b"X: y\r\n"),
    "interim answers": (b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
    "chunk extension": (CHUNKED + b"1;", b"x"),
    "chunk size": (CHUNKED, b"0"),
    "trailers": (CHUNKED + b"0\r\n", b"X: y\r\n"),
    "chunks": (CHUNKED, b"1\r\nx\r\n"),
    "body": (START + b"\r\n", b"x"),
    "empty lines": (b"", b"\r\n"),
}


@pytest.mark.parametrize(("start", "again"), ENDLESS.values(), ids=ENDLESS)
def test_what_never_ends_takes_a_bounded_amount_of_memory(start: bytes, again: bytes) -> None:
    reader = AnswerReader(for_head=False)
    segment = again * (8192 // len(again))
    reader.feed(start)
    tracemalloc.start()
    try:
        for _ in range(600):  # 5 MB
            reader.feed(segment)
            reader.take()
            reader.interims.clear()
    except AnswerUnreadable:
        assert again not in (b"x", b"1\r\nx\r\n") or not start.endswith(b"\r\n\r\n")
    finally:
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        reader.close()
    assert held < 8_000_000  # of 256 KiB of the shortest headers
