"""What the reader tells of itself while a request comes in; `test_fuzz_requests` has what it reads."""

from __future__ import annotations

import pytest

from service.proxy.http.errors import Refusal
from service.proxy.http.requests import Inbound, RequestReader

HEAD = b"POST /v1/x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"


def reader(*, max_head: int = 1000, max_body: int = 1000) -> RequestReader:
    return RequestReader(max_head=max_head, max_body=max_body, conversation_header=b"x-conversation-id")


@pytest.mark.parametrize("known", [False, True], ids=["new", "known"])
def test_it_tells_how_far_a_request_has_come(known: bool) -> None:
    """Of a head met before no less than of a new one."""
    reading = reader()
    if known:
        for _ in range(3):
            reading.feed(HEAD + b"12345")
        reading.ready.clear()
    assert (reading.is_in_request, reading.is_in_head, reading.bytes_read) == (False, False, 0)
    reading.feed(HEAD[:20])
    assert (reading.is_in_request, reading.is_in_head, reading.bytes_read) == (True, True, 0)
    reading.feed(HEAD[20:] + b"12")
    assert (reading.is_in_request, reading.is_in_head, reading.bytes_read) == (True, False, 2)
    reading.feed(b"345")
    assert (reading.is_in_request, reading.is_in_head, reading.bytes_read) == (False, False, 5)
    reading.feed(HEAD + b"6")
    assert (reading.is_in_request, reading.is_in_head, reading.bytes_read) == (True, False, 6)
    reading.feed(b"7")
    reading.feed(b"890")
    assert [each.body for each in reading.ready if isinstance(each, Inbound)] == [b"12345", b"67890"]
    reading.close()


def test_it_tells_that_a_client_waits_for_100_until_its_body_comes() -> None:
    reading = reader()
    for _ in range(3):  # a head with an expectation is a new one each time
        reading.feed(HEAD.replace(b"Host", b"Expect: 100-continue\r\nHost"))
        assert reading.expects_continue
        reading.expects_continue = False
        reading.feed(b"12345")
        assert not reading.expects_continue
    assert len(reading.ready) == 3
    reading.close()


def test_nothing_is_read_behind_a_refusal_or_a_last_request() -> None:
    for last in (b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"):
        reading = reader()
        reading.feed(HEAD + b"12345" + last + HEAD)
        reading.feed(HEAD)
        assert reading.is_closed
        assert len(reading.ready) == 2
        assert not reading.is_in_request
        reading.close()


@pytest.mark.parametrize("known", [False, True], ids=["new", "known"])
def test_a_body_above_the_limit_is_refused_before_it_comes(known: bool) -> None:
    reading = reader()
    if known:
        for _ in range(3):
            reading.feed(HEAD + b"12345")
        reading.ready.clear()
    reading.feed(HEAD.replace(b"5", b"1001"))
    [refusal] = reading.ready
    assert isinstance(refusal, Refusal)
    assert refusal.status == 413
    assert reading.bytes_read == 0
    reading.close()


def test_refusing_from_outside_lets_go_of_what_was_read() -> None:
    reading = reader()
    reading.feed(HEAD + b"12345" + HEAD + b"123")
    reading.refuse(Refusal(status=408, code="x", message="late"))  # type: ignore[arg-type]
    assert reading.is_closed
    assert not reading.is_in_request
    assert reading.bytes_read == 5, "of the request that is ready"
    [whole, refusal] = reading.ready
    assert isinstance(whole, Inbound)
    assert isinstance(refusal, Refusal)
    reading.close()


OFFER = b"Host: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
PLAIN = b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.mark.parametrize("body", [b"", b"abc", b"GET /smuggled HTTP/1.1\r\nHost: b\r\n\r\n"])
def test_an_offer_of_http2_is_passed_over_wherever_it_is_cut(body: bytes) -> None:
    """llhttp takes what follows the head for another protocol: the body must not become a request."""
    sent = b"POST /v1/completions HTTP/1.1\r\n%bContent-Length: %d\r\n\r\n%b" % (OFFER, len(body), body)
    stream = sent * 2 + PLAIN
    for cut in range(len(stream)):
        reading = reader(max_body=1 << 20)
        reading.feed(stream[:cut])
        reading.feed(stream[cut:])
        read = [each for each in reading.ready if isinstance(each, Inbound)]
        assert [each.body for each in read] == [body, body, b""]
        assert b"http2-settings" in read[0].head.dropped
        reading.close()


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: h2c, websocket\r\n\r\n",
        b"POST / HTTP/1.1\r\n" + OFFER + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\n" + OFFER + b"Content-Length: 100000\r\n\r\n" + b"x" * 100_000,
        b"POST / HTTP/1.1\r\n" + OFFER + b"Expect: 100-continue\r\nContent-Length: 3\r\n\r\n",
    ],
)
def test_other_offers_and_bodies_that_cannot_be_told_apart_are_refused(head: bytes) -> None:
    reading = reader(max_body=1 << 20)
    reading.feed(head + PLAIN)
    [refusal] = reading.ready
    assert isinstance(refusal, Refusal)
    assert refusal.code == "not_implemented"
    reading.close()
