"""What clients get: bytes, order, connections. The cases of the client side."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import random

import pytest

from service.proxy.config import ClientLimits
from service.proxy.traffic.downstream import READ_AHEAD_BYTES
from tests.patience import PATIENCE
from tests.proxy.raw_client import get, post
from tests.proxy.scripted import OK, Peer, Received
from tests.proxy.standing import StartBackend, StartProxy, eventually, ladder

TEXTS = (
    "你好，世界🌏",
    "a\u2028b\u0085c",
    "naïve — “quotes”",
    "👩‍👩‍👧‍👦 family",
    "plain ascii",
    "日本語テキスト",
)

OLD = b'POST /v1/chat/completions HTTP/1.0\r\nContent-Length: 13\r\n\r\n{"model":"m"}'


async def test_an_answer_reaches_the_client_with_its_tier_and_request_id(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    answered = await proxy.ask(post())
    assert (answered.status, answered.body) == (200, b"{}")
    assert answered.header(b"x-tiergate-tier") == [b"t0"]
    assert answered.header(b"x-request-id") == backend.last.header(b"x-request-id")
    assert backend.last.body == b'{"model":"m","messages":[]}'


async def test_an_empty_request_id_gives_way_to_ours(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    for headers in ([b"X-Request-Id:"], [b"X-Request-Id: a", b"Connection: x-request-id"], []):
        answered = await proxy.ask(post(headers=headers))
        [told] = answered.header(b"x-request-id")
        assert told
        assert backend.last.header(b"x-request-id") == [told]


async def test_a_hundred_unstreamed_answers_are_the_backend_s_bytes(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    chance = random.Random(1)
    bodies = [
        json.dumps({"text": chance.choice(TEXTS) * chance.randrange(1, 400)}, ensure_ascii=False).encode()
        for _ in range(100)
    ]

    async def script(received: Received, peer: Peer) -> None:
        body = bodies[int(received.header(b"x-number")[0])]
        answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
        cut = len(answer) // 2
        await peer.send(answer[:cut], answer[cut:])

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    for number, body in enumerate(bodies):
        answered = await client.ask(post(headers=[b"x-number: %d" % number]))
        assert answered.body == body
    client.close()
    captures = await proxy.captures(100)
    assert [capture.response_body for capture in captures] == bodies


async def test_streamed_answers_cut_at_every_byte_are_the_backend_s_bytes(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    """Inside a character, between two line feeds, one byte a chunk, many events in one chunk."""
    stream = (
        "".join(f"data: {json.dumps({'delta': text}, ensure_ascii=False)}\n\n" for text in TEXTS).encode()
        + b": ping\r\n\r\ndata: [DONE]\n\n"
    )

    async def script(received: Received, peer: Peer) -> None:
        cut = int(received.header(b"x-cut")[0])
        await peer.send(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        for part in (stream[:cut], stream[cut:]) if cut else (bytes([byte]) for byte in stream):
            if part:
                await peer.send(b"%x\r\n%b\r\n" % (len(part), part))
        await peer.send(b"0\r\n\r\n")

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    for cut in range(len(stream)):
        answered = await client.ask(post(headers=[b"x-cut: %d" % cut]))
        assert answered.is_whole
        assert answered.body == stream
    client.close()
    for capture in await proxy.captures(len(stream)):
        assert capture.response_body == stream


async def test_events_arrive_one_by_one_and_not_when_the_stream_ends(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    go_on = asyncio.Event()

    async def script(received: Received, peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for number in range(3):
            await peer.send(b"3\r\na%d\n\r\n" % number)
            await go_on.wait()
            go_on.clear()
        await peer.send(b"0\r\n\r\n")

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    await client.send(post())
    await client.reader.readuntil(b"\r\n\r\n")
    for number in range(3):
        assert await client.reader.readexactly(8) == b"3\r\na%d\n\r\n" % number
        go_on.set()
    assert await client.reader.readexactly(5) == b"0\r\n\r\n"
    client.close()


async def test_a_line_of_two_megabytes_passes(start_backend: StartBackend, start_proxy: StartProxy) -> None:
    line = b"data: " + b"x" * 2_000_000 + b"\n\n"

    async def script(received: Received, peer: Peer) -> None:
        head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
        await peer.send(head, b"%x\r\n%b\r\n" % (len(line), line), b"0\r\n\r\n")

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    answered = await proxy.ask(post())
    assert answered.body == line


async def test_a_body_of_ten_megabytes_passes(start_backend: StartBackend, start_proxy: StartProxy) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    body = b'{"messages":[{"content":"' + b"x" * 10_000_000 + b'"}],"model":"m"}'
    answered = await proxy.ask(post(body))
    assert answered.status == 200
    assert backend.last.body == body


async def test_a_chunked_request_arrives_with_a_length(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    body = b'{"model":"m"}'
    await client.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
    for byte in body:
        await client.send(b"1;ext=1\r\n%c\r\n" % byte)
    answered = await client.ask(b"0\r\nX-Trailer: 1\r\n\r\n")
    client.close()
    assert answered.status == 200
    assert backend.last.body == body
    assert backend.last.header(b"content-length") == [b"13"]
    assert not backend.last.header(b"transfer-encoding")


async def test_what_follows_the_last_chunk_of_a_request_becomes_no_header_of_it(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n%bTransfer-Encoding: chunked\r\n\r\n"
    body = b'd\r\n{"model":"m"}\r\n0\r\n'
    trailers = (
        b"X-Trailer: 1\r\nAuthorization: Bearer evil\r\nX-Tiergate-Shadow: off\r\nX-Request-Id: mine\r\n\r\n"
    )
    for announced in (b"", b"Trailer: X-Trailer, Authorization\r\n"):
        assert (await client.ask(head % announced + body + trailers)).status == 200
        assert not {b"x-trailer", b"authorization", b"x-tiergate-shadow"} & {
            name.lower() for name in backend.last.names
        }
        assert backend.last.header(b"x-request-id") != [b"mine"]
    client.close()
    assert len(await proxy.captures(2)) == 2, "neither are they heard here"


async def test_headers_keep_order_case_duplicates_and_bytes(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    sent = [
        (b"x-LOWER-Upper", b"1"),
        (b"Cookie", b"a=1"),
        (b"COOKIE", b"b=2"),
        (b"x-bytes", b"caf\xe9 \xe4\xbd\xa0"),
        (b"x-long", b"y" * 32_000),
        (b"x-empty", b""),
    ]

    async def script(received: Received, peer: Peer) -> None:
        given = [*sent, (b"Set-Cookie", b"s=1"), (b"Set-Cookie", b"t=2")]
        lines = b"".join(b"%b: %b\r\n" % pair for pair in given)
        await peer.send(b"HTTP/1.1 201 Created As You Like\r\n%bContent-Length: 0\r\n\r\n" % lines)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    answered = await proxy.ask(post(headers=[b"%b: %b" % pair for pair in sent]))
    assert [pair for pair in backend.last.headers if pair in sent] == sent
    assert (answered.status, answered.reason) == (201, b"Created As You Like")
    assert answered.headers[:9] == [
        *sent,
        (b"Set-Cookie", b"s=1"),
        (b"Set-Cookie", b"t=2"),
        (b"Content-Length", b"0"),
    ]


async def test_headers_that_end_at_this_hop_go_no_further(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(
            b"HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n"
            b"Proxy-Connection: x\r\nX-Stays: 1\r\nContent-Length: 0\r\n\r\n"
        )

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    answered = await proxy.ask(
        post(
            headers=[
                b"Connection: keep-alive, x-foo",
                b"X-Foo: 1",
                b"TE: trailers",
                b"Keep-Alive: timeout=5",
                b"Upgrade: h2c",
                b"X-Stays: 1",
            ]
        )
    )
    assert [name for name in backend.last.names if name.lower().startswith(b"x-")] == [
        b"X-Stays",
        b"x-request-id",
    ]
    assert not {b"te", b"keep-alive", b"upgrade", b"connection"} & {n.lower() for n in backend.last.names}
    assert [name for name, _ in answered.headers if not name.startswith(b"x-")] == [
        b"X-Stays",
        b"Content-Length",
    ]


async def test_connection_cannot_list_away_the_framing(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    answered = await proxy.ask(post(headers=[b"Connection: content-length, host"]))
    assert answered.status == 200
    assert backend.last.header(b"content-length") == [b"27"]
    assert backend.last.header(b"host") == [f"127.0.0.1:{backend.port}".encode()]


async def test_pipelined_requests_are_answered_in_order(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        number = received.header(b"x-number")[0]
        await asyncio.sleep(0.02 if number == b"0" else 0)
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(number), number))

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url), clients=ClientLimits(pipelined=4))
    client = await proxy.connect()
    requests = [post(headers=[b"x-number: %d" % number]) for number in range(100)]
    await client.send(b"".join(requests))
    assert [(await client.answer()).body for _ in requests] == [b"%d" % n for n in range(100)]
    client.close()


async def test_a_malformed_request_behind_good_ones_is_refused_after_their_answers(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    await client.send(post() + post() + b"nonsense\r\n\r\n")
    assert [(await client.answer()).status for _ in range(3)] == [200, 200, 400]
    assert await client.rest() == b""
    client.close()


async def test_large_requests_behind_a_slow_answer_wait_in_the_client(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    may_answer = asyncio.Event()

    async def script(received: Received, peer: Peer) -> None:
        await may_answer.wait()
        await peer.send(OK)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    body = b'{"model":"m","messages":["' + b"x" * 4_000_000 + b'"]}'
    sending = asyncio.get_running_loop().create_task(client.send(*[post(body)] * 8))
    await eventually(lambda: bool(backend.requests))
    await asyncio.sleep(0.3)
    assert not sending.done()
    [connection] = proxy.plane.clients
    assert connection._reader.bytes_read < READ_AHEAD_BYTES + 1_000_000
    may_answer.set()
    for _ in range(8):
        assert (await client.answer()).status == 200
    assert [received.body for received in backend.requests] == [body] * 8
    await sending
    client.close()


async def test_pipelined_own_answers_do_not_pile_up(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    await client.send(get(b"/v1/models") * 3000)
    for _ in range(3000):
        assert (await client.answer()).status == 200
    client.close()


async def test_http_1_0_gets_a_closed_connection(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    body = b'{"model":"m"}'
    await client.send(b"POST /v1/chat/completions HTTP/1.0\r\nContent-Length: 13\r\n\r\n" + body)
    answered = await client.answer()
    assert answered.body == b"{}"
    assert answered.header(b"connection") == [b"close"]
    assert await client.rest() == b""
    assert backend.last.line == b"POST /v1/chat/completions HTTP/1.1"
    client.close()


async def test_http_1_0_with_keep_alive_keeps_the_connection(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    request = OLD.replace(b"\r\n", b"\r\nConnection: keep-alive\r\n", 1)
    for _ in range(2):
        answered = await client.ask(request)
        assert answered.header(b"connection") == [b"keep-alive"]
    client.close()


async def test_http_1_0_gets_a_chunked_answer_unchunked(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n", b"3\r\ndef\r\n0\r\n\r\n"
        )

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    answered = await client.ask(OLD)
    assert not answered.header(b"transfer-encoding")
    assert answered.body == b"abcdef"
    client.close()


async def test_http_1_0_sees_a_cut_off_answer_as_a_reset(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    """Without chunks or a length a clean end would look like the whole answer."""

    async def script(received: Received, peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n", pause=0.05)
        peer.close()

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    await client.send(OLD)
    assert await client.rest() == b"<reset>"
    client.close()


async def test_a_client_that_expects_100_is_told_to_go_on(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    request = post(headers=[b"Expect: 100-continue"])
    cut = request.index(b"\r\n\r\n") + 4
    await client.send(request[:cut])
    assert await client.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    answered = await client.ask(request[cut:])
    assert answered.status == 200
    assert not backend.last.header(b"expect")
    client.close()


async def test_a_body_that_is_too_large_is_refused_before_it_is_sent(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url), max_request=100)
    client = await proxy.connect()
    request = post(b"x" * 101, headers=[b"Expect: 100-continue"])
    answered = await client.ask(request[: request.index(b"\r\n\r\n") + 4])
    assert (answered.status, answered.error) == (413, b"request_too_large")
    assert json.loads(answered.body)["error"]["code"] == "request_too_large"
    assert await client.rest() == b""
    client.close()
    assert not backend.requests


async def test_a_client_that_is_still_sending_reads_why_it_was_refused(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    """A reset for the bytes that nobody reads must not overtake the answer."""
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url), max_request=100_000)
    client = await proxy.connect()
    await client.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(20):
        await client.send(b"2710\r\n" + b"x" * 10_000 + b"\r\n")
    answered = await client.answer()
    assert answered.status == 413
    client.close()


async def test_a_head_without_end_is_refused(start_backend: StartBackend, start_proxy: StartProxy) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url), clients=ClientLimits(max_head=10_000))
    for line in (b"X-Endless: ", b"".join(b"X-%d: y\r\n" % n for n in range(2000)), b""):
        client = await proxy.connect()
        await client.send(b"GET /v1/models HTTP/1.1\r\nHost: a\r\n" + line)
        if line != b"".join(b"X-%d: y\r\n" % n for n in range(2000)):
            for _ in range(40):
                await client.send(b"y" * 1000 if line else b"X-Y: " + b"z" * 1000 + b"\r\n", pause=0.001)
        assert (await client.answer()).status == 431
        client.close()


@pytest.mark.parametrize("start", [b"2\r\n{}\r\n0\r\nX-Endless: ", b"2;ext=", b"2\r\n{}\r\n0\r\n"])
async def test_what_frames_a_request_s_body_is_bounded(
    start: bytes, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    proxy = await start_proxy(ladder((await start_backend()).url), clients=ClientLimits(max_head=10_000))
    client = await proxy.connect()
    await client.send(
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + start
    )
    with contextlib.suppress(ConnectionError):
        for _ in range(40):
            await client.send(b"X-Y: z\r\n" * 100 if start.endswith(b"0\r\n") else b"y" * 1000, pause=0.001)
    assert (await client.answer()).status == 431
    client.close()


async def test_a_body_that_comes_byte_by_byte_is_not_taken_for_endless_framing(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url), clients=ClientLimits(max_head=300))
    client = await proxy.connect()
    body = b'{"model":"m","messages":[]}'
    await client.send(
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        *(part for byte in body for part in (b"1;ext=" + b"e" * 30 + b"\r\n", b"%c\r\n" % byte)),
        b"0\r\nX-Trailer: 1\r\n\r\n",
        pause=0.001,
    )
    assert (await client.answer()).status == 200
    assert backend.last.body == body
    client.close()


async def test_a_client_that_does_not_finish_its_head_or_body_is_let_go(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    limits = ClientLimits(head=0.5, body=0.5, keep_alive=0.5)
    proxy = await start_proxy(ladder(backend.url), clients=limits)
    for part in (b"GET /v1", post()[:-1]):
        client = await proxy.connect()
        answered = await client.ask(part)
        assert (answered.status, answered.error) == (408, b"request_timeout")
        assert await client.rest() == b""
        client.close()
    idle = await proxy.connect()
    assert await idle.rest() == b""
    idle.close()


async def test_half_close_counts_as_gone_unless_allowed(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    gone = asyncio.Event()

    async def script(received: Received, peer: Peer) -> None:
        if await peer.gone(PATIENCE if is_strict else 0.2):
            gone.set()
        else:
            await peer.send(OK)

    is_strict = True
    backend = await start_backend(script)
    strict = await start_proxy(ladder(backend.url))
    client = await strict.connect()
    await client.send(post())
    await eventually(lambda: bool(backend.requests))
    client.writer.write_eof()
    await asyncio.wait_for(gone.wait(), PATIENCE)
    client.close()

    is_strict = False
    allowing = await start_proxy(ladder(backend.url), half_close=True)
    client = await allowing.connect()
    await client.send(post())
    client.writer.write_eof()
    assert (await client.answer()).status == 200
    assert await client.rest() == b""
    client.close()


async def test_head_options_and_models(start_backend: StartBackend, start_proxy: StartProxy) -> None:
    async def script(received: Received, peer: Peer) -> None:
        if received.line.startswith(b"HEAD"):
            await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n")
        else:
            await peer.send(b"HTTP/1.1 204 No Content\r\nAllow: POST\r\nContent-Length: 7\r\n\r\n")

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    answered = await client.ask(b"HEAD /health HTTP/1.1\r\nHost: a\r\n\r\n", to_head=True)
    assert answered.header(b"content-length") == [b"999"]
    answered = await client.ask(b"OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: a\r\n\r\n")
    assert (answered.status, answered.header(b"allow")) == (204, [b"POST"])
    assert not answered.header(b"content-length"), "204 has no length"
    answered = await client.ask(get(b"/v1/models"))
    assert [model["id"] for model in json.loads(answered.body)["data"]] == ["m"]
    answered = await client.ask(b"HEAD /v1/models HTTP/1.1\r\nHost: a\r\n\r\n", to_head=True)
    assert answered.status == 200
    assert json.loads((await client.ask(get(b"/v1/models/m"))).body)["id"] == "m"
    assert (await client.ask(get(b"/v1/models/other"))).error == b"model_not_found"
    assert (await client.ask(post(path=b"/v1/models"))).status == 405
    client.close()
    assert len(backend.requests) == 2


async def test_an_encoded_request_body_passes_unchanged(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url), ladder(backend.url, model="n"))
    body = gzip.compress(b'{"model":"n","messages":[]}')
    answered = await proxy.ask(post(body, headers=[b"Content-Encoding: gzip"]))
    assert answered.status == 200
    assert backend.last.body == body
    [capture] = await proxy.captures(1)
    assert (capture.model, capture.request_encoding, capture.request_body) == ("n", "gzip", body)


async def test_a_multipart_upload_passes_unchanged(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    one, two = await start_backend(), await start_backend()
    proxy = await start_proxy(ladder(one.url), ladder(two.url, model="whisper"))
    body = (
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
        b'\x00\xff{"model":"m"}\r\n'
        b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper\r\n--b--\r\n'
    )
    request = post(body, path=b"/v1/audio/transcriptions").replace(
        b"application/json", b"multipart/form-data; boundary=b"
    )
    assert (await proxy.ask(request)).status == 200
    assert two.last.body == body
    assert proxy.ledger["skipped|whisper|not_generation"] == 1


async def test_a_slow_reader_holds_the_backend_back(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    written = 0
    total = 40_000_000

    async def script(received: Received, peer: Peer) -> None:
        nonlocal written
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % total)
        for _ in range(total // 100_000):
            await peer.send(b"x" * 100_000)
            written += 100_000

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    await client.send(post())
    client.writer.transport.pause_reading()
    before = -1
    while before != written:
        before = written
        await asyncio.sleep(0.3)
    assert written < total / 2, "the backend went on although nobody read"
    (held,) = proxy.plane.clients
    assert held._transport.get_write_buffer_size() < 1_000_000
    client.writer.transport.resume_reading()
    answered = await client.answer()
    assert len(answered.body) == total
    client.close()


async def test_a_client_that_never_reads_is_given_up(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 40000000\r\n\r\n")
        for _ in range(400):
            await peer.send(b"x" * 100_000)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url), clients=ClientLimits(stalled=0.3))
    client = await proxy.connect()
    client.writer.transport.pause_reading()
    await client.send(post())
    await eventually(lambda: len(proxy.plane.clients) == 1)
    await eventually(lambda: not proxy.plane.clients)
    client.abort()
    [capture] = await proxy.captures(1)
    assert (capture.status, capture.ending) == (200, "censored"), "nobody took it, which is no model's fault"


async def test_a_client_that_ignores_the_end_is_cut_off(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    await client.send(post(headers=[b"Connection: close"]))
    assert (await client.answer()).status == 200
    assert await client.rest() == b""
    for _ in range(3):
        await client.send(b"and on and on", pause=0.1)
    await eventually(lambda: not proxy.plane.clients)
