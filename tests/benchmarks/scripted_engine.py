"""A backend that costs next to nothing: 1 KB of JSON at once, or a stream of events at a fixed pace.

`python scripted_engine.py PORT [EVENTS] [SECONDS]`: a request whose body asks for a stream gets EVENTS,
one every SECONDS; each event carries its number and the monotonic time at which it was written.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import cast

import uvloop

CONTENT = b"a" * 900
BODY = (
    b'{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"'
    + CONTENT
    + b'"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":200,"total_tokens":210}}'
)
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (
    len(BODY),
    BODY,
)
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
EVENT = (
    b'data: {"object":"chat.completion.chunk","n":%d,"at":%d,'
    b'"choices":[{"index":0,"delta":{"content":"tok "}}]}\n\n'
)
DONE = b"data: [DONE]\n\n"


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


class Engine(asyncio.Protocol):
    """Finds the end of a request by its content-length, and answers."""

    def __init__(self, events: int, pace: float) -> None:
        self.events, self.pace = events, pace
        self.received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass of it

    def data_received(self, received: bytes) -> None:
        self.received += received
        while (end := self.received.find(b"\r\n\r\n")) >= 0:
            head = self.received[:end].lower()
            length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
            if len(self.received) < end + 4 + length:
                return
            body = self.received[end + 4 : end + 4 + length]
            self.received = self.received[end + 4 + length :]
            if b'"stream":true' in body:
                self.transport.write(STREAM)
                self.began, self.number = asyncio.get_running_loop().time(), 0
                self.tick()
            else:
                self.transport.write(ANSWER)

    def tick(self) -> None:
        if self.transport.is_closing():
            return
        if self.number == self.events:
            self.transport.write(chunk(DONE) + b"0\r\n\r\n")
            return
        self.transport.write(chunk(EVENT % (self.number, time.monotonic_ns())))
        self.number += 1
        # From the beginning, not from now: a late event must not make every later one late.
        asyncio.get_running_loop().call_at(self.began + self.number * self.pace, self.tick)


async def main() -> None:
    events = int(sys.argv[2]) if len(sys.argv) > 2 else 64
    pace = float(sys.argv[3]) if len(sys.argv) > 3 else 0.05
    server = await asyncio.get_running_loop().create_server(
        lambda: Engine(events, pace), "127.0.0.1", int(sys.argv[1]), backlog=4096
    )
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
