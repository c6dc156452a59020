"""A backend that streams as the request says, and stamps every event with the time of its write.

`python paced_engine.py PORT`. The request's last message is JSON: `{"think": s, "pace": s, "events": n}`.
Each event has `at`, the monotonic nanoseconds just before it was written, and the stream ends with its usage.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import cast

import uvloop

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
EVENT = (
    b'data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m","at":%d,'
    b'"choices":[{"index":0,"delta":{"content":"tok "},"finish_reason":null}]}\n\n'
)
LAST = (
    b'data: {"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    b'data: {"id":"x","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":%d}}\n\ndata: [DONE]\n\n'
)


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


class Engine(asyncio.Protocol):
    """Finds the end of a request by its content-length, and streams."""

    def __init__(self) -> None:
        self.received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass of it
        self.loop = asyncio.get_running_loop()

    def data_received(self, received: bytes) -> None:
        self.received += received
        while (end := self.received.find(b"\r\n\r\n")) >= 0:
            head = self.received[:end].lower()
            length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
            if len(self.received) < end + 4 + length:
                return
            body = self.received[end + 4 : end + 4 + length]
            self.received = self.received[end + 4 + length :]
            self.answer(body)

    def answer(self, body: bytes) -> None:
        if not body:
            self.transport.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
            return
        asked = json.loads(json.loads(body)["messages"][-1]["content"])
        self.pace, self.events, self.number = asked["pace"], asked["events"], 0
        self.transport.write(HEAD)
        self.begin = self.loop.time() + asked["think"]
        self.loop.call_at(self.begin, self.tick)

    def tick(self) -> None:
        if self.transport.is_closing():
            return
        self.transport.write(chunk(EVENT % time.monotonic_ns()))
        self.number += 1
        if self.number == self.events:
            self.transport.write(chunk(LAST % self.events) + b"0\r\n\r\n")
        else:
            # From the beginning, not from now: a late event must not make every later one late.
            self.loop.call_at(self.begin + self.number * self.pace, self.tick)


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(
        Engine, "127.0.0.1", int(sys.argv[1]), backlog=4096
    )
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
