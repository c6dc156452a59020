"""A raw-socket client, and requests for it."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.patience import PATIENCE


@dataclass
class Answered:
    """An answer as it reached the client."""

    status: int
    reason: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes
    is_whole: bool = True
    trailers: list[bytes] = field(default_factory=list)
    interims: list[bytes] = field(default_factory=list)

    def header(self, name: bytes) -> list[bytes]:
        return [value for key, value in self.headers if key.lower() == name.lower()]

    @property
    def error(self) -> bytes:
        return b"".join(self.header(b"x-tiergate-error"))


class RawClient:
    """Says and reads exactly what the test wants."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, *parts: bytes, pause: float = 0.0) -> None:
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()
            if pause:
                await asyncio.sleep(pause)

    async def ask(self, request: bytes, **how: bool) -> Answered:
        await self.send(request)
        return await self.answer(**how)

    async def answer(self, *, to_head: bool = False) -> Answered:
        """The next answer; `is_whole` is false when the connection ends before it does."""
        async with asyncio.timeout(PATIENCE):
            interims = []
            while True:
                head = await self.reader.readuntil(b"\r\n\r\n")
                lines = head[:-4].split(b"\r\n")
                version, status, reason = lines[0].split(b" ", 2)
                assert version == b"HTTP/1.1"
                if int(status) >= 200:
                    break
                interims.append(head)
            headers = [
                (name, value.strip()) for name, _, value in (line.partition(b":") for line in lines[1:])
            ]
            answered = Answered(int(status), reason, headers, b"", interims=interims)
            if to_head or answered.status in (204, 304):
                return answered
            try:
                await self._read_body(answered)
            except (asyncio.IncompleteReadError, ConnectionError) as error:
                answered.is_whole = False
                answered.body += getattr(error, "partial", b"")
            return answered

    async def _read_body(self, answered: Answered) -> None:
        if answered.header(b"transfer-encoding"):
            while size := int(await self.reader.readuntil(b"\r\n"), 16):
                answered.body += await self.reader.readexactly(size)
                assert await self.reader.readexactly(2) == b"\r\n"
            while (line := await self.reader.readuntil(b"\r\n")) != b"\r\n":
                answered.trailers.append(line[:-2])
        elif answered.header(b"content-length"):
            answered.body = await self.reader.readexactly(int(answered.header(b"content-length")[0]))
        else:
            answered.body = await self.reader.read()

    async def rest(self) -> bytes:
        """Everything until the proxy ends the connection; a reset shows as `b"<reset>"`."""
        async with asyncio.timeout(PATIENCE):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b"<reset>"

    def close(self) -> None:
        self.writer.close()

    def reset(self) -> None:
        """RST instead of FIN."""
        opened = self.writer.get_extra_info("socket")
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    def abort(self) -> None:
        self.writer.transport.abort()


def post(
    body: bytes = b'{"model":"m","messages":[]}',
    *,
    path: bytes = b"/v1/chat/completions",
    headers: Sequence[bytes] = (),
) -> bytes:
    """A request with a length."""
    lines = [b"POST %b HTTP/1.1" % path, b"Host: proxy", b"Content-Type: application/json", *headers]
    return b"\r\n".join([*lines, b"Content-Length: %d" % len(body), b"", b""]) + body


def get(path: bytes, *headers: bytes) -> bytes:
    return b"\r\n".join([b"GET %b HTTP/1.1" % path, b"Host: proxy", *headers, b"", b""])
