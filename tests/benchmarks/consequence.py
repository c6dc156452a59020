"""From a decision to every proxy (issue: 1 s with Redis, 10 s without): four proxies, a real API.

A pipeline approves a tier and rolls it back again, over HTTP, while a client asks each of four proxies all
the time; what is measured is from the sending of the decision to the first answer of the tier that it puts in
force, at the last of the four. Then Redis is killed, and the same is measured with proxies that ask the API.
The first approval and rollback of each are not counted: a server that has just begun loads what it needs.
Run: `python -m tests.benchmarks.consequence [--rounds N]`.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import httpx

from service.fleet import Backend, Ladder, Tier
from service.proxy.config import Mirroring, ProxyConfig, RoutesFrom
from service.store.redis.captures import open_captures
from service.store.sql.database import open_database
from tests.approval.live import MODEL, TIERS, LiveApi, live_api
from tests.benchmarks.rig import end_on_signals, machine, publish, quantile
from tests.conftest import ValkeyServer
from tests.leash import Leashed
from tests.proxy.processes import Running, running
from tests.proxy.raw_client import post

PROXIES = 4
WITH_REDIS, WITHOUT_REDIS = 1.0, 10.0
"""Seconds that are promised."""
LONGEST = 60.0
"""Seconds after which a decision counts as lost."""
PAUSE = 0.005
"""Seconds between two questions to one proxy."""
BODY = b'{"model":"%s","messages":[{"role":"user","content":"x"}]}' % MODEL.encode()


@contextmanager
def backend() -> Iterator[str]:
    """An instant backend; ended by its own pid."""
    command = [sys.executable, "-m", "tests.benchmarks.instant_backend"]
    with Leashed(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


async def until_served(proxy: Running, tier: str) -> float:
    """When the proxy's first answer of the tier came."""
    client = await proxy.connect()
    try:
        async with asyncio.timeout(LONGEST):
            while True:
                answered = await client.ask(post(BODY))
                if answered.status != 200:
                    raise RuntimeError(f"a client was answered {answered.status}")
                if answered.header(b"x-tiergate-tier") == [tier.encode()]:
                    return time.monotonic()
                await asyncio.sleep(PAUSE)
    finally:
        client.close()


async def decide(api: LiveApi, client: httpx.AsyncClient, proxies: list[Running], tier: str) -> float:
    """Seconds from the decision that puts a tier in force to the last proxy that serves by it."""
    api.clock.at = time.time()
    began = time.monotonic()
    async with asyncio.TaskGroup() as group:
        served = [group.create_task(until_served(proxy, tier)) for proxy in proxies]
        if tier == TIERS[0]:
            answer = await client.post(f"/api/v1/models/{MODEL}/rollback", json={"force": True})
        else:
            answer = await client.put(f"/api/v1/models/{MODEL}/tiers/{tier}/approval", json={})
        answer.raise_for_status()
    return max(task.result() for task in served) - began


async def measure(api: LiveApi, proxies: list[Running], rounds: int) -> list[float]:
    headers = {"Authorization": f"Bearer {api.secrets['admin']}"}
    async with httpx.AsyncClient(base_url=api.url, headers=headers, timeout=LONGEST) as client:
        for tier in (TIERS[1], TIERS[0]):
            await decide(api, client, proxies, tier)
        return [
            await decide(api, client, proxies, tier) for _ in range(rounds) for tier in (TIERS[1], TIERS[0])
        ]


def line(name: str, seconds: list[float], promised: float) -> str:
    kept = "kept" if max(seconds) <= promised else "MISSED"
    return (
        f"| {name} | {len(seconds)} | {quantile(seconds, 0.5) * 1000:.0f} ms | "
        f"{quantile(seconds, 0.99) * 1000:.0f} ms | {max(seconds) * 1000:.0f} ms | "
        f"{promised:g} s | {kept} |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=20, help="approvals with Redis; a quarter without")
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    end_on_signals()
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        valkey = ValkeyServer(directory=directory)
        valkey.start()
        stack.callback(valkey.kill)
        db = stack.enter_context(closing(open_database(f"sqlite:///{directory / 'tiergate.db'}", part="api")))
        captures = stack.enter_context(closing(open_captures(valkey.url, timeout=1)))
        api = stack.enter_context(live_api(db, captures))
        api.accept(TIERS[1])
        tiers = tuple(
            Tier(name=name, backends=(Backend(url=stack.enter_context(backend())),), model=MODEL)
            for name in TIERS
        )
        proxies = [
            stack.enter_context(
                running(
                    ProxyConfig(
                        ladders={MODEL: Ladder(model=MODEL, tiers=tiers)},
                        listen_port=0,
                        admin_port=0,
                        redis_url=valkey.url,
                        broker_url=valkey.url,
                        capture_keys={"1": bytes(32)},
                        mirroring=Mirroring(sample=0.0),
                        routes_from=RoutesFrom(url=api.url, token=api.secrets["read"]),
                        state_dir=directory / f"proxy-{number}",
                    )
                )
            )
            for number in range(PROXIES)
        ]
        with_redis = asyncio.run(measure(api, proxies, asked.rounds))
        valkey.kill()
        without = asyncio.run(measure(api, proxies, max(1, asked.rounds // 4)))
    report = "\n".join(
        [
            f"{machine()}; from the sending of a decision to the last of four proxies that serves by it.\n",
            "| | decisions | median | p99 | slowest | promised | |",
            "|---|---|---|---|---|---|---|",
            line("through Redis", with_redis, WITH_REDIS),
            line("Redis killed, the API asked", without, WITHOUT_REDIS),
        ]
    )
    publish(report, asked.output)
    return 0 if max(with_redis) <= WITH_REDIS and max(without) <= WITHOUT_REDIS else 1


if __name__ == "__main__":
    sys.exit(main())
