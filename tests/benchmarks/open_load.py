"""Open-loop load: requests leave at times drawn beforehand, however late the answers are.

`python -m tests.benchmarks.open_load PORT --rate 200 --seconds 6 --seed 1 [--events N --streams 0.5]` prints
one JSON document: latencies in microseconds from the *scheduled* time to the last byte, what failed, and how
late the generator itself was. Arrivals are Poisson and seeded; every byte of every answer is compared.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

import uvloop

from tests.benchmarks.alarm import Alarm
from tests.benchmarks.reply import Damaged, Reply

PATIENCE = 15.0
"""Seconds after the last arrival in which answers may still come."""
MOST_CONNECTIONS = 512
READY_CONNECTIONS = 16
"""Open before the first arrival."""
PADDING = "x" * 1500


def request(
    number: int, *, stream: bool = False, large: bool = False, path: str = "/v1/chat/completions"
) -> bytes:
    """A chat completion of about 1.5 KB; another number is another conversation."""
    marks = ',"stream":true' if stream else ',"large":true' if large else ""
    body = f'{{"model":"m","messages":[{{"role":"user","content":"{number} {PADDING}"}}]{marks}}}'
    return (
        f"POST {path} HTTP/1.1\r\nhost: proxy\r\ncontent-type: application/json\r\n"
        f"authorization: Bearer none\r\ncontent-length: {len(body)}\r\n\r\n{body}"
    ).encode()


def arrivals(rate: float, seconds: float, chance: random.Random) -> Iterator[float]:
    """Times from 0 on, in seconds."""
    at = chance.expovariate(rate)
    while at < seconds:
        yield at
        at += chance.expovariate(rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """One request on its way out."""

    at: float
    """Scheduled, monotonic."""
    sent: bytes = field(repr=False)
    events: int


class Client(asyncio.Protocol):
    """A keep-alive connection with at most one request under way."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.due: Due | None = None
        self.reply = Reply()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass of it

    def send(self, due: Due) -> None:
        self.due, self.reply = due, Reply(events=due.events)
        self.load.lags.append(time.monotonic() - due.at)
        self.transport.write(due.sent)

    def data_received(self, received: bytes) -> None:
        due = self.due
        try:
            rest = self.reply.feed(received, time.monotonic_ns())
            if due is None or rest:
                raise Damaged(f"bytes that nobody asked for: {(rest or received)[:200]!r}")
        except (Damaged, ValueError) as error:
            self.load.over(self, f"damaged: {error}")
            return
        if self.reply.whole:
            self.load.over(self, None if self.reply.status == 200 else f"status {self.reply.status}")

    def connection_lost(self, exc: Exception | None) -> None:
        if self.due is not None:
            self.load.over(self, "cut off")


class Load:
    """All connections of one run."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.idle: list[Client] = []
        self.waiting: deque[Due] = deque()
        self.open = 0
        self.sent = 0
        self.latencies: list[float] = []
        self.lags: list[float] = []
        self.failures: Counter[str] = Counter()
        self.done = asyncio.Event()
        self.expected = 0
        self._tasks: set[asyncio.Task[None]] = set()

    def submit(self, due: Due) -> None:
        self.sent += 1
        while self.idle:
            client = self.idle.pop()
            if not client.transport.is_closing():
                client.send(due)
                return
            self.open -= 1
        self.waiting.append(due)
        if self.open < MOST_CONNECTIONS:
            self.grow()

    def grow(self) -> None:
        self.open += 1
        task = asyncio.get_running_loop().create_task(self.connect())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def connect(self) -> None:
        try:
            _, client = await asyncio.get_running_loop().create_connection(
                lambda: Client(self), "127.0.0.1", self.port
            )
        except OSError as error:
            self.open -= 1
            if self.waiting:
                self.waiting.popleft()
                self.fail(f"connect: {error.strerror}")
            return
        self.free(client)

    def free(self, client: Client) -> None:
        if self.waiting:
            client.send(self.waiting.popleft())
        else:
            self.idle.append(client)

    def over(self, client: Client, failure: str | None) -> None:
        due, client.due = client.due, None
        if failure is None and due is not None:
            self.latencies.append(time.monotonic() - due.at)
            self.free(client)
        else:
            self.open -= 1
            client.transport.abort()
            self.fail(failure or "")
        self.settle()

    def fail(self, why: str) -> None:
        self.failures[why] += 1
        self.settle()

    def settle(self) -> None:
        if self.expected and len(self.latencies) + self.failures.total() >= self.expected:
            self.done.set()


async def run(asked: argparse.Namespace) -> dict[str, object]:
    chance = random.Random(asked.seed)
    load = Load(asked.port)
    for _ in range(READY_CONNECTIONS):
        load.grow()
    await asyncio.sleep(0.2)
    begin = time.monotonic() + 0.05
    plan = deque(
        Due(
            at=begin + at,
            sent=request(asked.seed * 1_000_000 + number, stream=stream),
            events=stream and asked.events,
        )
        for number, at in enumerate(arrivals(asked.rate, asked.seconds, chance))
        for stream in (chance.random() < asked.streams,)
    )
    load.expected = len(plan)

    def ring() -> None:
        while plan and plan[0].at <= time.monotonic():
            load.submit(plan.popleft())
        if plan:
            alarm.set(plan[0].at)

    alarm = Alarm(ring)
    alarm.set(begin)
    try:
        async with asyncio.timeout(0.25 + asked.seconds + PATIENCE):
            await load.done.wait()
    except TimeoutError:
        missing = load.expected - len(load.latencies) - load.failures.total()
        load.failures["no answer in time"] += missing
    alarm.close()
    for client in load.idle:
        client.transport.close()
    return {
        "sent": load.sent,
        "microseconds": [round(each * 1e6) for each in load.latencies],
        "failures": dict(load.failures),
        "lag_microseconds": [round(each * 1e6) for each in load.lags],
        "cpu_seconds": time.process_time(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--streams", type=float, default=0.0, help="share of requests that ask for a stream")
    parser.add_argument("--events", type=int, default=0, help="that the engine sends in a stream")
    print(json.dumps(uvloop.run(run(parser.parse_args()))))


if __name__ == "__main__":
    main()
