"""A backend that costs next to nothing: 1 KB of JSON, or a stream of events at a fixed pace.

`python scripted_engine.py PORT [--events N] [--pace SECONDS] [--think SECONDS] [--told]`: a request whose
body asks for a stream gets so many events, one every SECONDS; each carries its number and the monotonic time
at which it was written. All else is answered after `--think`; `"large":true` asks for 6 MiB.
With `--told`, each line on standard input is a mode: ok, hung, slow (ten times), error (500), reset (in the
middle of the answer).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import socket
import struct
import sys
import time
from typing import Any, cast

import uvloop

MODES = ("ok", "hung", "slow", "error", "reset")
SLOWER = 10
"""Times, in mode `slow`."""


def completion(content: bytes) -> bytes:
    """The body of a whole chat completion."""
    return (
        b'{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":'
        b'{"role":"assistant","content":"' + content + b'"},"finish_reason":"stop"}],'
        b'"usage":{"prompt_tokens":10,"completion_tokens":200,"total_tokens":210}}'
    )


def plain(body: bytes, status: bytes = b"200 OK") -> bytes:
    """A whole answer."""
    head = b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % (status, len(body)) + body


BODY = completion(b"a" * 900)
# More than the kernel buffers on the way to a reader that is slow.
LARGE = completion(b"a" * 6 * 1024 * 1024)
ANSWER, LARGE_ANSWER = plain(BODY), plain(LARGE)
REFUSAL = plain(b'{"error":{"message":"out of memory","type":"server_error"}}', b"500 Internal Server Error")
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
# Number and time have a fixed width, so that a reader can compare every byte at the cost of three slices.
BEFORE, BETWEEN, AFTER = (
    b'data: {"id":"x-',
    b'","object":"chat.completion.chunk","created":1,"model":"m","at":"',
    b'","choices":[{"index":0,"delta":{"content":"tok "},"finish_reason":null}]}\n\n',
)
EVENT = BEFORE + b"%06d" + BETWEEN + b"%020d" + AFTER
LAST = (
    b'data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m",'
    b'"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


class Manner:
    """How every connection behaves at the moment."""

    def __init__(self, events: int, pace: float, think: float) -> None:
        self.events, self.pace, self.think = events, pace, think
        self.mode = "ok"

    @property
    def factor(self) -> int:
        return SLOWER if self.mode == "slow" else 1


class Engine(asyncio.Protocol):
    """Finds the end of a request by its content-length, and answers."""

    def __init__(self, manner: Manner) -> None:
        self.manner = manner
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
        manner = self.manner
        if manner.mode == "hung":
            return
        if manner.mode == "error" and body:
            self.transport.write(REFUSAL)
        elif b'"stream":true' in body or b'"stream": true' in body:
            self.transport.write(STREAM)
            self.began, self.number = self.loop.time(), 0
            self.pace, self.fatal = manner.pace * manner.factor, -1
            if manner.mode == "reset":
                self.fatal = manner.events // 2
            self.tick()
        else:
            answer = LARGE_ANSWER if b'"large":true' in body else ANSWER
            if manner.mode == "reset" and body:
                self.transport.write(answer[: len(answer) // 2])
                self.loop.call_later(manner.think, self.reset)
            elif manner.think:
                self.loop.call_later(manner.think * manner.factor, self.transport.write, answer)
            else:
                self.transport.write(answer)

    def tick(self) -> None:
        if self.transport.is_closing():
            return
        if self.number == self.fatal:
            self.reset()
        elif self.number == self.manner.events:
            self.transport.write(chunk(LAST) + b"0\r\n\r\n")
        else:
            self.transport.write(chunk(EVENT % (self.number, time.monotonic_ns())))
            self.number += 1
            # From the beginning, not from now: a late event must not make every later one late.
            self.loop.call_at(self.began + self.number * self.pace, self.tick)

    def reset(self) -> None:
        if not self.transport.is_closing():
            opened = self.transport.get_extra_info("socket")
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            self.transport.abort()


def listen_to(lines: int, obey: Any) -> None:
    """Call `obey` with every line that comes on a descriptor, until it ends."""
    heard = b""

    def ready() -> None:
        nonlocal heard
        received = b""
        with contextlib.suppress(BlockingIOError):
            received = os.read(lines, 4096)
            if not received:
                asyncio.get_running_loop().remove_reader(lines)
        *whole, heard = (heard + received).split(b"\n")
        for line in whole:
            obey(line.decode())

    os.set_blocking(lines, False)
    asyncio.get_running_loop().add_reader(lines, ready)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("--events", type=int, default=64)
    parser.add_argument("--pace", type=float, default=0.05)
    parser.add_argument("--think", type=float, default=0.0)
    parser.add_argument("--told", action="store_true")
    asked = parser.parse_args()
    manner = Manner(asked.events, asked.pace, asked.think)

    def obey(mode: str) -> None:
        if mode not in MODES:
            sys.exit(f"no mode called {mode!r}; there are {', '.join(MODES)}")
        manner.mode = mode

    if asked.told:
        listen_to(sys.stdin.fileno(), obey)
    server = await asyncio.get_running_loop().create_server(
        lambda: Engine(manner), "127.0.0.1", asked.port, backlog=4096
    )
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
