"""The request reader against h11, an independent parser: both accept the same, and differences are listed.

Stricter than h11 is safe. Laxer must be harmless: what we forward is written anew, so that only the meaning
of what we accepted matters.
"""

from __future__ import annotations

import itertools

import h11
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from service.proxy.errors import Refusal
from service.proxy.requests import Inbound, RequestReader

STRICTER = (
    # What h11 takes and we do not; each is a way in which two parsers have been made to disagree.
    "Expected CRLF after version",  # bare LF
    "Missing expected CR",
    "Missing expected LF",
    "Invalid header field char",
    "Unexpected whitespace after header value",  # obs-fold
    "Invalid header value char",  # obs-fold of an empty value, control characters
    "Duplicate Content-Length",  # even when they agree
    "Invalid character in Content-Length",  # `3, 3`
    "can't be present with",  # Content-Length and Transfer-Encoding
    "Transfer-Encoding under HTTP/1.0",
    "Invalid `Transfer-Encoding`",
    "Content-Length overflow",
    "Invalid character in chunk",  # white space around the size
    "Chunk size overflow",
    "more than one Host header",
    "invalid Host header",
    "invalid request target",
    "Invalid method",  # an unknown token
    "Expected space after method",
    "Invalid char",
    "in url",
    "Expected HTTP/",
    "Invalid HTTP version",
    "is not supported",  # methods, Upgrade
    "is not spoken here",  # HTTP/2.0, HTTP/0.9
    "The only expectation",
    "Pause on PRI",
    "The only transfer coding",
)


def ours(received: bytes, cuts: list[int]) -> list[Inbound | Refusal]:
    reader = RequestReader(max_head=100_000, max_body=100_000, conversation_header=b"x-conversation-id")
    edges = sorted({0, len(received), *(cut % (len(received) + 1) for cut in cuts)})
    for start, end in itertools.pairwise(edges):
        reader.feed(received[start:end])
    return list(reader.ready)


def theirs(received: bytes) -> tuple[bytes, bytes, bytes] | str | None:
    """Method, target and body of the first request; what is wrong with it; None when it is not whole."""
    connection = h11.Connection(h11.SERVER)
    body = b""
    request: h11.Request | None = None
    try:
        connection.receive_data(received)
        while True:
            each = connection.next_event()
            if isinstance(each, h11.Request):
                request = each
            elif isinstance(each, h11.Data):
                body += bytes(each.data)
            elif isinstance(each, h11.EndOfMessage):
                assert request is not None
                return request.method, request.target, body
            else:
                return None
    except h11.RemoteProtocolError as error:
        return str(error)


NAMES = st.sampled_from(
    [
        b"Host",
        b"host",
        b"Content-Length",
        b"Transfer-Encoding",
        b"X-A",
        b"Connection",
        b"Expect",
        b"x_b",
        b"X:",
    ]
)
VALUES = st.sampled_from(
    b"a|3|0|chunked|Chunked|gzip, chunked|close|keep-alive|a b\tc|\xff|3, 3|+3|100-continue|identity|upgrade|"
    b"a\x00b|chunked, chunked| 3 ||".split(b"|")
)
HEADERS = st.lists(st.tuples(NAMES, st.sampled_from([b": ", b":", b" : ", b":\t"]), VALUES), max_size=4)
LINES = st.builds(
    lambda method, target, version: b"%b %b %b" % (method, target, version),
    st.sampled_from([b"GET", b"POST", b"HEAD", b"get", b"FOO", b"PRI", b"CONNECT", b"GET "]),
    st.sampled_from([b"/", b"/v1/x?y", b"*", b"http://a/b", b"/a b", b"/\xff", b"", b"/a#b"]),
    st.sampled_from(
        [b"HTTP/1.1", b"HTTP/1.0", b"HTTP/1.2", b"HTTP/2.0", b"http/1.1", b"HTTP/0.9", b"RTSP/1.0"]
    ),
)
BODIES = st.sampled_from(
    [
        b"",
        b"abc",
        b"0\r\n\r\n",
        b"3\r\nabc\r\n0\r\n\r\n",
        b"3;x=y\r\nabc\r\n0\r\nT: 1\r\n\r\n",
        b"03\r\nabc\r\n0\r\n\r\n",
        b"3\nabc\n0\n\n",
        b"0x3\r\nabc\r\n0\r\n\r\n",
        b"3 \r\nabc\r\n0\r\n\r\n",
        b"ffffffffffffffffff\r\nabc",
    ]
)
ENDS = st.sampled_from([b"\r\n"] * 6 + [b"\n", b"\r", b"\r\n ", b"\r\n\r\n"])
MUTATIONS = st.lists(
    st.tuples(st.integers(0, 400), st.sampled_from([b"", b"\r", b"\n", b" ", b":", b"\0", b"3"])), max_size=2
)


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """Mostly well-formed requests with something wrong in them."""
    host = draw(st.sampled_from([[(b"Host", b": ", b"a")]] * 5 + [[]]))
    parts = [draw(LINES)]
    parts += [name + colon + value for name, colon, value in host + draw(HEADERS)]
    made = b"".join(part + draw(ENDS) for part in parts) + b"\r\n" + draw(BODIES)
    for at, inserted in draw(MUTATIONS):
        cut = at % (len(made) + 1)
        made = made[:cut] + inserted + made[cut + (not inserted) :]
    return made


CUTS = st.lists(st.integers(0, 500), max_size=5)


@settings(max_examples=1500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(requests(), CUTS)
@example(
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", []
)
@example(b"GET / RTSP/1.0\r\nHost: a\r\n\r\n", [])
@example(b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", [])
def test_what_we_accept_h11_accepts_alike_or_the_difference_is_listed(
    received: bytes, cuts: list[int]
) -> None:
    read = ours(received, cuts)
    first = read[0] if read else None
    other = theirs(received)
    if isinstance(first, Inbound):
        event("accepted")
        if isinstance(other, tuple):
            method, target, body = other
            assert (first.head.method, first.body) == (method, body)
            assert target.endswith(first.head.target) or first.head.target == b"/"
        else:
            assert is_harmless(received, first, other), (received, other)
    elif isinstance(first, Refusal):
        event("refused")
        if isinstance(other, tuple):
            assert any(known in first.message for known in STRICTER), (received, first.message)
    elif isinstance(other, tuple):
        # llhttp waits for the rest of an HTTP/2 preface, and the time limit on heads ends that.
        assert received.lstrip(b"\r\n").startswith(b"PRI"), received


def is_harmless(received: bytes, accepted: Inbound, theirs: str | None) -> bool:
    """The ways in which llhttp is laxer than h11; none is passed on."""
    line = received.lstrip(b"\r\n").split(b"\r\n", 1)[0]
    return bool(
        b"  " in line  # several spaces between the parts of the request line
        or line.endswith((b"RTSP/1.0", b"ICE/1.0"))  # read and forwarded as HTTP/1.0
        or received[:1] in (b"\r", b"\n")  # empty lines first, in any number
    )


@settings(max_examples=400, deadline=None)
@given(st.lists(requests(), min_size=1, max_size=3), CUTS)
def test_cuts_change_nothing(several: list[bytes], cuts: list[int]) -> None:
    """However the network cuts the bytes, the same requests come out, in order, and a refusal is the last."""
    received = b"".join(several)
    whole, cut = ours(received, []), ours(received, cuts)
    assert [outline(each) for each in whole] == [outline(each) for each in cut]
    assert not any(isinstance(each, Refusal) for each in whole[:-1])


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300), CUTS)
def test_noise_never_raises(received: bytes, cuts: list[int]) -> None:
    assert all(isinstance(each, Inbound | Refusal) for each in ours(received, cuts))


def outline(read: Inbound | Refusal) -> tuple[object, ...]:
    if isinstance(read, Refusal):
        return (read.status, read.code)
    return (read.head.method, read.head.target, read.head.headers, read.body, read.keep_alive)
