"""Clients of every kind at once: plain, streaming, pipelining, reading slowly, and hanging up.

`python -m tests.benchmarks.mixed_load PORT --seconds 60 --seed 1 --events N [--scale 1]` prints one JSON
document: what was sent, by kind what became of it, and what went wrong for those who waited for their answer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import socket
import struct
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

import uvloop

from tests.benchmarks.open_load import arrivals, request
from tests.benchmarks.reply import Damaged, Reply

PATIENCE = 60.0
"""Seconds that one visit may take."""
VISITS = {"plain": 12.0, "streaming": 20.0, "hanging up": 30.0, "pipelining": 5.0, "reading slowly": 0.5}
"""Per second and kind."""
ON_ONE_CONNECTION = 5
"""Requests of a plain visit, one after the other."""
PIPELINED = 4
SMALL_BUFFER = 16 * 1024
"""Of a slow reader's socket."""
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Visitors:
    """All clients of one run."""

    def __init__(self, port: int, seed: int, events: int) -> None:
        self.port, self.seed, self.events = port, seed, events
        self.chance = random.Random(seed)
        self.sent = 0
        self.visits: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self._kinds = {
            "plain": self.plain,
            "streaming": self.streaming,
            "hanging up": self.hanging_up,
            "pipelining": self.pipelining,
            "reading slowly": self.reading_slowly,
        }

    async def visit(self, kind: str) -> None:
        self.visits[kind] += 1
        try:
            async with asyncio.timeout(PATIENCE):
                await self._kinds[kind]()
        except TimeoutError:
            self.failures[f"{kind}: not over in {PATIENCE:g} s"] += 1
        except (OSError, EOFError, Damaged, ValueError) as error:
            self.failures[f"{kind}: {type(error).__name__} {error}"[:300]] += 1

    def request(self, *, stream: bool = False, large: bool = False) -> bytes:
        self.sent += 1
        return request(self.seed * 1_000_000 + self.sent, stream=stream, large=large)

    async def plain(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            for _ in range(ON_ONE_CONNECTION):
                writer.write(self.request())
                await read_all(reader, [Reply()])
        finally:
            writer.close()

    async def streaming(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(self.request(stream=True))
            await read_all(reader, [Reply(events=self.events)])
        finally:
            writer.close()

    async def pipelining(self) -> None:
        """Plain and streamed answers in turn; they must come in order."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            streamed = [number % 2 == 1 for number in range(PIPELINED)]
            writer.write(b"".join(self.request(stream=each) for each in streamed))
            await read_all(reader, [Reply(events=self.events if each else 0) for each in streamed])
        finally:
            writer.close()

    async def reading_slowly(self) -> None:
        """A large answer through a small window."""
        opened = socket.socket()
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
        opened.setblocking(False)
        await asyncio.get_running_loop().sock_connect(opened, ("127.0.0.1", self.port))
        reader, writer = await asyncio.open_connection(sock=opened, limit=SMALL_BUFFER)
        try:
            writer.write(self.request(large=True))
            await read_all(reader, [Reply(large=True)], pause=0.02)
        finally:
            writer.close()

    async def hanging_up(self) -> None:
        """At a random moment: with FIN at any time, with RST only after the first byte.

        A reset may overtake the request it follows; then the proxy saw none, and no ledger could say so.
        """
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(self.request(stream=self.chance.random() < 0.5))
            if self.chance.random() < 0.5:
                await asyncio.sleep(self.chance.uniform(0, 0.025))
                return
            await reader.read(1024)
            await asyncio.sleep(self.chance.uniform(0, 0.015))
            opened = writer.get_extra_info("socket")
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            writer.transport.abort()
        finally:
            writer.close()


async def read_all(reader: asyncio.StreamReader, replies: Sequence[Reply], pause: float = 0.0) -> None:
    """Answers in order, each 200 and undamaged; EOFError when the connection ends before."""
    waiting = list(replies)
    while waiting:
        received = await reader.read(65536)
        if not received:
            raise EOFError(f"ended with {len(waiting)} of {len(replies)} answers to come")
        while received:
            if not waiting:
                raise Damaged(f"bytes that nobody asked for: {received[:200]!r}")
            received = waiting[0].feed(received, time.monotonic_ns())
            if waiting[0].whole:
                if waiting[0].status != 200:
                    raise ValueError(f"status {waiting[0].status}")
                del waiting[0]
        if pause:
            await asyncio.sleep(pause)


async def run(asked: argparse.Namespace) -> dict[str, object]:
    visitors = Visitors(asked.port, asked.seed, asked.events)
    plan = sorted(
        (at, kind)
        for number, (kind, rate) in enumerate(VISITS.items())
        for at in arrivals(rate * asked.scale, asked.seconds, random.Random(asked.seed * 10 + number))
    )
    begin = time.monotonic()
    async with asyncio.TaskGroup() as group:
        for at, kind in plan:
            await asyncio.sleep(max(0.0, begin + at - time.monotonic()))
            group.create_task(visitors.visit(kind))
    return {
        "sent": visitors.sent,
        "visits": dict(visitors.visits),
        "failures": dict(visitors.failures),
        "cpu_seconds": time.process_time(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--events", type=int, required=True, help="that the engine sends in a stream")
    parser.add_argument("--scale", type=float, default=1.0, help="times as many visits")
    asked = parser.parse_args()
    with suppress(KeyboardInterrupt):
        print(json.dumps(uvloop.run(run(asked))))


if __name__ == "__main__":
    main()
