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
