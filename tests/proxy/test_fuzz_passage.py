"""Generated traffic and the whole corpus through the real proxy: what passes arrives as it was sent.

The parsers are compared with h11 elsewhere; here everything around them takes part, sockets on both sides.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest

from service.store.redis.capture import Ending
from tests.proxy.generated import Made, cuts_of, distort, make_answer, make_request
from tests.proxy.parsing import MAX_BODY, AnswerOutline, RequestOutline, outlines, read_answer, segments
from tests.proxy.raw_client import RawClient, post
from tests.proxy.scripted import OK, Peer, Received
from tests.proxy.standing import StartBackend, StartProxy, eventually, ladder
from tests.proxy.test_fuzz_requests import LONGER

CORPUS = Path(__file__).parent / "corpus"
REQUESTS = {path.stem: path.read_bytes() for path in sorted((CORPUS / "requests").iterdir())}
ANSWERS = {path.stem: path.read_bytes() for path in sorted((CORPUS / "answers").iterdir())}
OURS = {b"host", b"content-length", b"x-request-id", b"x-tiergate-tier", b"connection", b"transfer-encoding"}


def said(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers that are the other side's own, in order and case."""
    return [(name, value) for name, value in headers if name.lower() not in OURS]


def arrived(received: Received) -> tuple[bytes, bytes, bytes]:
    method, target, version = received.line.split(b" ")
    assert version == b"HTTP/1.1"
    assert len(received.header(b"content-length")) <= 1
    assert len(received.header(b"host")) == 1
    assert not received.header(b"transfer-encoding")
    return method, target, received.body


def forwarded(read: list[RequestOutline]) -> list[tuple[bytes, bytes, bytes]]:
    """What a backend should get of the requests that a connection sent."""
    passing = [each for each in read if each.refused is None and each.target.startswith(b"/v1/")]
    return [(each.method, each.target, each.body) for each in passing]


async def statuses(client: RawClient, read: list[RequestOutline]) -> list[int]:
    """Of the final answers to these requests."""
    return [(await client.answer(to_head=each.method == b"HEAD")).status for each in read]


@pytest.mark.parametrize("seed", range(4 * LONGER))
async def test_well_formed_exchanges_pass_unchanged_in_both_directions(
    seed: int, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    chance = Random(seed)
    planned: list[Made] = []

    async def script(received: Received, peer: Peer) -> None:
        answer = planned[-1]
        for segment in segments(answer.wire, cuts_of(chance, len(answer.wire))):
            await peer.send(segment)
        if read_answer(answer.wire).end != "complete":
            peer.close()

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    request, answer = make_request(chance, path=b"/v1/x", http10=False), make_answer(chance)
    for _ in range(40):
        if chance.random() < 0.6:  # else the same again, so that both sides come to know each other's heads
            request, answer = make_request(chance, path=b"/v1/x", http10=False), make_answer(chance)
        to_head = request.method == b"HEAD"
        if to_head and b" 200" not in answer.wire:
            continue  # an answer to HEAD that is cut at its end is another matter
        planned.append(answer)
        for segment in segments(request.wire, cuts_of(chance, len(request.wire))):
            await client.send(segment)
        answered = await client.answer(to_head=to_head)
        assert arrived(backend.last) == (request.method, request.target, request.body)
        assert said(backend.last.headers) == list(request.headers)
        assert (answered.status, answered.body) == (answer.status, b"" if to_head else answer.body)
        assert said(answered.headers) == list(answer.headers)
        assert answered.is_whole
    client.close()


@pytest.mark.parametrize("received", REQUESTS.values(), ids=REQUESTS)
async def test_of_the_corpus_only_what_was_meant_reaches_a_backend(
    received: bytes, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url), max_request=MAX_BODY)
    read = outlines(received)
    client = await proxy.connect()
    await client.send(received)
    for each, status in zip(read, await statuses(client, read), strict=True):
        known = 200 if each.target.startswith(b"/v1/") else 404
        assert status == (known if each.refused is None else each.refused[0])
    if read and (read[-1].refused is not None or not read[-1].keep_alive):
        assert await client.rest() == b""
    client.close()
    assert [arrived(each) for each in backend.requests] == forwarded(read)


@pytest.mark.parametrize("seed", range(3 * LONGER))
async def test_of_hostile_connections_only_what_was_meant_reaches_a_backend(
    seed: int, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    chance = Random(seed)
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    for _ in range(60):
        good = make_request(chance, path=b"/v1/x").wire
        # Behind good ones: the proxy knows this client's head by then.
        before = good * chance.choice((0, 0, 2, 3))
        received = (
            before + distort(chance, good) + chance.choice((b"", make_request(chance, path=b"/v1/y").wire))
        )
        read = outlines(received)
        backend.requests.clear()
        client = await proxy.connect()
        for segment in segments(
            received, [*range(0, len(before), len(good)), len(before), *cuts_of(chance, len(received))]
        ):
            await client.send(segment)
        for each, status in zip(read, await statuses(client, read), strict=True):
            if each.refused is not None:
                assert status == each.refused[0], received
        client.abort()
        assert [arrived(each) for each in backend.requests] == forwarded(read), received
    await eventually(lambda: not proxy.plane.clients and not proxy.plane.relays)
    assert all(server.outstanding == 0 for server in proxy.plane.servers)


def shows(read: AnswerOutline) -> tuple[int, bytes, bool]:
    """What a client sees of a backend's bytes: status, body, whether it is whole."""
    if read.end in ("complete", "ends with the connection"):
        return read.status, read.body, True
    if read.end == "unreadable" or not read.status:
        return 502, b"", True
    return read.status, read.body, False


@pytest.mark.parametrize("received", ANSWERS.values(), ids=ANSWERS)
async def test_of_the_corpus_a_client_gets_whole_answers_broken_ones_or_502(
    received: bytes, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    """And the exchange behind it, on the same connection of the client, is untouched by it."""
    read = read_answer(received)
    status, body, is_whole = shows(read)
    turns = itertools.count()

    async def script(_: Received, peer: Peer) -> None:
        if next(turns):
            await peer.send(OK)
        else:
            await peer.send(received, pause=0.02)
            peer.close()

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    answered = await client.ask(post())
    if answered.error:
        assert (answered.status, is_whole) == (502, True)
    else:
        assert (answered.status, answered.body, answered.is_whole) == (status, body, is_whole)
    if answered.is_whole:
        assert (await client.ask(post())).body == b"{}"
    client.close()
    [capture, *_] = await proxy.captures(1)
    assert (capture.ending is Ending.COMPLETE) == (is_whole and not answered.error)


async def test_noise_from_a_backend_never_reaches_a_client_as_an_answer_s_head(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    chance = Random(7)
    sent = b""

    async def script(received: Received, peer: Peer) -> None:
        await peer.send(*segments(sent, cuts_of(chance, len(sent))))
        peer.close()

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    for _ in range(60 * LONGER):
        sent = distort(chance, make_answer(chance).wire)
        read = read_answer(sent)
        answered = await proxy.ask(post())
        if not answered.error:
            assert answered.status == read.status, sent
            assert read.body.startswith(answered.body), sent
        backend_is_sound = next(iter(proxy.plane.servers))
        backend_is_sound.answered()  # or its failures would eject it
        await asyncio.sleep(0)
    assert all(server.outstanding == 0 for server in proxy.plane.servers)
