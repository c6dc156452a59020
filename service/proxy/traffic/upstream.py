"""The backend side: one connection to a backend, lent to one relay at a time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from service.proxy.traffic.errand import Errand
    from service.proxy.traffic.pool import Server


class BackendConnection(asyncio.Protocol):
    """Hands what arrives to the relay that has it. Bytes that nobody asked for end the connection."""

    __slots__ = ("_has_ended", "idle_since", "is_reused", "relay", "server", "transport")

    transport: asyncio.Transport

    def __init__(self, server: Server) -> None:
        self.server = server
        self.relay: Errand | None = None
        self.is_reused = False
        self._has_ended = False
        """The backend said that it has nothing more to say."""
        self.idle_since = 0.0
        """Monotonic."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's do not inherit from it

    def data_received(self, received: bytes) -> None:
        if self.relay is None:
            self.transport.abort()
        else:
            self.relay.received(received)

    def eof_received(self) -> None:
        self._has_ended = True

    def connection_lost(self, error: Exception | None) -> None:
        if self.relay is not None:
            relay, self.relay = self.relay, None
            # A TLS stream without its own end was cut, by whomever: the loop tells that by no `eof_received`.
            relay.backend_lost(cleanly=error is None and (self._has_ended or self.server.tls is None))
        elif self in self.server.idle:
            self.server.idle.remove(self)

    def drop(self) -> None:
        """Give the connection up at once; the backend notices that nobody waits any more."""
        self.relay = None
        self.transport.abort()


async def connect(server: Server, *, seconds: float) -> BackendConnection:
    """A new connection; OSError or TimeoutError when there is none to be had in time."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(seconds):
        if server.socket is not None:
            _, connection = await loop.create_unix_connection(
                lambda: BackendConnection(server), server.socket
            )
        else:
            _, connection = await loop.create_connection(
                lambda: BackendConnection(server), server.host, server.port, ssl=server.tls
            )
    return connection
