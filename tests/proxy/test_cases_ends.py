"""How answers end: what a client sees of it, and what the worker makes of the capture."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from random import Random

import pytest
import zstandard

from evaluators.exchange import Answer, Fault, FaultKind
from service.store.redis.capture import Ending
from service.wire.content_encoding import decode
from tests.patience import PATIENCE
from tests.proxy.raw_client import post
from tests.proxy.scripted import CHUNKED, Peer, Received
from tests.proxy.standing import StartBackend, StartProxy, ladder
from tests.wire.dialects import DIALECTS, Dialect
from workers.opening import live_outcome

ANSWER = Answer(text="Grüße 你好 🌏", finish_reason="stop", prompt_tokens=3, completion_tokens=5)
SSE_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"


def stream_of(dialect: Dialect, answer: Answer = ANSWER) -> list[bytes]:
    """The plainest stream of an answer, an event a piece."""
    events = []
    for event in dialect.events(answer, Plain()):
        name = f"event: {event['type']}\n" if dialect.names_events else ""
        events.append(f"{name}data: {json.dumps(event)}\n\n".encode())
    return events if dialect.names_events else [*events, b"data: [DONE]\n\n"]


class Plain(Random):
    """Chance that never varies anything but where texts are cut."""

    def random(self) -> float:
        return 0.9


def chunk(part: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(part), part)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.endpoint.value)
@pytest.mark.parametrize("how", ["closes", "resets", "in a chunk", "short of its length", "nonsense"])
async def test_a_stream_that_breaks_off_is_seen_to_and_is_no_answer_at_any_point(
    dialect: Dialect, how: str, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    events = stream_of(dialect)
    last = len(events) - 1 if dialect.names_events else len(events) - 2
    kept = 0

    async def script(received: Received, peer: Peer) -> None:
        body = b"".join(events[:kept])
        if how == "short of its length":
            await peer.send(SSE_HEAD + b"content-length: %d\r\n\r\n" % (len(body) + 10), body, pause=0.01)
        else:
            await peer.send(SSE_HEAD + b"transfer-encoding: chunked\r\n\r\n", chunk(body) if body else b"")
            await peer.send(b"ff\r\nda" if how == "in a chunk" else b"", pause=0.01)
        if how == "nonsense":
            await peer.send(b"nonsense\r\n")
        elif how == "resets":
            peer.reset()
        else:
            peer.close()

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    for kept in range(last):
        answered = await proxy.ask(post(path=dialect.endpoint.encode()))
        sent = b"".join(events[:kept]) + (b"da" if how == "in a chunk" else b"")
        assert (answered.status, answered.is_whole, answered.body) == (200, False, sent)
    for capture in await proxy.captures(last):
        assert capture.ending is Ending.CUT_OFF
        outcome = live_outcome(capture)
        assert isinstance(outcome, Fault)
        assert outcome.kind is FaultKind.CUT_OFF


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.endpoint.value)
async def test_an_answer_that_was_all_there_when_its_framing_broke_is_an_answer(
    dialect: Dialect, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    """The client sees a broken stream; the model is not to blame for it."""

    async def script(received: Received, peer: Peer) -> None:
        await peer.send(SSE_HEAD + b"transfer-encoding: chunked\r\n\r\n", pause=0.01)
        await peer.send(chunk(b"".join(stream_of(dialect))), pause=0.01)
        peer.close()

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    answered = await proxy.ask(post(path=dialect.endpoint.encode()))
    assert not answered.is_whole
    [capture] = await proxy.captures(1)
    assert capture.ending is Ending.CUT_OFF
    assert live_outcome(capture) == ANSWER


async def test_a_stream_that_ends_cleanly_and_unfinished_is_whole_to_the_client_and_a_fault_to_us(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    """An engine that dies behind a web server: HTTP is in order, the answer is not."""

    async def script(received: Received, peer: Peer) -> None:
        await peer.send(SSE_HEAD + b"transfer-encoding: chunked\r\n\r\n")
        await peer.send(*map(chunk, stream_of(DIALECTS[0])[:2]), b"0\r\n\r\n")

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    assert (await proxy.ask(post())).is_whole
    [capture] = await proxy.captures(1)
    assert capture.ending is Ending.COMPLETE
    outcome = live_outcome(capture)
    assert isinstance(outcome, Fault)
    assert outcome.kind is FaultKind.CUT_OFF


RESPONSES_ENDS = {
    "completed": {"status": "completed", "output": []},
    "incomplete": {
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
        "output": [],
    },
    "failed": {"status": "failed", "error": {"code": "x", "message": "out of memory"}, "output": []},
}


@pytest.mark.parametrize("end", RESPONSES_ENDS)
async def test_responses_end_in_three_ways(
    end: str, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    event = {"type": f"response.{end}", "response": RESPONSES_ENDS[end]}
    body = f"event: response.{end}\ndata: {json.dumps(event)}\n\n".encode()

    async def script(received: Received, peer: Peer) -> None:
        await peer.send(SSE_HEAD + b"content-length: %d\r\n\r\n" % len(body) + body)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    answered = await proxy.ask(post(path=b"/v1/responses"))
    assert answered.body == body
    [capture] = await proxy.captures(1)
    outcome = live_outcome(capture)
    if end == "failed":
        assert outcome == Fault(kind=FaultKind.STREAM_ERROR, status=200, detail="out of memory")
    else:
        assert isinstance(outcome, Answer)
        assert outcome.finish_reason == {"completed": "stop", "incomplete": "length"}[end]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (b"400 Bad Request", FaultKind.REJECTED),
        (b"404 Not Found", FaultKind.REJECTED),
        (b"422 Unprocessable", FaultKind.REJECTED),
        (b"429 Too Many Requests", FaultKind.OVERLOADED),
        (b"500 Internal Server Error", FaultKind.SERVER_ERROR),
        (b"503 Busy", FaultKind.OVERLOADED),
    ],
)
@pytest.mark.parametrize("framing", ["length", "chunks", "end of file"])
async def test_an_error_of_a_backend_passes_however_it_is_framed_and_is_the_fault_it_is(
    status: bytes, kind: FaultKind, framing: str, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    body = b'{"error":{"message":"Out of range float values are not JSON compliant: -inf"}}'

    async def script(received: Received, peer: Peer) -> None:
        head = b"HTTP/1.1 %b\r\nretry-after: 7\r\n" % status
        if framing == "length":
            await peer.send(head + b"content-length: %d\r\n\r\n" % len(body) + body)
        elif framing == "chunks":
            await peer.send(head + b"transfer-encoding: chunked\r\n\r\n", chunk(body), b"0\r\n\r\n")
        else:
            await peer.send(head + b"\r\n" + body)
            peer.close()

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    answered = await proxy.ask(post())
    assert (answered.status, answered.reason) == (int(status[:3]), status[4:])
    assert (answered.body, answered.header(b"retry-after"), answered.error) == (body, [b"7"], b"")
    [capture] = await proxy.captures(1)
    outcome = live_outcome(capture)
    assert isinstance(outcome, Fault)
    assert (outcome.kind, outcome.detail) == (kind, "Out of range float values are not JSON compliant: -inf")


PACKED = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": lambda body: zstandard.compress(body),
    "GZIP": gzip.compress,
    "identity": bytes,
}


@pytest.mark.parametrize("coding", PACKED)
async def test_a_compressed_stream_passes_as_it_is_and_only_the_worker_unpacks_it(
    coding: str, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    packed = PACKED[coding](b"".join(stream_of(DIALECTS[0])))
    cut = len(packed) // 2

    async def script(received: Received, peer: Peer) -> None:
        head = SSE_HEAD + b"content-encoding: %b\r\ntransfer-encoding: chunked\r\n\r\n" % coding.encode()
        await peer.send(head, chunk(packed[:cut]), chunk(packed[cut:]), b"0\r\n\r\n", pause=0.005)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    answered = await proxy.ask(post(headers=[b"Accept-Encoding: gzip, br, zstd"]))
    assert backend.last.header(b"accept-encoding") == [b"gzip, br, zstd"]
    assert answered.body == packed
    assert answered.header(b"content-encoding") == [coding.encode()]
    [capture] = await proxy.captures(1)
    assert capture.response_body == packed
    assert live_outcome(capture) == ANSWER


async def test_codings_in_two_headers_are_two_codings(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    body = zstandard.compress(gzip.compress(b"".join(stream_of(DIALECTS[0]))))

    async def script(received: Received, peer: Peer) -> None:
        codings = b"content-encoding: gzip\r\nContent-Encoding: zstd\r\n"
        await peer.send(SSE_HEAD + codings + b"content-length: %d\r\n\r\n" % len(body) + body)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    answered = await proxy.ask(post())
    assert answered.header(b"content-encoding") == [b"gzip", b"zstd"]
    [capture] = await proxy.captures(1)
    assert live_outcome(capture) == ANSWER


async def test_brotli_passes_and_says_that_we_cannot_read_it(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(SSE_HEAD + b"content-encoding: br\r\ncontent-length: 4\r\n\r\n\x0b\x00\x80a")

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    answered = await proxy.ask(post())
    assert (answered.body, answered.header(b"content-encoding")) == (b"\x0b\x00\x80a", [b"br"])
    [capture] = await proxy.captures(1)
    outcome = live_outcome(capture)
    assert isinstance(outcome, Fault)
    assert (outcome.kind, "'br' is not supported" in outcome.detail) == (FaultKind.UNREADABLE, True)


async def test_a_compressed_stream_that_broke_off_is_cut_off_and_not_undecodable(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    events = stream_of(DIALECTS[0])
    packer = zlib.compressobj(wbits=31)
    packed = packer.compress(b"".join(events[:2])) + packer.flush(zlib.Z_SYNC_FLUSH)

    async def script(received: Received, peer: Peer) -> None:
        await peer.send(SSE_HEAD + b"content-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n")
        await peer.send(chunk(packed), pause=0.01)
        peer.reset()

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    assert not (await proxy.ask(post())).is_whole
    [capture] = await proxy.captures(1)
    assert decode(capture.response_body, "gzip", complete=False) == b"".join(events[:2])
    outcome = live_outcome(capture)
    assert isinstance(outcome, Fault)
    assert outcome.kind is FaultKind.CUT_OFF


async def test_a_client_that_leaves_at_done_is_no_fault_of_its_model(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    """Clients that stop reading at `[DONE]` and close, while the backend keeps the stream open."""

    async def script(received: Received, peer: Peer) -> None:
        await peer.send(CHUNKED + b"".join(map(chunk, stream_of(DIALECTS[0]))))
        assert await peer.gone()

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    await client.send(post())
    await asyncio.wait_for(client.reader.readuntil(b"[DONE]\n\n"), PATIENCE)
    client.close()
    [capture] = await proxy.captures(1)
    assert capture.ending is Ending.CENSORED
    outcome = live_outcome(capture)
    assert isinstance(outcome, Fault)
    assert outcome.of_infrastructure
