"""CPU time of the proxy's process for each capture it ships: built, sealed, batched, sent to a real Valkey.

A request of 1.5 KB and an answer of 1 KB, at an even rate. Three arms in every round, which offer at the same
moments: `nothing` only wakes up, `built` makes each capture and drops it, `shipped` ships them, and that
twice. Their differences are what a capture costs; the second run of `shipped` against the first is the A/A
spread. Valkey runs in a process of its own and is not counted. Run: `python -m tests.benchmarks.shipping
[--rounds N] [--rate N] [--seconds N]`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import uvloop

from service.proxy.budget import Budget
from service.proxy.captures.shipper import Shipper
from service.proxy.config import Mirroring
from service.proxy.gauges.meters import Ledger
from service.store.redis.capture import Capture, Ending, Keyring, capture_id
from service.store.redis.shipping import CaptureStore
from tests.benchmarks.rig import machine, publish, spread
from tests.conftest import ValkeyServer

TARGET = 30.0
"""Microseconds for each capture, at several thousand a second."""
ARMS = ("nothing", "built", "shipped", "shipped (again)")
TICK = 0.001
"""Seconds between two looks at the clock, as between two turns of a busy loop."""
_WORDS = ("please", "answer", "the", "customer", "who", "wrote", "about", "an", "order", "as", "JSON")


class Exchanges:
    """Captures of exchanges that differ."""

    def __init__(self) -> None:
        draw = random.Random(5)

        def text(size: int) -> str:
            return " ".join(draw.choices(_WORDS, k=size // 4))[:size]

        self._bodies = [
            (
                json.dumps({"model": "m", "messages": [{"role": "user", "content": text(1440)}]}).encode(),
                json.dumps({"choices": [{"message": {"content": text(900)}}], "usage": {}}).encode(),
            )
            for _ in range(200)
        ]
        self._count = 0

    def next(self) -> Capture:
        """As `service.proxy.traffic.plane` makes it."""
        self._count += 1
        request, answer = self._bodies[self._count % len(self._bodies)]
        return Capture(
            id=capture_id("0123456789abcdef0123456789abcdef", self._count, "m"),
            model="m",
            tier="bf16",
            path=b"/v1/chat/completions".decode(),
            request_type=b"application/json".decode("latin-1"),
            request_encoding=b"".decode("latin-1"),
            request_body=request,
            status=200,
            response_type=b"application/json".decode("latin-1"),
            response_encoding=b"".decode("latin-1"),
            response_body=answer,
            ending=Ending.COMPLETE,
            started_at=time.time() - 0.5,
            first_byte_seconds=0.1234567,
            total_seconds=0.5678901,
            tenant="0123456789abcdef",
            stratum="short",
        )


async def offer_evenly(offer: Callable[[], None], *, rate: int, seconds: float) -> int:
    """Call it so many times a second; how often."""
    began, done = time.monotonic(), 0
    while (passed := time.monotonic() - began) < seconds:
        for _ in range(int(passed * rate) - done):
            offer()
            done += 1
        await asyncio.sleep(TICK)
    return done


async def one(arm: str, url: str, *, rate: int, seconds: float) -> float:
    """Microseconds of CPU for each capture of one arm."""
    exchanges, ledger, budget = Exchanges(), Ledger(), Budget(64 * 1024 * 1024)
    store = CaptureStore.open(url, url)
    shipper = Shipper(store, Keyring(current="1", keys={"1": bytes(32)}), Mirroring(), budget, ledger)
    shipping = asyncio.get_running_loop().create_task(shipper.run())
    size = 3600

    def offer() -> None:
        match arm:
            case "nothing":
                pass
            case "built":
                exchanges.next()
            case _:
                assert budget.take(size), "the shipper did not keep up"
                shipper.offer(exchanges.next(), size)

    async def offer_and_wait(seconds: float) -> int:
        """Until the last one has arrived: what is still waiting would cost nothing."""
        count = await offer_evenly(offer, rate=rate, seconds=seconds)
        while budget.used:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(TICK)
        return count

    await offer_and_wait(0.3)
    spent = time.process_time()
    count = await offer_and_wait(seconds)
    spent = time.process_time() - spent
    shipper.stop()
    await shipping
    await shipper.drain(5.0)
    await store.aclose()
    dropped = {name: amount for name, amount in ledger.counters.items() if name.startswith("dropped")}
    assert not dropped, dropped
    return spent / count * 1e6


def measure(*, rounds: int, rate: int, seconds: float) -> dict[str, list[float]]:
    """Microseconds by arm, one for each round."""
    found: dict[str, list[float]] = {arm: [] for arm in ARMS}
    order = random.Random(7)
    with (
        tempfile.TemporaryDirectory() as folder,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        valkey = ValkeyServer(directory=Path(folder))
        valkey.start()
        try:
            for _ in range(rounds):
                for arm in order.sample(ARMS, len(ARMS)):
                    found[arm].append(runner.run(one(arm, valkey.url, rate=rate, seconds=seconds)))
                    with valkey.client() as client:
                        client.flushall()
        finally:
            valkey.kill()
    return found


def report(found: dict[str, list[float]], rate: int) -> str:
    """What a capture costs, by part, and what the figures are worth."""
    nothing, built, shipped, again = (found[arm] for arm in ARMS)

    def less(mine: list[float], other: list[float]) -> list[float]:
        return [one - two for one, two in zip(mine, other, strict=True)]

    def line(part: str, values: list[float], target: str = "-") -> str:
        shown = f"{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})"
        return f"| {part} | {shown} | {target} |"

    return "\n".join(
        [
            f"| CPU-microseconds per capture at {rate:,} captures/s | median (min to max) | target |",
            "|---|---|---|",
            line("building it", less(built, nothing)),
            line("sealing and shipping it", less(shipped, built)),
            line("together", less(shipped, nothing), f"at most {TARGET:g}"),
            "",
            f"A/A: shipped again / shipped {spread([b / a for a, b in zip(shipped, again, strict=True)])}",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rate", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--output", type=Path, help="write the report there as well")
    asked = parser.parse_args()
    described = machine()
    found = report(measure(rounds=asked.rounds, rate=asked.rate, seconds=asked.seconds), asked.rate)
    publish(f"{described}\n\n{found}", asked.output)


if __name__ == "__main__":
    main()
