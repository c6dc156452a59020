"""One backend: what is given up, what is reused, and pages that are no pages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from evaluators.exchange import FaultKind
from service.fleet import Backend
from service.load.flight import Flight
from service.load.output import ChatOutput
from service.load.servers import LONGEST_PAGE, Server
from tests.load.scripted import chat, scripted
from tests.patience import PATIENCE


def flight(ordinal: int = 0) -> Flight:
    body = b'{"messages":[]}'
    path = "/v1/chat/completions"
    return Flight(
        ordinal=ordinal, request=0, path=path, body=body, output=ChatOutput(), scheduled=0.0, begun=0.0
    )


@asynccontextmanager
async def answering(raw: bytes) -> AsyncIterator[Server]:
    """A server that says the same to everybody and hangs up."""

    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(raw)
        writer.close()

    listener = await asyncio.start_server(say, "127.0.0.1", 0)
    try:
        url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        yield Server(Backend(url=url), lambda flight: None)
    finally:
        listener.close()


async def test_a_request_given_up_before_its_connection_stands_is_never_sent() -> None:
    over: list[Flight] = []
    first = asyncio.Event()

    def ended(flight: Flight) -> None:
        over.append(flight)
        first.set()

    async with scripted(chat) as backend, asyncio.timeout(PATIENCE):
        server = Server(Backend(url=backend.url), ended)
        given_up, other = flight(), flight(1)
        server.put(given_up)
        server.give_up(given_up, FaultKind.TIMEOUT)
        assert server.outstanding == 0
        first.clear()
        server.put(other)
        await first.wait()
        # The first connection was made before the second's answer came, and carried nothing.
        assert backend.connections == 2
        assert len(backend.served) == 1
        server.close()
    assert (given_up.sent, given_up.fault) == (None, "timeout")
    assert over == [given_up, other]
    assert other.fault == ""


async def test_an_idle_connection_is_used_again() -> None:
    over: asyncio.Queue[Flight] = asyncio.Queue()
    async with scripted(chat) as backend, asyncio.timeout(PATIENCE):
        server = Server(Backend(url=backend.url), over.put_nowait)
        for number in range(3):
            server.put(flight(number))
            assert (await over.get()).fault == ""
        assert backend.connections == 1
        server.prune(now=float("inf"))
        server.put(flight(3))
        await over.get()
        assert backend.connections == 2
        server.close()


async def test_a_page_is_read_whole_however_it_ends() -> None:
    async with answering(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc") as server:
        assert await server.page("/metrics") == "abc"
    async with answering(b"HTTP/1.0 200 OK\r\n\r\nabcd") as server:
        assert await server.page("/metrics") == "abcd"


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.0 500 No\r\n\r\nsorry",
        b"SSH-2.0\r\n\r\n",
        b"",
    ],
)
async def test_anything_else_is_no_page(raw: bytes) -> None:
    async with answering(raw) as server:
        with pytest.raises(OSError, match=r"status|HTTP|hung up"):
            await server.page("/metrics")


async def test_a_page_that_is_too_long_is_none() -> None:
    async with answering(b"HTTP/1.0 200 OK\r\n\r\n" + b"x" * (LONGEST_PAGE + 1)) as server:
        with pytest.raises(OSError, match="longer than 4194304 bytes"):
            await server.page("/metrics")


@pytest.mark.parametrize("url", ["gpu-a:8000", "ftp://gpu-a", "http://"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="is not http://HOST"):
        Server(Backend(url=url), lambda flight: None)
