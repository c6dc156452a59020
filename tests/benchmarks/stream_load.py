"""Many streams at once, opened one after the other and read to their end.

`python -m tests.benchmarks.stream_load PORT --streams 1000 --seconds 10 --events N [--watch PID]` prints one
JSON document: times of the events in the window of so many seconds after the last stream was opened, how many
streams were whole and undamaged in the end, and what the client and process PID spent meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter
from functools import partial
from typing import Any, cast

import uvloop

from tests.benchmarks.loose_reply import LooseReply
from tests.benchmarks.memory import resident_mib
from tests.benchmarks.open_load import request
from tests.benchmarks.reply import Damaged, Reply, Times
from tests.benchmarks.rig import cpu_seconds, quantile

RAMP = 2.0
"""Seconds in which the streams are opened, evenly, so that their events do not come in one burst."""
CALM = 0.5
"""Seconds between the last opening and the window."""
PATIENCE = 20.0
"""Seconds that the streams may take to end after the window."""


def events_needed(seconds: float, per_second: float) -> int:
    """Events of a stream that goes on until the window is over, whenever it was opened."""
    return int((RAMP + CALM + seconds + 0.5) * per_second)


class Stream(asyncio.Protocol):
    """One client."""

    def __init__(self, streams: Streams, number: int) -> None:
        self.streams = streams
        self.number = number
        reply = LooseReply if streams.loose else Reply
        self.reply = reply(events=streams.events, times=streams.times)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass of it
        self.transport.write(request(self.number, stream=True))

    def data_received(self, received: bytes) -> None:
        try:
            self.reply.feed(received, time.monotonic_ns())
        except (Damaged, ValueError) as error:
            self.end(f"damaged: {error}")
            return
        if self.reply.whole:
            self.end("whole" if self.reply.status == 200 else f"status {self.reply.status}")

    def connection_lost(self, exc: Exception | None) -> None:
        self.end(f"cut off after {self.reply.number} events")

    def end(self, how: str) -> None:
        """Once."""
        if self in self.streams.open:
            self.streams.over(self, how)
            self.transport.close()


class Streams:
    """All of them."""

    def __init__(self, events: int, *, loose: bool = False) -> None:
        """`loose`: whoever hands events on may write them anew."""
        self.events = events
        self.loose = loose
        self.times = Times()
        self.open: set[Stream] = set()
        self.endings: Counter[str] = Counter()
        self.all_ended = asyncio.Event()

    def over(self, stream: Stream, how: str) -> None:
        self.open.discard(stream)
        self.endings[how] += 1
        if not self.open:
            self.all_ended.set()

    def made(self, number: int) -> Stream:
        stream = Stream(self, number)
        self.open.add(stream)
        return stream


async def run(asked: argparse.Namespace) -> dict[str, Any]:
    loop = asyncio.get_running_loop()
    streams = Streams(asked.events, loose=bool(asked.loose))
    begin = time.monotonic()
    for number in range(asked.streams):
        await asyncio.sleep(begin + RAMP * number / asked.streams - time.monotonic())
        await loop.create_connection(partial(streams.made, number), "127.0.0.1", asked.port)
    await asyncio.sleep(max(0.0, begin + RAMP + CALM - time.monotonic()))
    times, spent, arm = streams.times, time.process_time(), cpu_seconds(asked.watch) if asked.watch else 0.0
    times.clear()
    started = time.monotonic()
    await asyncio.sleep(asked.seconds)
    took = time.monotonic() - started
    found = {
        "seconds": took,
        "events": len(times.transit),
        "client_cpu": (time.process_time() - spent) / took,
        "arm_cpu_seconds": cpu_seconds(asked.watch) - arm if asked.watch else 0.0,
        "arm_mib": resident_mib(asked.watch) if asked.watch else 0.0,
    }
    for name, nanoseconds in (
        ("transit", times.transit),
        ("gap", times.gaps),
        ("stretch", times.stretch),
    ):
        found |= {f"{name}_p{share * 100:g}": quantile(nanoseconds, share) / 1e6 for share in (0.5, 0.99)}
    try:
        async with asyncio.timeout(PATIENCE):
            await streams.all_ended.wait()
    except TimeoutError:
        for stream in tuple(streams.open):
            stream.end("not over in time")
    return {**found, "endings": dict(streams.endings)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("--streams", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--events", type=int, required=True, help="that the engine sends in a stream")
    parser.add_argument("--watch", type=int, default=0, help="whose processor time and memory to tell")
    parser.add_argument("--loose", type=int, default=0, help="1: count events without comparing them")
    print(json.dumps(uvloop.run(run(parser.parse_args()))))


if __name__ == "__main__":
    main()
