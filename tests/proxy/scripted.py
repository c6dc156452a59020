"""A raw-socket backend that does what a script says."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from tests.patience import PATIENCE

OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


@dataclass
class Received:
    """A request as it reached the backend."""

    line: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes

    def header(self, name: bytes) -> list[bytes]:
        return [value for key, value in self.headers if key.lower() == name.lower()]

    @property
    def names(self) -> list[bytes]:
        return [name for name, _ in self.headers]


class Peer:
    """The backend's side of a connection from the proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, *parts: bytes, pause: float = 0.0) -> None:
        """Each part in a segment of its own."""
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()
            if pause:
                await asyncio.sleep(pause)

    def close(self) -> None:
        self.writer.close()

    def cut(self) -> None:
        """FIN without the end that TLS has of its own."""
        opened = socket.socket(fileno=os.dup(self.writer.get_extra_info("socket").fileno()))
        with opened:
            opened.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """RST instead of FIN."""
        opened = self.writer.get_extra_info("socket")
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def gone(self, seconds: float = PATIENCE) -> bool:
        """Whether the proxy ends the connection within the time."""
        try:
            async with asyncio.timeout(seconds):
                return await self.reader.read(65536) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False


Script = Callable[[Received, Peer], Awaitable[None]]


async def answer_ok(received: Received, peer: Peer) -> None:
    await peer.send(OK)


class ScriptedBackend:
    """Answers each request by its script; remembers requests and counts connections."""

    def __init__(self, script: Script = answer_ok) -> None:
        self.script = script
        self.requests: list[Received] = []
        self.connections = 0
        self.failures: list[BaseException] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0
        self.url = ""

    async def start(
        self,
        port: int = 0,
        *,
        host: str = "127.0.0.1",
        path: Path | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """On a port, or on the unix socket `path`."""
        if path is not None:
            self._server = await asyncio.start_unix_server(self._accept, path)
            self.url = f"unix:{path}"
            return
        self._server = await asyncio.start_server(self._accept, host, port, ssl=tls)
        self.port = self._server.sockets[0].getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        self.url = f"{'http' if tls is None else 'https'}://{shown}:{self.port}"

    async def stop(self) -> None:
        self._server.close()
        for writer in tuple(self._writers):
            writer.transport.abort()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def last(self) -> Received:
        return self.requests[-1]

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        self.connections += 1
        try:
            await self._converse(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, RuntimeError):
            pass  # uvloop says RuntimeError of a transport that is closed
        except AssertionError as error:
            self.failures.append(error)
        finally:
            self._tasks.discard(task)
            self._writers.discard(writer)
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        while not writer.is_closing():
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head[:-4].split(b"\r\n")
            headers = [
                (name, value.strip()) for name, _, value in (line.partition(b":") for line in lines[1:])
            ]
            length = [int(value) for name, value in headers if name.lower() == b"content-length"]
            body = await reader.readexactly(length[0]) if length else b""
            self.requests.append(Received(lines[0], headers, body))
            await self.script(self.requests[-1], peer)
