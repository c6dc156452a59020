"""Questions of our own to a backend, each over a connection of its own: its health, its metrics."""

from __future__ import annotations

import asyncio

from service.proxy.http.answers import AnswerReader
from service.proxy.traffic.notices import UNREADABLE, why_unreached
from service.proxy.traffic.pool import Server

CLOSED = "closed the connection without an answer"
_OK = 200
_ONE_READ = 64 * 1024


class NoAnswer(Exception):
    """A backend did not say what it was asked for; why, in a few words."""


class NoTime(NoAnswer):
    """What it would have said is not known: it was not given the time."""


def question(server: Server, path: str) -> bytes:
    """GET of a path, with the backend's key and headers."""
    headers = [(b"host", server.authority), (b"user-agent", b"tiergate"), (b"connection", b"close")]
    if server.api_key is not None:
        headers.append((b"authorization", b"Bearer " + server.api_key))
    ours = {name.lower() for name, _ in server.headers}
    headers = [*(each for each in headers if each[0] not in ours), *server.headers]
    lines = b"".join(b"%b: %b\r\n" % each for each in headers)
    return b"GET %b HTTP/1.1\r\n%b\r\n" % (path.encode(), lines)


async def opened(server: Server) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection of its own."""
    if server.socket is not None:
        return await asyncio.open_unix_connection(server.socket)
    return await asyncio.open_connection(server.host, server.port, ssl=server.tls)


async def ask_page(server: Server, path: str, *, seconds: float, longest: int) -> bytes:
    """The body of its 200 to GET; NoAnswer for any other, or beyond `longest` bytes; NoTime: none in time."""
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await opened(server)
            try:
                writer.write(question(server, path))
                return await _page(reader, longest)
            finally:
                writer.transport.abort()
    except TimeoutError as error:
        raise NoTime(why_unreached(error)) from error
    except OSError as error:
        raise NoAnswer(why_unreached(error)) from error
    except ValueError as error:
        raise NoAnswer(why_unreached(error) if isinstance(error, UnicodeError) else UNREADABLE) from error


async def _page(reader: asyncio.StreamReader, longest: int) -> bytes:
    answer, page = AnswerReader(for_head=False), bytearray()
    try:
        while not answer.complete:
            received = await reader.read(_ONE_READ)
            if not received:
                if answer.end_of_file():
                    break
                raise NoAnswer(CLOSED)
            answer.feed(received)
            page += answer.take()
            if len(page) > longest:
                raise NoAnswer(f"gave a page of more than {longest} bytes")
    finally:
        answer.close()
    head = answer.head
    assert head is not None, "an answer that is complete has a head"
    if head.status != _OK:
        raise NoAnswer(f"answered {head.status}")
    return bytes(page)
