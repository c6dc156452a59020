"""A TCP relay in front of a server, which hands on every byte late when told to.

`python -m tests.benchmarks.slow_relay PORT SERVER_PORT`; each line on standard input is a delay in seconds
for what passes from then on, in either direction. Bytes never overtake each other.
"""

from __future__ import annotations

import asyncio
import sys
from typing import cast

import uvloop

from tests.benchmarks.scripted_engine import listen_to


class Delay:
    """Of all connections alike."""

    seconds = 0.0


class End(asyncio.Protocol):
    """One end of a connection; what it hears goes out of the other."""

    def __init__(self, delay: Delay, other: End | None = None) -> None:
        self.delay = delay
        self.other = other
        self.early: list[bytes] = []
        self.last = 0.0
        """When the latest bytes are due."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass of it
        self.loop = asyncio.get_running_loop()

    def data_received(self, received: bytes) -> None:
        now = self.loop.time()
        due = max(now + self.delay.seconds, self.last)
        if due <= now:
            self.hand_on(received)
        else:
            self.last = due
            self.loop.call_at(due, self.hand_on, received)

    def hand_on(self, received: bytes) -> None:
        if self.other is None:
            self.early.append(received)
        elif not self.other.transport.is_closing():
            self.other.transport.write(received)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.other is not None:
            self.other.transport.close()


class Front(End):
    """The client's end: opens the way to the server, and refuses when nobody is there."""

    def __init__(self, delay: Delay, server_port: int) -> None:
        super().__init__(delay)
        self.server_port = server_port

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.opening = self.loop.create_task(self.open())

    async def open(self) -> None:
        try:
            _, back = await self.loop.create_connection(
                lambda: End(self.delay, self), "127.0.0.1", self.server_port
            )
        except OSError:
            self.transport.abort()
            return
        self.other = back
        for early in self.early:
            back.transport.write(early)
        if self.transport.is_closing():
            back.transport.close()


async def main() -> None:
    port, server_port = int(sys.argv[1]), int(sys.argv[2])
    delay = Delay()

    def obey(line: str) -> None:
        delay.seconds = float(line)

    listen_to(sys.stdin.fileno(), obey)
    server = await asyncio.get_running_loop().create_server(
        lambda: Front(delay, server_port), "127.0.0.1", port
    )
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
