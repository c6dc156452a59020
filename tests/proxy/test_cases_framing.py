"""Event streams in every shape that engines send: the client gets the bytes, the worker reads the answer.

Each case passes through the real proxy, so that framing, recording and reading are tested as one.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable

import pytest

from evaluators.exchange import Answer, Fault, FaultKind, Outcome
from service.proxy.config import Timeouts
from service.store.redis.capture import Ending
from tests.proxy.raw_client import Answered, post
from tests.proxy.scripted import Peer, Received
from tests.proxy.standing import StartBackend, StartProxy, ladder
from workers.opening import live_outcome

TEXT = "Grüße 你好🌏\u2028\u0085\\n"
"""With characters of two, three and four bytes, and two that are line ends elsewhere."""


def event(delta: dict[str, object], finish: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return "data: " + json.dumps({"choices": [choice]}, ensure_ascii=False)


EVENTS = [event({"role": "assistant"}), *(event({"content": char}) for char in TEXT), event({}, "stop")]
STREAM = "".join(each + "\n\n" for each in [*EVENTS, "data: [DONE]"]).encode()
ANSWER = Answer(text=TEXT, finish_reason="stop")

SHAPES = {
    "LF": STREAM,
    "CRLF": STREAM.replace(b"\n", b"\r\n"),
    "CR": STREAM.replace(b"\n", b"\r"),
    "a line end of each kind": b"".join(
        line + end
        for line, end in zip(STREAM.split(b"\n"), [b"\n", b"\r\n", b"\r", b"\r\n"] * 20, strict=False)
    ),
    "data without the space": STREAM.replace(b"data: ", b"data:"),
    "other fields": STREAM.replace(b"data: ", b"id: 7\nretry: 10\nevent: message\nunknown: x\ndata: "),
    "comments everywhere": b": ping\n\n: PROCESSING\n"
    + STREAM.replace(b"\n\n", b"\n:\n\n: ping\n\n")
    + b": bye\n\n",
    "a byte order mark": b"\xef\xbb\xbf" + STREAM,
    "data over several lines": STREAM.replace(b'{"choices": ', b'{"choices":\ndata: '),
    "no [DONE]": STREAM.removesuffix(b"data: [DONE]\n\n"),
    "no empty line at the end": STREAM.removesuffix(b"\n\n"),
    "bytes after [DONE]": STREAM + b'data: {"error": {"message": "late"}}\n\nnonsense\xff',
    "empty events": b"\n\n\n" + STREAM.replace(b"\n\n", b"\n\n\n\n") + b"data:\n\n",
    "a line of two megabytes": b"data: "
    + json.dumps({"choices": [], "pad": "x" * 2_000_000}).encode()
    + b"\n\n"
    + STREAM,
}

Relayed = Callable[..., Awaitable[tuple[Answered, Outcome]]]


@pytest.fixture
def relayed(start_backend: StartBackend, start_proxy: StartProxy) -> Relayed:
    """What the client gets of a body, and what the worker reads of its capture."""

    async def relay(
        parts: Iterable[bytes],
        *,
        type: bytes = b"text/event-stream",
        asked: bytes = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"q"}]}',
        framing: str = "chunks",
        pause: float = 0.0,
    ) -> tuple[Answered, Outcome]:
        async def script(received: Received, peer: Peer) -> None:
            head = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\n" % type
            if framing == "chunks":
                await peer.send(head + b"transfer-encoding: chunked\r\n\r\n")
                await peer.send(*(b"%x\r\n%b\r\n" % (len(part), part) for part in parts), pause=pause)
                await peer.send(b"0\r\n\r\n")
            else:
                await peer.send(head + b"\r\n")
                await peer.send(*parts, pause=pause)
                peer.close()

        backend = await start_backend(script)
        proxy = await start_proxy(ladder(backend.url))
        answered = await proxy.ask(post(asked))
        [capture] = await proxy.captures(1)
        assert capture.ending is Ending.COMPLETE
        assert capture.response_body == answered.body
        return answered, live_outcome(capture)

    return relay


@pytest.mark.parametrize("body", SHAPES.values(), ids=SHAPES)
async def test_a_stream_of_any_shape_passes_unchanged_and_is_the_same_answer(
    body: bytes, relayed: Relayed
) -> None:
    parts = [body] if len(body) > 100_000 else [body[at : at + 7] for at in range(0, len(body), 7)]
    answered, outcome = await relayed(parts)
    assert answered.is_whole
    assert answered.body == body
    assert outcome == ANSWER


@pytest.mark.parametrize("framing", ["chunks", "end of file"])
async def test_one_byte_at_a_time_is_the_same_answer(framing: str, relayed: Relayed) -> None:
    answered, outcome = await relayed([bytes([byte]) for byte in STREAM], framing=framing)
    assert answered.body == STREAM
    assert outcome == ANSWER


async def test_characters_and_line_ends_cut_in_two_are_whole_again(relayed: Relayed) -> None:
    """With a pause at each cut, so that each half is a read of its own."""
    body = SHAPES["CRLF"]
    at = body.index("🌏".encode()) + 2
    between = body.index(b"\r\n\r\n") + 3
    answered, outcome = await relayed([body[:between], body[between:at], body[at:]], pause=0.03)
    assert answered.body == body
    assert outcome == ANSWER


@pytest.mark.parametrize(
    "type",
    [
        b"text/event-stream",
        b"Text/Event-Stream; CHARSET=UTF-8",
        b'text/event-stream;charset="utf-8"; x=y',
        b"text/event-stream ; charset=Utf-8",
        b"application/json",
        b"application/octet-stream",
    ],
)
async def test_a_stream_is_utf_8_whatever_its_type_says(type: bytes, relayed: Relayed) -> None:
    answered, outcome = await relayed([STREAM], type=type)
    assert answered.header(b"content-type") == [type]
    assert outcome == ANSWER


@pytest.mark.parametrize("type", [b"application/json; Charset=UTF-8", b"text/event-stream", b"text/plain"])
@pytest.mark.parametrize("stream", [b"true", b"false"])
async def test_a_whole_body_is_the_same_answer_whether_a_stream_was_asked_for_or_not(
    type: bytes, stream: bytes, relayed: Relayed
) -> None:
    message = {"role": "assistant", "content": TEXT}
    body = json.dumps(
        {"choices": [{"message": message, "finish_reason": "stop"}]}, ensure_ascii=False
    ).encode()
    asked = b'{"model":"m","stream":%b,"messages":[{"role":"user","content":"q"}]}' % stream
    for written in (body, b"\n " + body, b"\xef\xbb\xbf" + body):
        answered, outcome = await relayed([written], type=type, asked=asked)
        assert answered.body == written
        assert outcome == ANSWER


async def test_a_stream_that_is_done_and_stays_open_is_no_fault_of_its_model(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n", STREAM)
        assert await peer.gone()

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url), timeouts=Timeouts(idle=0.6))
    answered = await proxy.ask(post())
    assert not answered.is_whole
    assert answered.body == STREAM
    [capture] = await proxy.captures(1)
    assert capture.ending is Ending.TIMEOUT
    outcome = live_outcome(capture)
    assert isinstance(outcome, Fault)
    assert outcome.of_infrastructure


ERRORS = {
    "/v1/chat/completions": b'data: {"error": {"message": "out of memory", "code": 500}}\n\n',
    "/v1/completions": b'event: error\ndata: {"message": "out of memory"}\n\n',
    "/v1/responses": b'event: error\ndata: {"type": "error", "code": "x", "message": "out of memory"}\n\n',
    "/v1/messages": b'event: error\ndata: {"type": "error", "error": {"message": "out of memory"}}\n\n',
}


@pytest.mark.parametrize("path", ERRORS)
@pytest.mark.parametrize("before", [b"", b": ping\n\n"], ids=["at once", "after a comment"])
async def test_an_error_in_a_stream_of_status_200_passes_and_is_a_fault(
    path: str, before: bytes, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        body = before + ERRORS[path]
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" % len(body)
        await peer.send(head + body)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    answered = await proxy.ask(post(path=path.encode()))
    assert answered.status == 200
    assert answered.body == before + ERRORS[path]
    [capture] = await proxy.captures(1)
    assert live_outcome(capture) == Fault(kind=FaultKind.STREAM_ERROR, status=200, detail="out of memory")
