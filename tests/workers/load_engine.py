"""A server whose speed is declared: `python load_engine.py [--seconds S] [--at-once N] [--late S] ...`

It prints its port. Every chat completion is a stream of `--tokens` events, evenly over `--seconds`. A request
that comes while `--at-once` others are under way gets its first token only after `--late` seconds more, and
its tokens `--slower` times as slowly. Of GET only /health is there. It ends when its
standard input does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from dataclasses import dataclass


@dataclass
class Engine:
    """What it is told to be, and how busy it is."""

    seconds: float
    at_once: int
    late: float
    slower: float
    tokens: int
    under_way: int = 0

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
        crowded = self.under_way >= self.at_once
        self.under_way += 1
        try:
            await self._answer(writer, crowded=crowded)
        finally:
            self.under_way -= 1
        return True

    async def _answer(self, writer: asyncio.StreamWriter, *, crowded: bool) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        loop = asyncio.get_running_loop()
        pace = self.seconds / self.tokens * (self.slower if crowded else 1.0)
        # From one moment on, not one sleep after the other: a late one must not make all others late.
        begun = loop.time() + (self.late if crowded else 0.0)
        for number in range(self.tokens):
            await asyncio.sleep(max(0.0, begun + (number + 1) * pace - loop.time()))
            await self._event(writer, {"choices": [{"index": 0, "delta": {"content": "tok "}}]})
        await self._event(writer, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        usage = {"prompt_tokens": 10, "completion_tokens": self.tokens, "total_tokens": 10 + self.tokens}
        await self._event(writer, {"choices": [], "usage": usage})
        await self._chunk(writer, b"data: [DONE]\n\n")
        await self._chunk(writer, b"")

    async def _event(self, writer: asyncio.StreamWriter, told: object) -> None:
        await self._chunk(writer, f"data: {json.dumps(told)}\n\n".encode())

    async def _chunk(self, writer: asyncio.StreamWriter, told: bytes) -> None:
        writer.write(b"%x\r\n%b\r\n" % (len(told), told))
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


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--at-once", type=int, default=1000)
    parser.add_argument("--late", type=float, default=0.0)
    parser.add_argument("--slower", type=float, default=1.0)
    parser.add_argument("--tokens", type=int, default=4)
    asked = parser.parse_args()
    engine = Engine(
        seconds=asked.seconds,
        at_once=asked.at_once,
        late=asked.late,
        slower=asked.slower,
        tokens=asked.tokens,
    )
    server = await asyncio.start_server(engine.serve, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    # Whoever started it holds the other end: a test that is killed leaves no engine behind.
    await asyncio.to_thread(sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
