"""A server of declared capacity: `python load_engine.py [--seconds S] [--rate R] [--slack B] [--pause P] ...`

It prints its port. A chat completion is a stream of `--tokens` events, all at once after `--seconds`, so that
no scheduler of this machine comes between its tokens. It keeps up with `--rate` requests a second: each that
comes is so much work more, and while it is more than `--slack` seconds behind, a `--pause` comes between the
first token and the others. What is late by less than the slack therefore changes nothing, and twice the rate
is twice the capacity. With a rate of 0 it is behind from the beginning. Of GET only /health is there. It ends
when its standard input does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
from dataclasses import dataclass


@dataclass
class Engine:
    """What it is told to be, and how far behind it is."""

    seconds: float
    rate: float
    slack: float
    pause: float
    tokens: int
    behind: float = 0.0
    """Seconds of work, at the last request."""
    at: float = 0.0
    """When that came."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        first, _, rest = head.partition("\r\n")
        if first.startswith("get"):
            await self._tell(first.split()[1], writer)
            return "connection: close" not in rest
        length = int(rest.partition("content-length:")[2].partition("\r\n")[0])
        await reader.readexactly(length)
        await self._answer(writer, late=self._is_late(asyncio.get_running_loop().time()))
        return True

    def _is_late(self, now: float) -> bool:
        if self.rate <= 0:
            return True
        self.behind = max(0.0, self.behind - (now - self.at))
        self.at = now
        late = self.behind > self.slack
        # What is turned away late is forgotten: the next block does not find it.
        self.behind = min(self.behind + 1 / self.rate, self.slack + 2 / self.rate)
        return late

    async def _answer(self, writer: asyncio.StreamWriter, *, late: bool) -> None:
        await asyncio.sleep(self.seconds)
        begin = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        token = _event({"choices": [{"index": 0, "delta": {"content": "tok "}}]})
        if late:
            writer.write(begin + token)
            await writer.drain()
            await asyncio.sleep(self.pause)
            begin = b""
        usage = {"prompt_tokens": 10, "completion_tokens": self.tokens, "total_tokens": 10 + self.tokens}
        writer.write(
            begin
            + token * (self.tokens - late)
            + _event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
            + _event({"choices": [], "usage": usage})
            + _chunk(b"data: [DONE]\n\n")
            + _chunk(b"")
        )
        await writer.drain()

    async def _tell(self, path: str, writer: asyncio.StreamWriter) -> None:
        status, body = b"404 Not Found", b"{}"
        if path == "/health":
            status = b"200 OK"
        writer.write(
            b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
            % (status, len(body), body)
        )
        await writer.drain()


def _event(told: object) -> bytes:
    return _chunk(f"data: {json.dumps(told)}\n\n".encode())


def _chunk(told: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(told), told)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--rate", type=float, default=math.inf)
    parser.add_argument("--slack", type=float, default=0.0)
    parser.add_argument("--pause", type=float, default=0.0)
    parser.add_argument("--tokens", type=int, default=4)
    asked = parser.parse_args()
    engine = Engine(
        seconds=asked.seconds, rate=asked.rate, slack=asked.slack, pause=asked.pause, tokens=asked.tokens
    )
    server = await asyncio.start_server(engine.serve, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    # Whoever started it holds the other end: a test that is killed leaves no engine behind.
    await asyncio.to_thread(sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
