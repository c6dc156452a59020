"""Backends as a load run reaches them: where, with which head, over which idle connection."""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import Callable
from typing import TypeVar, cast
from urllib.parse import urlsplit

import httptools

from evaluators.exchange import FaultKind
from service import tls
from service.fleet import Backend
from service.load.connection import Connection
from service.load.flight import Flight
from service.load.timed import OUT_OF_FILES
from service.reach import base_url, headers_of

IDLE_SECONDS = 3.0
"""Less than the 5 s after which uvicorn (vLLM's default too) closes an idle connection."""
CONNECT_SECONDS = 10.0
PAGE_SECONDS = 5.0
LONGEST_PAGE = 4 * 1024 * 1024
"""Bytes of a page of metrics."""
_MARK = "x-tiergate-replay"
_PORTS = {"http": 80, "https": 443}
_OURS = frozenset({"host", "connection", "content-length", "content-type", "transfer-encoding", "accept"})
"""Headers that say how a request is written, whatever the configuration adds."""
P = TypeVar("P", bound=asyncio.Protocol)


class Server:
    """One backend. `over` is told of every request that ended."""

    def __init__(self, backend: Backend, over: Callable[[Flight], None]) -> None:
        split = urlsplit(base_url(backend))
        if split.scheme not in _PORTS or not split.hostname:
            raise ValueError(f"backend {backend.url!r} is not http://HOST, https://HOST or unix:/PATH")
        self.url = backend.url
        self.outstanding = 0
        self._over = over
        self._socket = backend.socket
        self._host, self._port = split.hostname, split.port or _PORTS[split.scheme]
        self._tls = None
        if split.scheme == "https":
            self._tls = tls.connecting(
                ca=backend.tls.ca,
                certificate=backend.tls.certificate,
                key=backend.tls.key,
                insecure_skip_verify=backend.tls.insecure_skip_verify,
            )
        added = {name: told for name, told in headers_of(backend).items() if name not in _OURS}
        own = {"user-agent": "tiergate-load", "accept-encoding": "identity", **added, _MARK: "1"}
        self._head = f" HTTP/1.1\r\nhost: {split.netloc.rpartition('@')[2]}\r\n" + "".join(
            f"{name}: {value}\r\n" for name, value in own.items()
        )
        self._heads: dict[str, bytes] = {}
        self._idle: list[Connection] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def put(self, flight: Flight) -> None:
        """Send it over an idle connection, or over a new one as soon as that stands."""
        self.outstanding += 1
        self._dispatch(flight)

    def give_up(self, flight: Flight, fault: str) -> None:
        """It has taken too long: whatever its connection brings now is too late."""
        flight.fault, flight.ended = fault, time.monotonic()
        self.outstanding -= 1
        if flight.stop is not None:
            flight.stop.abort()
        self._over(flight)

    def close(self) -> None:
        """Drop every connection, with what is under way on it."""
        for task in self._tasks:
            task.cancel()
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    def prune(self, now: float) -> None:
        """Close what has been idle for too long to be trusted."""
        while self._idle and now - self._idle[0].idle_since > IDLE_SECONDS:
            self._idle.pop(0).close()

    async def page(self, path: str) -> str:
        """What it answers to GET; OSError or TimeoutError unless it does, with 200."""
        async with asyncio.timeout(PAGE_SECONDS):
            reader = await self._connect(_Page)
            try:
                head = f"GET {path}{self._head}connection: close\r\n\r\n"
                reader.transport.write(head.encode("latin-1"))
                return await reader.whole
            finally:
                reader.transport.abort()

    def _dispatch(self, flight: Flight) -> None:
        now = time.monotonic()
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open and now - connection.idle_since <= IDLE_SECONDS:
                connection.send(flight, self._head_of(flight.path))
                return
            connection.close()
        task = asyncio.get_running_loop().create_task(self._open(flight))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _open(self, flight: Flight) -> None:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                connection = await self._connect(lambda: Connection(self._ended))
        except (OSError, TimeoutError) as error:
            ours = isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)
            self._fail(flight, OUT_OF_FILES if ours else FaultKind.UNREACHABLE)
            return
        if flight.ended is not None:
            connection.close()  # given up while the connection was being made
        else:
            connection.send(flight, self._head_of(flight.path))

    async def _connect(self, made: Callable[[], P]) -> P:
        loop = asyncio.get_running_loop()
        if self._socket is not None:
            _, protocol = await loop.create_unix_connection(made, self._socket)
        else:
            name = self._host if self._tls is not None else None
            _, protocol = await loop.create_connection(
                made, self._host, self._port, ssl=self._tls, server_hostname=name
            )
        return protocol

    def _head_of(self, path: str) -> bytes:
        if path not in self._heads:
            head = (
                f"POST {path}{self._head}accept: text/event-stream\r\ncontent-type: application/json\r\n"
                "content-length: "
            )
            self._heads[path] = head.encode("latin-1")
        return self._heads[path]

    def _ended(self, connection: Connection, flight: Flight, again: bool) -> None:
        if again:
            self._dispatch(flight)
            return
        self.outstanding -= 1
        if connection.is_open:
            self._idle.append(connection)
        self._over(flight)

    def _fail(self, flight: Flight, fault: str) -> None:
        if flight.ended is None:
            flight.fault, flight.ended = fault, time.monotonic()
            self.outstanding -= 1
            self._over(flight)


class _Page(asyncio.Protocol):
    """A connection that is asked for one page."""

    def __init__(self) -> None:
        self.whole: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._parser = httptools.HttpResponseParser(self)
        self._body = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, received: bytes) -> None:
        try:
            self._parser.feed_data(received)
        except httptools.HttpParserError as error:
            self._fail(f"no HTTP: {error}")

    def connection_lost(self, exc: Exception | None) -> None:
        # A page may be as long as its connection.
        if exc is None and self._body:
            self.on_message_complete()
        self._fail("it hung up")

    def on_body(self, piece: bytes) -> None:
        self._body += piece
        if len(self._body) > LONGEST_PAGE:
            self._fail(f"the page is longer than {LONGEST_PAGE} bytes")

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        if status != 200:
            self._fail(f"status {status}")
        elif not self.whole.done():
            self.whole.set_result(self._body.decode("utf-8", "replace"))

    def _fail(self, why: str) -> None:
        if not self.whole.done():
            self.whole.set_exception(OSError(why))
