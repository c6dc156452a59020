"""A page of a backend, read to its end however that is told."""

from __future__ import annotations

import pytest

from service.fleet import Backend
from service.proxy.traffic.asking import NoAnswer, NoTime, ask_page
from service.proxy.traffic.pool import Server
from tests.ports import free_port
from tests.proxy.scripted import Peer, Received
from tests.proxy.standing import StartBackend

HEAD = b"HTTP/1.1 200 OK\r\n"


async def asked(start_backend: StartBackend, *parts: bytes, longest: int = 100) -> bytes:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(*parts)
        peer.close()

    backend = await start_backend(script)
    server = Server(Backend(url=backend.url, api_key="k", headers=(("x-tenant", "gold"),)))
    try:
        return await ask_page(server, "/metrics", seconds=60.0, longest=longest)
    finally:
        assert backend.last.line == b"GET /metrics HTTP/1.1"
        assert backend.last.header(b"authorization") == [b"Bearer k"]
        assert backend.last.header(b"x-tenant") == [b"gold"]


@pytest.mark.parametrize(
    "parts",
    [
        (HEAD + b"content-length: 4\r\n\r\na 1\n",),
        (HEAD + b"content-length: 4\r\n\r\n", b"a ", b"1\n"),
        (HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\na \r\n2\r\n1\n\r\n", b"0\r\n\r\n"),
        (HEAD + b"\r\n", b"a 1\n"),
    ],
)
async def test_the_page_is_whole_however_its_end_is_told(
    parts: tuple[bytes, ...], start_backend: StartBackend
) -> None:
    assert await asked(start_backend, *parts) == b"a 1\n"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", "answered 404"),
        (HEAD + b"content-length: 4\r\n\r\na", "closed the connection without an answer"),
        (HEAD + b"content-length: 101\r\n\r\n" + b"a" * 101, "gave a page of more than 100 bytes"),
        (b"what?\r\n\r\n", "gave an unreadable answer"),
        (b"", "closed the connection without an answer"),
    ],
)
async def test_what_is_no_page_says_why(answer: bytes, why: str, start_backend: StartBackend) -> None:
    with pytest.raises(NoAnswer, match=f"^{why}$"):
        await asked(start_backend, answer)


async def test_nobody_there_and_nobody_who_speaks_are_told_apart(start_backend: StartBackend) -> None:
    nobody = Server(Backend(url=f"http://127.0.0.1:{free_port()}"))
    with pytest.raises(NoAnswer, match=r"^refused the connection$"):
        await ask_page(nobody, "/metrics", seconds=60.0, longest=100)

    async def script(received: Received, peer: Peer) -> None:
        assert await peer.gone()

    silent = Server(Backend(url=(await start_backend(script)).url))
    with pytest.raises(NoTime, match=r"^timed out$"):
        await ask_page(silent, "/metrics", seconds=0.1, longest=100)
