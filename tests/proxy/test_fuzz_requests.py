"""The request parser under fire: no crash, no second meaning, and h11 agrees or the difference is listed.

`TIERGATE_FUZZ=50` makes every search fifty times as long (by default all of them together take seconds).
Inputs worth keeping go to `corpus/requests`; the first word of a file's name is what must become of it.
"""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from service.proxy.http.heads import request_head
from service.proxy.http.holding import SMALL_BODY, Bodies
from service.proxy.http.requests import Inbound, RequestReader
from tests.proxy.differences import REQUESTS_LAXER, REQUESTS_STRICTER
from tests.proxy.generated import cuts_of, distort, make_request
from tests.proxy.parsing import (
    MAX_BODY,
    MAX_HEAD,
    RequestOutline,
    h11_requests,
    new_request_reader,
    outline_of,
    outlines,
    read_requests,
    segments,
)

LONGER = int(os.environ.get("TIERGATE_FUZZ", "1"))
CORPUS = sorted((Path(__file__).parent / "corpus" / "requests").iterdir())
CHANCES = st.integers(0, 2**48).map(Random)
"""Seeds, not draws: a hundred times as fast, and a failure prints the bytes anyway."""
PROBE = b"GET /v1/probe HTTP/1.1\r\nHost: probe\r\n\r\n"


def search(examples: int) -> settings:
    quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
    return settings(max_examples=examples * LONGER, deadline=None, suppress_health_check=quiet)


def hostile(chance: Random) -> bytes:
    """One or two requests on one connection, mostly with something wrong in them."""
    return b"".join(distort(chance, make_request(chance).wire) for _ in range(chance.choice((1, 1, 2))))


def check_against_h11(received: bytes) -> set[object]:
    """Both make the same requests of it, as far as both go on; returns the differences met."""
    ours, theirs = outlines(received), h11_requests(received)
    for number, mine in enumerate(ours):
        both = number < len(theirs.requests)
        if mine.refused is not None:
            if not both:
                return set()
            known = {each for each in REQUESTS_STRICTER if each.explains(mine.message)}
            assert known, f"we refuse, h11 accepts: {mine.message}: {received!r}"
            return set(known)
        if not both:
            if theirs.end == "waits":  # for the end of what we took as ended
                raise AssertionError(f"h11 waits for more of {received!r}")
            known_lax = {each for each in REQUESTS_LAXER if each.explains(theirs.end, received)}
            assert known_lax, f"we accept, h11 does not ({theirs.end}): {received!r}"
            return set(known_lax)
        method, target, body = theirs.requests[number]
        assert (mine.method, mine.body) == (method, body), received
        assert target.endswith(mine.target) or mine.target[:1] == b"/", received
    if len(theirs.requests) > len(ours):
        # llhttp heeds `Connection: close` in trailers, and waits for the rest of an HTTP/2 preface.
        closed = bool(ours) and not ours[-1].keep_alive
        assert closed or received.lstrip(b"\r\n").startswith(b"PRI"), received
    return set()


def check_forwarded(received: bytes) -> None:
    """What would be written to a backend is, to h11, exactly the one request that was meant."""
    for each in read_requests(received):
        if isinstance(each, Inbound):
            head = each.head
            written = request_head(
                head, authority=b"gpu:8000", api_key=None, length=len(each.body), request_id=b"r"
            )
            read = h11_requests(written + each.body)
            assert read.requests == [(head.method, head.target, each.body)], (received, written)
            assert not read.leftover
            assert read.end == "waits", (received, read.end)


def check_segments(received: bytes, cuts: list[int]) -> None:
    """However the network cuts it, it means the same; and nothing is read behind a refusal."""
    whole = outlines(received)
    assert outlines(received, cuts) == whole, (received, cuts)
    assert all(each.refused is None for each in whole[:-1])


def check_warm(before: bytes, received: bytes, cuts: list[int]) -> None:
    """A connection that has seen requests reads the same as a new one, whatever it has come to know.

    The same head must come twice before it is known, so `before` comes twice, each time in a read of its own.
    """
    first = outlines(before)
    if outlines(before + PROBE) != first + outlines(PROBE) or before.endswith(b"\r"):
        return  # its end is not the beginning of another
    start = len(before) * 2
    at = [len(before), start, *(start + cut for cut in cuts)]
    assert outlines(before * 2 + received, at) == first * 2 + outlines(received), (before, received, at)


def check(received: bytes, cuts: list[int]) -> None:
    """Everything that must hold of any bytes from a client."""
    check_segments(received, cuts)
    check_warm(received, received, cuts)
    check_warm(received, received, [])
    check_against_h11(received)
    check_forwarded(received)


@search(600)
@given(CHANCES)
def test_a_well_formed_request_is_read_as_it_is_meant(chance: Random) -> None:
    made = make_request(chance)
    [read] = outlines(made.wire, cuts_of(chance, len(made.wire)))
    assert (read.method, read.target, read.body) == (made.method, made.target, made.body)
    check(made.wire, cuts_of(chance, len(made.wire)))


@search(2500)
@given(CHANCES)
def test_a_distorted_request_has_one_meaning_or_is_refused(chance: Random) -> None:
    received = hostile(chance)
    first = next(iter(outlines(received)), None)
    event("waits" if first is None else "refused" if first.refused else "accepted")
    check(received, cuts_of(chance, len(received)))


@search(2000)
@given(CHANCES)
def test_a_connection_that_knows_its_client_reads_as_a_new_one(chance: Random) -> None:
    """Heads met before may be taken without parsing them: a request that only looks alike must not be."""
    before = make_request(chance).wire
    received = distort(chance, before) + chance.choice((b"", b"", before, distort(chance, before)))
    check_warm(before, received, cuts_of(chance, len(received)))


@search(60)
@given(CHANCES)
def test_a_shared_budget_changes_no_meaning_and_gets_everything_back(chance: Random) -> None:
    """Bodies around the size from which they are counted, framed and cut in every way."""
    sizes = [chance.choice((0, 10, SMALL_BODY - 1, SMALL_BODY, SMALL_BODY + 1, 150_000)) for _ in range(5)]
    received = b"".join(
        b"POST /v1/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n%b0\r\n\r\n"
        % (b"%x\r\n%b\r\n" % (size, b"x" * size) if size else b"")
        if chance.random() < 0.3
        else b"POST /v1/x HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%b" % (size, b"x" * size)
        for size in sizes
    )
    budget = Bodies(chance.choice((100_000, 200_000, 10**9)))
    reader = RequestReader(
        max_head=MAX_HEAD, max_body=MAX_BODY, conversation_header=b"x-conversation-id", bodies=budget
    )
    whole, found = outlines(received), []
    for segment in segments(received, [chance.randrange(len(received) + 1) for _ in range(8)]):
        reader.feed(segment)
        assert 0 <= budget.used <= budget.limit
        while reader.ready and chance.random() < 0.5:
            each = reader.ready.popleft()
            found.append(outline_of(each))
            if isinstance(each, Inbound):
                reader.let_go(each)
    found += [outline_of(each) for each in reader.ready]
    if found[-1].refused is not None:
        assert found.pop().refused == (503, "busy")
        assert found == whole[: len(found)]
    else:
        assert found == whole
    reader.close()
    assert budget.used == 0


@search(400)
@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=5))
def test_noise_is_refused_or_waited_for(received: bytes, cuts: list[int]) -> None:
    check(received, cuts)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_the_corpus_is_read_as_its_names_say(path: Path) -> None:
    received = path.read_bytes()
    becomes = path.stem.partition("-")[0]
    read = outlines(received)
    if becomes == "waits":
        assert read == []
    elif becomes == "refused":
        assert read[0].refused is not None
        assert len(read) == 1
    else:
        assert becomes == "accepted"
        assert read
        assert all(each.refused is None for each in read)
    for cut in range(1, len(received)):
        assert outlines(received, [cut]) == read
    check(received, list(range(len(received))))


def test_every_listed_difference_is_shown_by_the_corpus() -> None:
    shown: set[object] = set()
    for path in CORPUS:
        shown |= check_against_h11(path.read_bytes())
    assert {*REQUESTS_STRICTER, *REQUESTS_LAXER} - shown == set()


ENDLESS = {
    "target": (b"GET /", b"x"),
    "header name": (b"GET / HTTP/1.1\r\n", b"x"),
    "header value": (b"GET / HTTP/1.1\r\nX: ", b"x"),
    "headers": (b"GET / HTTP/1.1\r\n", b"X: y\r\n"),
    "chunk extension": (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"x"),
    "chunk size": (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", b"0"),
    "trailers": (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X: y\r\n"),
    "chunks": (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    "empty lines": (b"", b"\r\n"),
}


@pytest.mark.parametrize(("start", "again"), ENDLESS.values(), ids=ENDLESS)
def test_what_never_ends_takes_a_bounded_amount_of_memory(start: bytes, again: bytes) -> None:
    reader = new_request_reader()
    segment = again * (8192 // len(again))
    reader.feed(start)
    tracemalloc.start()
    try:
        for _ in range(1200):  # 10 MB
            reader.feed(segment)
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()
    [*_, last] = [*reader.ready, None]
    assert reader.is_closed or again == b"\r\n", last
    reader.close()


def test_a_head_that_comes_byte_by_byte_takes_time_in_its_length() -> None:
    """Not in the square of it: this takes a fraction of a second, or the suite's time limit ends it."""
    head = (
        b"GET /" + b"x" * 30_000 + b" HTTP/1.1\r\nHost: a\r\nX: " + b"y" * (MAX_HEAD - 40_000) + b"\r\n\r\n"
    )
    [read] = outlines(head, range(len(head)))
    assert read == RequestOutline(
        method=b"GET",
        target=head[4:30_005],
        headers=((b"Host", b"a"), (b"X", b"y" * (MAX_HEAD - 40_000))),
        keep_alive=True,
    )
