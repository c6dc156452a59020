"""Backends that fail in every way, and clients that leave: what the other side sees, and what is recorded."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from service.fleet import Route
from service.proxy.config import Mirroring, Timeouts
from service.store.redis.capture import Ending
from tests.ports import free_port
from tests.proxy.raw_client import Answered, get, post
from tests.proxy.scripted import CHUNKED, OK, Peer, Received, Script
from tests.proxy.standing import StartBackend, StartProxy, eventually, ladder


async def ask_of(
    script: Script, start_backend: StartBackend, start_proxy: StartProxy, request: bytes = post(), **how: bool
) -> Answered:
    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    return await proxy.ask(request, **how)


@pytest.mark.parametrize(
    ("begun", "how"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npart", "close"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npart", "reset"),
        (CHUNKED + b"4\r\npart\r\n", "close"),
        (CHUNKED + b"4\r\npart\r\n", "reset"),
        (CHUNKED + b"8\r\npart", "close"),
        (CHUNKED + b"4\r\npart\r\n0\r\n", "close"),
        (CHUNKED + b"4\r\npart\r\n", "garbage"),
        (b"HTTP/1.1 200 OK\r\n\r\npart", "reset"),
    ],
    ids=[
        "short",
        "short reset",
        "no last chunk",
        "chunked reset",
        "in a chunk",
        "in trailers",
        "garbage",
        "eof",
    ],
)
async def test_an_answer_that_breaks_off_is_seen_to_break_off(
    begun: bytes, how: str, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(begun, pause=0.05)
        if how == "garbage":
            await peer.send(b"nonsense\r\n")
        if how == "close":
            peer.close()
        elif how == "reset":
            peer.reset()
        else:
            assert await peer.gone()

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    answered = await proxy.ask(post())
    assert (answered.status, answered.body) == (200, b"part")
    assert not answered.is_whole
    [capture] = await proxy.captures(1)
    assert (capture.ending, capture.response_body) == (Ending.CUT_OFF, b"part")


async def test_a_body_that_ends_with_the_connection_is_whole(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 200 OK\r\n\r\nall ", b"of it", pause=0.02)
        peer.close()

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    for _ in range(2):
        answered = await client.ask(post())
        assert (answered.body, answered.is_whole) == (b"all of it", True)
    assert (await proxy.captures(2))[0].ending is Ending.COMPLETE


async def test_a_stale_connection_costs_the_client_nothing(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    """The backend closes an idle connection just as a request is written on it."""

    async def script(received: Received, peer: Peer) -> None:
        if backend.connections == 1 and len(backend.requests) == 2:
            peer.reset()
        else:
            await peer.send(OK)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    for _ in range(3):
        assert (await client.ask(post())).status == 200
    assert backend.connections == 2
    assert len(backend.requests) == 4
    [server] = proxy.plane.servers
    assert (server.failures, server.outstanding) == (0, 0)


async def test_a_connection_that_the_backend_closed_is_not_used_again(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(OK)
        peer.close()

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    for _ in range(3):
        assert (await proxy.ask(post())).status == 200
        await eventually(lambda: not next(iter(proxy.plane.servers)).idle)
    assert len(backend.requests) == 3


@pytest.mark.parametrize(
    "body",
    [b'{"model":"m","previous_response_id":"r1"}', b'{"model":"m","background":true}'],
)
async def test_a_request_that_leaves_something_behind_is_not_asked_twice(
    body: bytes, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        if len(backend.requests) == 2:
            peer.reset()
        else:
            await peer.send(OK)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    assert (await client.ask(post(body, path=b"/v1/responses"))).status == 200
    answered = await client.ask(post(body, path=b"/v1/responses"))
    assert (answered.status, answered.error) == (502, b"backend_closed")
    assert len(backend.requests) == 2


async def test_a_backend_that_dies_on_a_new_connection_is_asked_once(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        peer.close()

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    answered = await proxy.ask(post())
    assert (answered.status, answered.error) == (502, b"backend_closed")
    assert json.loads(answered.body)["error"]["type"] == "server_error"
    assert len(backend.requests) == 1
    [capture] = await proxy.captures(1)
    assert (capture.ending, capture.status) == (Ending.CUT_OFF, None)


async def test_another_backend_is_asked_when_one_dies_before_answering(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def die(received: Received, peer: Peer) -> None:
        peer.reset()

    bad, good = await start_backend(die), await start_backend()
    proxy = await start_proxy(ladder([bad.url, good.url]))
    for _ in range(6):
        assert (await proxy.ask(post())).status == 200
    assert 1 <= len(bad.requests) <= 3, "three failures in a row eject it"
    assert len(good.requests) == 6


async def test_a_lost_request_is_repeated_once_however_many_backends_there_are(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    """It may be what ends them: a third would be gone, too."""

    async def die(received: Received, peer: Peer) -> None:
        peer.reset()

    good, second, first = await start_backend(), await start_backend(die), await start_backend(die)
    proxy = await start_proxy(ladder(good.url, second.url, first.url))
    await asyncio.sleep(0)  # the plane begins to follow
    proxy.store.publish(Route.only("m", "t2", version=1))
    answered = await proxy.ask(post())
    assert (answered.status, answered.error) == (502, b"backend_closed")
    assert [len(backend.requests) for backend in (first, second, good)] == [1, 1, 0]
    assert proxy.plane.meters.counters["retries", (("reason", "backend_closed"),)] == 1


async def test_a_request_that_lost_an_idle_connection_is_not_repeated_when_the_next_one_ends_too(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def answer_once(received: Received, peer: Peer) -> None:
        if len(dying.requests) == 1:
            await peer.send(OK)
        else:
            peer.reset()

    good, dying = await start_backend(), await start_backend(answer_once)
    proxy = await start_proxy(ladder(good.url, dying.url))
    await asyncio.sleep(0)
    proxy.store.publish(Route.only("m", "t1", version=1))
    assert (await proxy.ask(post())).status == 200
    assert (await proxy.ask(post())).error == b"backend_closed"
    assert (len(dying.requests), len(good.requests)) == (3, 0)


async def test_three_backends_that_accept_no_connection_are_enough(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    """Nothing was sent, so others may be asked; but the client has waited for three of them."""
    good = await start_backend()
    proxy = await start_proxy(ladder(good.url, *(f"http://127.0.0.1:{free_port()}" for _ in range(4))))
    await asyncio.sleep(0)
    proxy.store.publish(Route.only("m", "t4", version=1))

    def asked() -> list[str]:
        counters = proxy.plane.meters.counters
        return [
            server.url
            for server in proxy.plane.servers
            if counters["backend_connect_failures", (("backend", server.url),)]
        ]

    answered = await proxy.ask(post())
    assert (answered.status, answered.error) == (503, b"backend_unreachable")
    assert len(asked()) == 3
    assert not good.requests
    proxy.keep_out()
    answered = await proxy.ask(post())
    assert answered.status == 200, "those are out now, and the fourth was not asked in vain"
    assert answered.header(b"x-tiergate-fallback-from") == [b"t4"]
    assert len(asked()) == 4
    assert len(good.requests) == 1


async def test_no_backend_is_503_with_retry_after(start_proxy: StartProxy) -> None:
    proxy = await start_proxy(ladder(f"http://127.0.0.1:{free_port()}"))
    first = await proxy.ask(post())
    assert (first.status, first.error) == (503, b"backend_unreachable")
    proxy.keep_out()
    second = await proxy.ask(post())
    assert (second.status, second.error) == (503, b"no_backend")
    assert second.header(b"retry-after") == [b"1"]
    assert [capture.ending for capture in await proxy.captures(2)] == [Ending.UNREACHABLE] * 2


async def test_a_backend_that_is_back_is_used_again(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    port = free_port()
    proxy = await start_proxy(ladder(f"http://127.0.0.1:{port}"))
    assert (await proxy.ask(post())).status == 503
    await start_backend(port=port)
    await asyncio.sleep(1.1)
    assert (await proxy.ask(post())).status == 200
    assert (await proxy.ask(post())).status == 200


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"not http\r\n\r\n", "no HTTP"),
        (b"HTTP/1.1 200 OK\nContent-Length: 0\n\n", "bare LF"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "two lengths"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "both"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "unknown coding"),
        (b"HTTP/1.1 200 OK\r\nX: a\r\n folded\r\nContent-Length: 0\r\n\r\n", "obs-fold"),
        (b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nzz", "unasked upgrade"),
        (b"HTTP/0.9 200 OK\r\n\r\nabc", "HTTP/0.9"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 600_000, "an endless head"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_an_answer_that_is_not_http_is_502(
    answer: bytes, why: str, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(answer)
        await peer.gone()

    answered = await ask_of(script, start_backend, start_proxy)
    assert (answered.status, answered.error) == (502, b"bad_answer")


async def test_bytes_after_an_answer_are_nobody_s_answer(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(OK + b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison")
        assert await peer.gone()

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    for _ in range(2):
        assert (await client.ask(post())).body == b"{}"
    assert backend.connections == 2


async def test_bytes_on_an_idle_connection_end_it(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(OK, pause=0.05)
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison")
        assert await peer.gone()

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    assert (await client.ask(post())).body == b"{}"
    await eventually(lambda: not next(iter(proxy.plane.servers)).idle)
    assert (await client.ask(post())).body == b"{}"


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
    ],
)
async def test_an_answer_to_head_does_not_swallow_the_next(
    answer: bytes, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(answer if received.line.startswith(b"HEAD") else OK)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    for _ in range(2):
        answered = await client.ask(b"HEAD /v1/x HTTP/1.1\r\nHost: a\r\n\r\n", to_head=True)
        assert answered.status == 200
        assert (await client.ask(post())).body == b"{}"


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
@pytest.mark.parametrize("length", [b"", b"Content-Length: 5\r\n"])
async def test_answers_without_bodies_leave_the_connection_in_step(
    status: bytes, length: bytes, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        first = len(backend.requests) == 1
        await peer.send(b"HTTP/1.1 %b\r\n%bETag: x\r\n\r\n" % (status, length) if first else OK)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    answered = await client.ask(post())
    assert answered.status == int(status[:3])
    assert not answered.header(b"transfer-encoding")
    assert bool(answered.header(b"content-length")) == (bool(length) and status.startswith(b"304"))
    assert (await client.ask(post())).body == b"{}"


async def test_interim_answers_pass_and_the_client_s_100_is_ours(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        await peer.send(
            b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: x-a\r\nX-A: 1\r\n\r\n", pause=0.01
        )
        await peer.send(b"HTTP/1.1 102 Processing\r\n\r\n" + OK)

    answered = await ask_of(script, start_backend, start_proxy)
    assert answered.interims == [
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
        b"HTTP/1.1 102 Processing\r\n\r\n",
    ]
    assert answered.body == b"{}"


async def test_trailers_pass_but_not_those_that_frame(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(CHUNKED + b"1\r\na\r\n0\r\nX-Checksum: 1\r\nHost: evil\r\nX-Last: 2\r\n\r\n")

    answered = await ask_of(script, start_backend, start_proxy)
    assert answered.trailers == [b"X-Checksum: 1", b"X-Last: 2"]


@pytest.mark.parametrize(
    "status", [b"400 Bad Request", b"401 Unauthorized", b"429 Too Many", b"503 Busy", b"500 No"]
)
async def test_a_backend_s_errors_pass_unchanged(
    status: bytes, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 %b\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nbusy" % status)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    for _ in range(5):
        answered = await proxy.ask(post())
        assert (answered.status, answered.body) == (int(status[:3]), b"busy")
        assert answered.header(b"retry-after") == [b"7"]
        assert not answered.error
    assert (await proxy.captures(5))[0].status == int(status[:3])


async def test_an_answer_before_the_end_of_the_request_does_not_poison_the_pool(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    """The backend refuses while megabytes are still on their way to it."""
    ended = asyncio.Event()

    async def early(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Much\r\ncontent-length: 0\r\n\r\n")
        await ended.wait()
        writer.transport.abort()

    server = await asyncio.start_server(early, "127.0.0.1", 0)
    proxy = await start_proxy(ladder(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"))
    answered = await proxy.ask(post(b'{"model":"m","x":"' + b"x" * 20_000_000 + b'"}'))
    assert answered.status == 413
    assert not next(iter(proxy.plane.servers)).idle
    ended.set()
    server.close()
    await server.wait_closed()


# -- clients that leave --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "begun", [b"", CHUNKED + b"4\r\npart\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\npart"]
)
@pytest.mark.parametrize("how", ["close", "reset"])
async def test_a_client_that_leaves_takes_the_backend_s_request_with_it(
    begun: bytes, how: str, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    """While waiting for the first token, in the middle of a stream, and of an answer with a length."""
    ended = asyncio.Event()

    async def script(received: Received, peer: Peer) -> None:
        if begun:
            await peer.send(begun)
        assert await peer.gone()
        ended.set()

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    await client.send(post())
    await eventually(lambda: bool(backend.requests))
    if begun:
        await client.reader.readuntil(b"part")
    if how == "close":
        client.close()
    else:
        client.reset()
    await eventually(ended.is_set)
    [capture] = await proxy.captures(1)
    assert capture.ending is Ending.CENSORED
    assert capture.response_body == (b"part" if begun else b"")
    assert not proxy.plane.relays
    assert next(iter(proxy.plane.servers)).outstanding == 0


async def test_a_client_that_leaves_while_the_backend_is_being_reached_leaves_nothing(
    start_proxy: StartProxy, deaf_port: int
) -> None:
    proxy = await start_proxy(ladder(f"http://127.0.0.1:{deaf_port}"))
    client = await proxy.connect()
    await client.send(post())
    await eventually(lambda: bool(proxy.plane.relays))
    client.close()
    await eventually(lambda: not proxy.plane.relays)
    assert next(iter(proxy.plane.servers)).outstanding == 0


async def test_half_of_two_hundred_clients_leaving_leaks_nothing(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(CHUNKED)
        for number in range(20):
            await peer.send(b"2\r\n%02d\r\n" % number, pause=0.005)
        await peer.send(b"0\r\n\r\n")

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))

    async def come_and_go(number: int) -> None:
        client = await proxy.connect()
        await client.send(post())
        if number % 2:
            await asyncio.sleep(number / 2000)
            client.reset()
        else:
            answered = await client.answer()
            assert answered.body == b"".join(b"%02d" % n for n in range(20))
            client.close()

    await asyncio.gather(*(come_and_go(number) for number in range(200)))
    await eventually(lambda: not proxy.plane.relays and not proxy.plane.clients)
    assert next(iter(proxy.plane.servers)).outstanding == 0
    ledger = proxy.ledger
    assert ledger["seen|m"] == ledger["sampled|m"]
    endings = {capture.ending for capture in await proxy.captures(ledger["sampled|m"])}
    assert endings == {Ending.COMPLETE, Ending.CENSORED}
    await eventually(lambda: proxy.plane.budget.used == 0)


# -- time ----------------------------------------------------------------------------------------------


async def test_silence_before_the_first_byte_is_504(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        assert await peer.gone()

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url), timeouts=Timeouts(first_byte=0.2))
    answered = await proxy.ask(post())
    assert (answered.status, answered.error) == (504, b"first_byte_timeout")
    [capture] = await proxy.captures(1)
    assert capture.ending is Ending.TIMEOUT


async def test_silence_in_the_middle_breaks_the_answer_off(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(CHUNKED + b"4\r\npart\r\n")
        assert await peer.gone()

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url), timeouts=Timeouts(idle=0.2))
    answered = await proxy.ask(post())
    assert (answered.body, answered.is_whole) == (b"part", False)
    [capture] = await proxy.captures(1)
    assert capture.ending is Ending.TIMEOUT


async def test_an_answer_that_never_ends_is_ended(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    """`[DONE]` and then an open connection looks the same: it is the idle or the total limit that ends it."""

    async def script(received: Received, peer: Peer) -> None:
        await peer.send(CHUNKED)
        while True:
            await peer.send(b"1\r\na\r\n", pause=0.02)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url), timeouts=Timeouts(total=0.4))
    answered = await proxy.ask(post())
    assert not answered.is_whole


async def test_a_backend_that_does_not_accept_is_504(start_proxy: StartProxy, deaf_port: int) -> None:
    proxy = await start_proxy(ladder(f"http://127.0.0.1:{deaf_port}"), timeouts=Timeouts(connect=0.1))
    answered = await proxy.ask(post())
    assert (answered.status, answered.error) == (503, b"connect_timeout")


# -- what is recorded ----------------------------------------------------------------------------------


async def test_a_capture_has_both_sides_and_no_credentials(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n"
            b"transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
            b"3\r\ndef\r\n0\r\n\r\n",
            pause=0.02,
        )

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    body = b'{"model":"m","stream":true,"tools":[],"messages":[{"role":"user","content":"q"}]}'
    wall, began = time.time(), time.monotonic()
    answered = await proxy.ask(post(body, headers=[b"Authorization: Bearer sk-secret", b"X-Request-Id: r-1"]))
    [capture] = await proxy.captures(1)
    assert capture.id == "test-1-" + capture.id[-8:]
    assert (capture.model, capture.tier, capture.path) == ("m", "t0", "/v1/chat/completions")
    assert (capture.request_body, capture.response_body) == (body, b"abcdef")
    assert (capture.response_type, capture.response_encoding) == ("text/event-stream", "gzip")
    assert answered.header(b"content-encoding") == [b"gzip"]
    assert capture.stratum == "under-2k/structured/stream"
    assert capture.tenant
    assert "sk-secret" not in repr(capture)
    assert b"sk-secret" not in b"".join(each.blob for each in proxy.store.batches[0])
    assert capture.first_byte_seconds is not None
    assert capture.total_seconds is not None
    assert 0 <= capture.first_byte_seconds <= capture.total_seconds <= time.monotonic() - began
    assert wall <= capture.started_at <= time.time()
    assert backend.last.header(b"x-request-id") == [b"r-1"]
    assert answered.header(b"x-request-id") == [b"r-1"]


async def test_an_exchange_that_outgrows_the_limit_is_skipped_and_still_passes(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(CHUNKED)
        for _ in range(100):
            await peer.send(b"64\r\n" + b"x" * 100 + b"\r\n")
        await peer.send(b"0\r\n\r\n")

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url), mirroring=Mirroring(sample=1.0, max_body=5000))
    answered = await proxy.ask(post())
    assert answered.body == b"x" * 10_000
    await eventually(lambda: proxy.ledger.get("skipped|m|too_large") == 1)
    assert proxy.plane.budget.used == 0


async def test_a_full_buffer_costs_captures_and_no_client(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url), mirroring=Mirroring(sample=1.0, buffer_bytes=1100))
    proxy.store.hangs = True
    for _ in range(10):
        assert (await proxy.ask(post())).status == 200
    ledger = proxy.ledger
    assert ledger["sampled|m"] == 10
    assert ledger["dropped|m|buffer_full"] >= 6


async def test_many_small_captures_fill_the_buffer_too(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    """Each takes memory besides its bytes."""
    proxy = await start_proxy(
        ladder((await start_backend()).url), mirroring=Mirroring(sample=1.0, buffer_bytes=64 * 1024)
    )
    proxy.store.hangs = True
    client = await proxy.connect()
    await client.send(post(b'{"model":"m"}') * 200)
    for _ in range(200):
        assert (await client.answer()).status == 200
    client.close()
    assert proxy.ledger["dropped|m|buffer_full"] > 100


async def test_get_requests_pass_and_are_no_captures(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    assert (await proxy.ask(get(b"/health"))).status == 200
    assert (await proxy.ask(get(b"/version?x=1"))).status == 200
    assert backend.last.line == b"GET /version?x=1 HTTP/1.1"
    assert proxy.ledger["skipped|m|not_generation"] == 2


async def test_a_defect_of_ours_is_a_500_and_leaves_nothing_behind(
    start_backend: StartBackend, start_proxy: StartProxy, caplog: pytest.LogCaptureFixture
) -> None:
    """On a new connection, where nobody awaits the task that fails, as on a pooled one."""
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    [server] = proxy.plane.servers
    for pooled in (0, 1):
        assert len(server.idle) == pooled
        sound, server.headers = server.headers, ((b"x-broken", None),)  # type: ignore[assignment]
        answered = await proxy.ask(post())
        assert (answered.status, answered.error) == (500, b"internal_error")
        assert server.outstanding == 0
        assert not proxy.plane.relays
        server.headers = sound
        assert (await proxy.ask(post())).status == 200
    assert caplog.text.count("a request could not be written") == 2
