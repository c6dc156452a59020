"""Requests in every shape that clients send: Expect, large and coded bodies, pipelines, HTTP/1.0."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from random import Random

import pytest
import zstandard

from service.proxy.config import ClientLimits
from tests.patience import PATIENCE
from tests.proxy.raw_client import get, post
from tests.proxy.scripted import CHUNKED, OK, Peer, Received
from tests.proxy.standing import StartBackend, StartProxy, eventually, ladder, turns

# -- Expect --------------------------------------------------------------------------------------------


async def test_expect_with_the_body_at_once_needs_no_100(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    answered = await proxy.ask(post(headers=[b"expect: 100-Continue"]))
    assert (answered.status, answered.interims) == (200, [])
    assert not backend.last.header(b"expect")


async def test_expect_with_a_chunked_body_and_behind_another_request(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    may_answer = asyncio.Event()

    async def script(received: Received, peer: Peer) -> None:
        await may_answer.wait()
        await peer.send(OK)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
    await client.send(post() + head + b"Transfer-Encoding: chunked\r\n\r\n")
    await eventually(lambda: bool(backend.requests))
    may_answer.set()
    assert (await client.answer()).status == 200, "the answer to the first comes before the 100 of the second"
    assert await client.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    answered = await client.ask(b"d\r\n" + b'{"model":"m"}' + b"\r\n0\r\n\r\n")
    assert (answered.status, answered.interims) == (200, [])
    assert backend.last.body == b'{"model":"m"}'
    client.close()


async def test_expect_of_http_1_0_is_not_heeded(start_backend: StartBackend, start_proxy: StartProxy) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    await client.send(
        b"POST /v1/x HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n", b"{}", pause=0.05
    )
    answered = await client.answer()
    assert (answered.status, answered.interims) == (200, [])
    client.close()


# -- bodies --------------------------------------------------------------------------------------------


async def test_ten_megabytes_in_chunks_arrive_as_one_body(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    body = b'{"model":"m","messages":[' + Random(1).randbytes(5_000_000).hex().encode() + b"]}"
    await client.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
    for at in range(0, len(body), 70_001):
        part = body[at : at + 70_001]
        await client.send(b"%x\r\n%b\r\n" % (len(part), part))
    assert (await client.ask(b"0\r\n\r\n")).status == 200
    assert backend.last.body == body
    client.close()


BODY = b'{"model":"m","messages":[]}'
CODED = {
    b"gzip": gzip.compress(BODY),
    b"deflate": zlib.compress(BODY),
    b"zstd": zstandard.compress(BODY),
    b"gzip, zstd": zstandard.compress(gzip.compress(BODY)),
    b"br": b"\x0b\x0d\x80{\x03",
    b"made-up": BODY,
}


@pytest.mark.parametrize("coding", CODED)
@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_in_any_coding_passes_as_it_is(
    coding: bytes, chunked: bool, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    body = CODED[coding]
    request = post(body, headers=[b"Content-Encoding: " + coding])
    if chunked:
        head = request[: request.index(b"Content-Length")]
        request = head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    assert (await proxy.ask(request)).status == 200
    assert backend.last.body == body
    assert backend.last.header(b"content-encoding") == [coding]
    assert backend.last.header(b"content-length") == [b"%d" % len(body)]


@pytest.mark.parametrize("coding", [b"gzip", b"deflate", b"zstd", b""])
@pytest.mark.parametrize("chunked", [False, True])
async def test_another_name_in_the_body_never_leaves_a_stale_length(
    coding: bytes, chunked: bool, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    name = "a-name-that-is-much-longer-than-the-one-that-clients-use"
    proxy = await start_proxy(ladder(backend.url, calls_it=name))
    body = CODED.get(coding, BODY)
    request = post(body, headers=[b"Content-Encoding: " + coding] if coding else [])
    if chunked:
        head = request[: request.index(b"Content-Length")]
        request = head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    client = await proxy.connect()
    for _ in range(3):  # and when the head is known
        assert (await client.ask(request)).status == 200
    unpack = {
        b"gzip": gzip.decompress,
        b"deflate": zlib.decompress,
        b"zstd": zstandard.decompress,
        b"": bytes,
    }
    assert len(backend.requests) == 3
    for received in backend.requests:
        assert unpack[coding](received.body) == BODY.replace(b'"m"', b'"%b"' % name.encode())
        assert received.header(b"content-length") == [b"%d" % len(received.body)]
    client.close()


async def test_an_upload_in_parts_and_chunks_passes_unchanged(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    body = (
        b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n'
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
        + Random(2).randbytes(300_000)
        + b"\r\n--b--\r\n"
    )
    client = await proxy.connect()
    await client.send(
        b"POST /v1/files HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=b\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n",
        *(
            b"%x\r\n%b\r\n" % (len(body[at : at + 9000]), body[at : at + 9000])
            for at in range(0, len(body), 9000)
        ),
        b"0\r\n\r\n",
    )
    assert (await client.answer()).status == 200
    assert backend.last.body == body
    assert proxy.ledger["skipped|m|not_generation"] == 1
    client.close()


async def test_a_body_in_countless_chunks_leaves_everybody_else_their_turns(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    """One read of it at a time, of 256,000 bytes at most, and not as many as there is to read."""
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    large = post(b'{"model":"m","x":"' + b"x" * 16_000_000 + b'"}')
    sending = asyncio.get_running_loop().create_task(client.send(large))
    assert (await client.answer()).status == 200, "and the kernel's window has grown"
    await sending
    [connection] = proxy.plane.clients
    connection._transport.pause_reading()  # until there is much to read
    body = b'{"model":"m","x":"' + b"x" * 400_000 + b'"}'
    sending = asyncio.get_running_loop().create_task(
        client.send(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
            + b"".join(b"1\r\n%c\r\n" % byte for byte in body)
            + b"0\r\n\r\n"
        )
    )
    await turns(500)
    connection._transport.resume_reading()
    read, most = 0, 0
    async with asyncio.timeout(PATIENCE):
        while len(backend.requests) < 2:
            await asyncio.sleep(0)
            before, read = read, connection._reader.bytes_read
            most = max(most, read - before)
    assert 0 < most <= 256_000 // len(b"1\r\nx\r\n") + 1
    await sending
    assert (await client.answer()).status == 200
    assert backend.last.body == body
    client.close()


# -- pipelining ----------------------------------------------------------------------------------------


async def test_pipelined_requests_of_all_kinds_are_answered_in_their_order(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await asyncio.sleep(0.01)
        if received.line.startswith(b"HEAD"):
            await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n")
        else:
            await peer.send(CHUNKED + b"2\r\nok\r\n0\r\nX-T: 1\r\n\r\n")

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    kinds = {
        post(): (200, b"ok"),
        get(b"/v1/models/m"): (200, None),
        get(b"/metrics"): (404, None),
        b"HEAD /v1/x HTTP/1.1\r\nHost: a\r\n\r\n": (200, b""),
        post(b'{"model":"other"}'): (404, None),
        b"OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: a\r\n\r\n": (200, b"ok"),
    }
    order = [request for _ in range(4) for request in kinds]
    Random(1).shuffle(order)
    await client.send(b"".join(order))
    for request in order:
        answered = await client.answer(to_head=request.startswith(b"HEAD"))
        status, body = kinds[request]
        assert (answered.status, answered.body if body is not None else None) == (status, body)
    client.close()


@pytest.mark.parametrize(
    ("refused", "status"),
    [
        (b"POST /v1/x HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", 400),
        (b"POST /v1/x HTTP/1.1\r\nHost: a\r\nContent-Length: 999\r\n\r\n" + b"x" * 999, 413),
        (b"GET /v1/x HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 5000 + b"\r\n\r\n", 431),
        (b"GET /v1/x HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", 501),
        (b"POST /v1/x HTTP/1.1\r\nHost: a\r\nExpect: else\r\nContent-Length: 0\r\n\r\n", 417),
        (b"GET /v1/x HTTP/2.0\r\nHost: a\r\n\r\n", 505),
    ],
)
async def test_a_request_behind_a_refused_one_is_never_forwarded(
    refused: bytes, status: int, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url), max_request=500, clients=ClientLimits(max_head=4000))
    client = await proxy.connect()
    await client.send(post() * 2 + refused + post())
    assert [(await client.answer()).status for _ in range(3)] == [200, 200, status]
    assert await client.rest() == b""
    await client.send(post())
    client.close()
    await eventually(lambda: not proxy.plane.clients)
    assert len(backend.requests) == 2


# -- HTTP/1.0 ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep_alive", [False, True])
async def test_http_1_0_reads_a_stream_to_the_end_of_the_connection(
    keep_alive: bool, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + CHUNKED)
        await peer.send(b"3\r\nabc\r\n", b"3\r\ndef\r\n", b"0\r\nX-Trailer: 1\r\n\r\n", pause=0.01)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    asked = b"Connection: keep-alive\r\n" if keep_alive else b""
    answered = await client.ask(b"POST /v1/x HTTP/1.0\r\n%bContent-Length: 2\r\n\r\n{}" % asked)
    assert (answered.body, answered.interims) == (b"abcdef", []), "no interim answers for HTTP/1.0"
    assert answered.header(b"connection") == [b"close"], "without a length nothing else can end the answer"
    assert not answered.header(b"transfer-encoding")
    client.close()
