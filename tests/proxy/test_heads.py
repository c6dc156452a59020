"""Requests that could mean two things are refused; what passes is written for a backend as it came."""

from __future__ import annotations

import json

import pytest

from service.proxy.http.errors import Refusal
from service.proxy.http.heads import ForwardPaths, Head, judge, request_head
from tests.proxy.raw_client import post
from tests.proxy.scripted import OK, Peer, Received
from tests.proxy.standing import StartBackend, StartProxy, ladder

LINE = b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n"
CHUNKED = LINE + b"Transfer-Encoding: chunked\r\n\r\n"
SMUGGLED = b"GET /v1/smuggled HTTP/1.1\r\nHost: a\r\n\r\n"

MALFORMED = {
    "length, then chunked": LINE + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked, then length": LINE + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
    "two lengths that differ": LINE + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "two lengths that agree": LINE + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
    "a list of lengths": LINE + b"Content-Length: 3, 3\r\n\r\nabc",
    "a signed length": LINE + b"Content-Length: +3\r\n\r\nabc",
    "a negative length": LINE + b"Content-Length: -3\r\n\r\nabc",
    "a hexadecimal length": LINE + b"Content-Length: 0x3\r\n\r\nabc",
    "an empty length": LINE + b"Content-Length:\r\n\r\nabc",
    "an endless length": LINE + b"Content-Length: 99999999999999999999\r\n\r\nabc",
    "obs-fold": LINE + b"X: a\r\n b\r\n\r\n",
    "a folded transfer coding": LINE + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "a space before the colon": LINE + b"Content-Length : 3\r\n\r\nabc",
    "a space before the first header": b"GET /v1/x HTTP/1.1\r\n Host: a\r\n\r\n",
    "bare LF everywhere": b"GET /v1/x HTTP/1.1\nHost: a\n\n",
    "bare LF after a header": LINE + b"X: a\nContent-Length: 3\r\n\r\nabc",
    "bare LF at the end of the head": b"GET /v1/x HTTP/1.1\r\nHost: a\r\n\n",
    "bare CR in a value": LINE + b"X: a\rContent-Length: 3\r\n\r\nabc",
    "NUL in a value": LINE + b"X: a\0b\r\n\r\n",
    "a control character in a value": LINE + b"X: a\x01b\r\n\r\n",
    "xchunked": LINE + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "identity": LINE + b"Transfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "chunked twice": LINE + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked, chunked": LINE + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "chunked not last": LINE + b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    "a control before chunked": LINE + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "a quoted chunked": LINE + b'Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n',
    "chunked with a parameter": LINE + b"Transfer-Encoding: chunked;a=b\r\n\r\n0\r\n\r\n",
    "chunked under HTTP/1.0": CHUNKED.replace(b"1.1", b"1.0") + b"0\r\n\r\n",
    "chunk size 0x3": CHUNKED + b"0x3\r\nabc\r\n0\r\n\r\n",
    "a space after the chunk size": CHUNKED + b"3 \r\nabc\r\n0\r\n\r\n",
    "a space before the chunk size": CHUNKED + b" 3\r\nabc\r\n0\r\n\r\n",
    "a negative chunk size": CHUNKED + b"-3\r\nabc\r\n0\r\n\r\n",
    "a chunk size that overflows": CHUNKED + b"fffffffffffffffff\r\nabc",
    "bare LF after the chunk size": CHUNKED + b"3\nabc\r\n0\r\n\r\n",
    "bare LF after the chunk": CHUNKED + b"3\r\nabc\n0\r\n\r\n",
    "nothing after the chunk": CHUNKED + b"3\r\nabc0\r\n\r\n",
    "a chunk longer than its size": CHUNKED + b"3\r\nabcdef\r\n0\r\n\r\n",
    "bare LF in a chunk extension": CHUNKED + b"3;a\nabc\r\n0\r\n\r\n",
    "no chunk size": CHUNKED + b"\r\nabc\r\n0\r\n\r\n",
    "bare LF at the end of trailers": CHUNKED + b"0\r\n\n",
    "a length in the trailers": CHUNKED + b"0\r\nContent-Length: 5\r\n\r\n",
    "a space before a trailer's colon": CHUNKED + b"0\r\nX : y\r\n\r\n",
    "no Host": b"GET /v1/x HTTP/1.1\r\n\r\n",
    "two Hosts": b"GET /v1/x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "a Host with a path": b"GET /v1/x HTTP/1.1\r\nHost: a/b\r\n\r\n",
    "a Host with a user": b"GET /v1/x HTTP/1.1\r\nHost: u@a\r\n\r\n",
    "two Hosts in one": b"GET /v1/x HTTP/1.1\r\nHost: a, b\r\n\r\n",
    "no name": LINE + b": x\r\n\r\n",
    "no colon": LINE + b"foo\r\n\r\n",
    "a name with a bracket": LINE + b"f(o: x\r\n\r\n",
    "HTTP/1.2": b"GET /v1/x HTTP/1.2\r\nHost: a\r\n\r\n",
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a space in the target": b"GET /v1/a b HTTP/1.1\r\nHost: a\r\n\r\n",
    "a tab in the target": b"GET /v1/a\tb HTTP/1.1\r\nHost: a\r\n\r\n",
    "a fragment": b"GET /v1/a#b HTTP/1.1\r\nHost: a\r\n\r\n",
    "eight bits in the target": b"GET /v1/\xff HTTP/1.1\r\nHost: a\r\n\r\n",
    "a method in lower case": b"get /v1/x HTTP/1.1\r\nHost: a\r\n\r\n",
    "an unknown method": b"FOO /v1/x HTTP/1.1\r\nHost: a\r\n\r\n",
    "a TLS hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "an absolute target without a host": b"GET http:///v1/x HTTP/1.1\r\nHost: a\r\n\r\n",
    "a target of another scheme": b"GET ftp://a/v1/x HTTP/1.1\r\nHost: a\r\n\r\n",
    "asterisk for another method": b"GET * HTTP/1.1\r\nHost: a\r\n\r\n",
}
UNSUPPORTED = {
    "a transfer coding besides chunked": (501, LINE + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
    "CONNECT": (501, b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"),
    "TRACE": (501, b"TRACE /v1/x HTTP/1.1\r\nHost: a\r\n\r\n"),
    "Upgrade": (501, b"GET /v1/x HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"),
    "Upgrade with a body": (
        501,
        LINE + b"Connection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 3\r\n\r\nabc",
    ),
    "RTSP": (501, b"DESCRIBE /v1/x RTSP/1.0\r\nHost: a\r\n\r\n"),
    "HTTP/2.0": (505, b"GET /v1/x HTTP/2.0\r\nHost: a\r\n\r\n"),
    "HTTP/0.9": (505, b"GET /v1/x HTTP/0.9\r\nHost: a\r\n\r\n"),
    "another expectation": (417, LINE + b"Expect: 200-maybe\r\nContent-Length: 0\r\n\r\n"),
}


@pytest.mark.parametrize("request_bytes", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("split", [False, True], ids=["at once", "byte by byte"])
async def test_a_malformed_request_is_refused_and_nothing_behind_it_is_served(
    request_bytes: bytes, split: bool, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    sent = request_bytes + SMUGGLED
    await client.send(*((sent[i : i + 1] for i in range(len(sent))) if split else (sent,)))
    answered = await client.answer()
    assert (answered.status, answered.error) == (400, b"bad_request")
    assert answered.header(b"connection") == [b"close"]
    assert json.loads(answered.body)["error"]["type"] == "invalid_request_error"
    assert await client.rest() == b""
    assert not backend.requests


@pytest.mark.parametrize(("status", "request_bytes"), UNSUPPORTED.values(), ids=UNSUPPORTED)
async def test_what_is_not_spoken_here_is_said_so(
    status: int, request_bytes: bytes, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    answered = await client.ask(request_bytes + SMUGGLED)
    assert answered.status == status
    assert await client.rest() == b""
    assert not backend.requests


@pytest.mark.parametrize(
    ("target", "arrives_as"),
    [
        (b"http://proxy:80/v1/chat/completions?a=%20b", b"/v1/chat/completions?a=%20b"),
        (b"HTTPS://proxy/v1/chat/completions", b"/v1/chat/completions"),
        (b"/v1/chat/completions?x=/../y", b"/v1/chat/completions?x=/../y"),
    ],
)
async def test_the_target_arrives_in_origin_form(
    target: bytes, arrives_as: bytes, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    assert (await proxy.ask(post(path=target))).status == 200
    assert backend.last.line == b"POST %b HTTP/1.1" % arrives_as


async def test_data_after_connection_close_is_not_served(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    await client.send(post(headers=[b"Connection: close"]) + SMUGGLED)
    answered = await client.answer()
    assert (answered.status, answered.header(b"connection")) == (200, [b"close"])
    assert await client.rest() == b""
    assert len(backend.requests) == 1


async def test_empty_lines_before_a_request_are_forgiven(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    """RFC 9112, 2.2: a server should ignore at least one empty line before the request line."""

    async def script(received: Received, peer: Peer) -> None:
        await peer.send(OK)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    assert (await proxy.ask(b"\r\n\r\n" + post())).status == 200


FORWARDED = ForwardPaths(("/v1/", "/health", "/tokenize"))


@pytest.mark.parametrize(
    "path", [b"/v1/chat/completions", b"/v1/a.b/c", b"/v1/%E4%BD%A0", b"/health", b"/v1/a..b"]
)
def test_configured_paths_pass(path: bytes) -> None:
    assert path in FORWARDED


@pytest.mark.parametrize(
    "path",
    [
        b"/",
        b"/v1",
        b"/healthz",
        b"/health/",
        b"/sleep",
        b"/metrics",
        b"//v1/x",
        b"/V1/x",
        b"/v1/../sleep",
        b"/v1/..",
        b"/v1/./x",
        b"/v1/%2e%2e/sleep",
        b"/v1/.%2E/sleep",
        b"/v1/..%2fsleep",
        b"/v1/..%5csleep",
        b"/v1/..\\sleep",
        b"/v1/..;x=1/sleep",
        b"/v1/%2e%2e;x/sleep",
        b"/v1/a%00b",
    ],
)
def test_other_paths_and_dot_segments_in_any_spelling_do_not(path: bytes) -> None:
    assert path not in FORWARDED


def test_a_backend_s_key_replaces_whatever_credential_the_client_sent() -> None:
    head = judge(
        method=b"POST",
        target=b"/v1/x",
        version="1.1",
        headers=[
            (b"Host", b"proxy"),
            (b"Authorization", b"Bearer client"),
            (b"X-API-Key", b"client"),
            (b"authorization", b"Bearer other"),
        ],
    )
    assert isinstance(head, Head)
    written = request_head(head, authority=b"gpu:8000", api_key=b"k", length=0, request_id=b"r")
    assert written == (
        b"POST /v1/x HTTP/1.1\r\nHost: gpu:8000\r\nAuthorization: Bearer k\r\nx-request-id: r\r\n\r\n"
    )
    written = request_head(head, authority=b"gpu", api_key=None, length=0, request_id=b"r")
    assert written.count(b"client") == 2


def test_an_http_1_0_request_needs_no_host_and_gets_the_backend_s() -> None:
    head = judge(method=b"GET", target=b"/v1/x", version="1.0", headers=[])
    assert isinstance(head, Head)
    written = request_head(head, authority=b"gpu", api_key=None, length=0, request_id=b"r")
    assert written == b"GET /v1/x HTTP/1.1\r\nhost: gpu\r\nx-request-id: r\r\n\r\n"


def test_several_hosts_are_refused_under_http_1_0_too() -> None:
    judged = judge(method=b"GET", target=b"/v1/x", version="1.0", headers=[(b"Host", b"a"), (b"Host", b"a")])
    assert isinstance(judged, Refusal)


def test_a_backends_own_headers_replace_the_clients_and_hide_its_credentials() -> None:
    head = judge(
        method=b"POST",
        target=b"/v1/x",
        version="1.1",
        headers=[
            (b"Host", b"proxy"),
            (b"X-Tenant", b"mine"),
            (b"x-api-key", b"client"),
            (b"Connection", b"x-tenant"),
            (b"Content-Length", b"2"),
        ],
    )
    assert isinstance(head, Head)
    ours = ((b"x-tenant", b"gold"), (b"Authorization", b"Basic Zw=="))
    written = request_head(head, authority=b"gpu", api_key=None, length=2, request_id=b"r", ours=ours)
    assert written == (
        b"POST /v1/x HTTP/1.1\r\nHost: gpu\r\nContent-Length: 2\r\n"
        b"x-tenant: gold\r\nAuthorization: Basic Zw==\r\nx-request-id: r\r\n\r\n"
    )
    plain = request_head(head, authority=b"gpu", api_key=None, length=2, request_id=b"r")
    assert b"gold" not in plain, "another backend of the same address has none of them"
    assert b"x-api-key: client" in plain
