"""What the proxy costs per request, beside nginx and going direct (design section 12).

Closed loop, 16 connections, 1.5 KB requests, 1 KB answers; arms in random order within a round. The CPU time
of the process in the middle is what counts: it holds on a busy machine, where requests per second do not.
Ratios are within a round. Run: `python -m tests.benchmarks.proxy_throughput [SECONDS_PER_ARM] [ROUNDS]`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import uvloop

from service.proxy.config import Mirroring, ProxyConfig
from tests.benchmarks.worker_pairs import instant_backend
from tests.conftest import ValkeyServer
from tests.proxy.processes import running
from tests.proxy.raw_client import post
from tests.proxy.standing import free_port

CONNECTIONS = 16
REQUEST = post(json.dumps({"model": "m", "messages": [{"role": "user", "content": "x" * 1400}]}).encode())
NGINX = """
worker_processes 1; daemon off; pid {directory}/nginx.pid; error_log {directory}/error.log;
events {{ worker_connections 1024; }}
http {{
  access_log off; keepalive_requests 100000000; client_body_temp_path {directory}; proxy_temp_path {directory};
  upstream backend {{ server {backend}; keepalive 64; keepalive_requests 100000000; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{ {mirror} proxy_pass http://backend; proxy_http_version 1.1; proxy_set_header Connection "";
                  proxy_buffering off; }}
    location = /mirrored {{ internal; proxy_pass http://backend$request_uri; proxy_http_version 1.1;
                            proxy_set_header Connection ""; }}
  }}
}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """Something that answers on a port, and the processes in it whose time counts."""

    name: str
    port: int
    pids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One arm in one round."""

    requests_per_second: float
    cpu_ms_per_1000: float | None
    """CPU milliseconds per 1,000 requests in the middle; None for nobody there."""


class Asker(asyncio.Protocol):
    """One connection that always has one request under way."""

    def __init__(self, counts: list[int]) -> None:
        self._counts = counts
        self._missing = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._transport.write(REQUEST)  # type: ignore[attr-defined]

    def data_received(self, received: bytes) -> None:
        if not self._missing:
            head, _, body = received.partition(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(f"not an answer: {head!r}")
            length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
            self._missing = int(length) - len(body)
        else:
            self._missing -= len(received)
        if self._missing <= 0:
            self._missing = 0
            self._counts[0] += 1
            self._transport.write(REQUEST)  # type: ignore[attr-defined]


async def load(arm: Arm, seconds: float) -> Measured:
    """Keep the arm busy, after a short warm-up."""
    counts = [0]
    loop = asyncio.get_running_loop()
    connections = [
        await loop.create_connection(lambda: Asker(counts), "127.0.0.1", arm.port) for _ in range(CONNECTIONS)
    ]
    await asyncio.sleep(min(0.5, seconds / 4))
    counts[0], cpu, started = 0, cpu_seconds(arm.pids), time.monotonic()
    await asyncio.sleep(seconds)
    done, spent, took = counts[0], cpu_seconds(arm.pids) - cpu, time.monotonic() - started
    for transport, _ in connections:
        transport.abort()
    await asyncio.sleep(0.05)
    return Measured(
        requests_per_second=done / took,
        cpu_ms_per_1000=spent / done * 1e6 if arm.pids and done else None,
    )


def cpu_seconds(pids: tuple[int, ...]) -> float:
    """User and system time of the processes so far."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def nginx(name: str, backend: str, mirror: str) -> Iterator[Arm]:
    with tempfile.TemporaryDirectory() as directory:
        port = free_port()
        Path(directory).chmod(0o777)
        config = Path(directory) / "nginx.conf"
        config.write_text(NGINX.format(directory=directory, backend=backend, port=port, mirror=mirror))
        process = subprocess.Popen(["nginx", "-c", str(config)], stderr=subprocess.DEVNULL)
        try:
            time.sleep(0.5)
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            yield Arm(name=name, port=port, pids=tuple(int(pid) for pid in children))
        finally:
            process.terminate()
            process.wait(10)


@contextlib.contextmanager
def proxy(share: float, url: str, valkey: ValkeyServer) -> Iterator[Arm]:
    with tempfile.TemporaryDirectory() as directory:
        config = ProxyConfig(
            ladders={},
            listen_port=0,
            admin_port=0,
            redis_url=valkey.url,
            broker_url=valkey.url,
            capture_keys={"1": b"k" * 16},
            mirroring=Mirroring(sample=share, ttl_seconds=60),
            state_dir=Path(directory),
        )
        with running(config, url) as started:
            time.sleep(1.5)
            yield Arm(name=f"tiergate, {share:.0%} captured", port=started.port, pids=tuple(started.children))
            started.stop()


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 3.0
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(instant_backend())
        valkey = ValkeyServer(directory=Path(stack.enter_context(tempfile.TemporaryDirectory())))
        valkey.start()
        stack.callback(valkey.kill)
        backend = url.removeprefix("http://")
        arms = [Arm(name="direct", port=int(backend.rpartition(":")[2]))]
        if shutil.which("nginx"):
            arms.append(stack.enter_context(nginx("nginx", backend, "")))
            arms.append(stack.enter_context(nginx("nginx, mirroring all", backend, "mirror /mirrored;")))
        arms += [stack.enter_context(proxy(share, url, valkey)) for share in (0.0, 0.1, 1.0)]
        measured: dict[str, list[Measured]] = {arm.name: [] for arm in arms}
        order = random.Random(7)
        for _ in range(rounds):
            for arm in order.sample(arms, len(arms)):
                with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                    measured[arm.name].append(runner.run(load(arm, seconds)))
        report(measured)


def report(measured: dict[str, list[Measured]]) -> None:
    """Medians over the rounds, and the ratio of CPU time to plain nginx's in the same round."""
    print(f"{'':26}{'requests/s':>12}{'of direct':>11}{'CPU ms/1000':>13}{'x nginx CPU':>13}")
    for name, rounds in measured.items():
        direct = [
            each.requests_per_second / other.requests_per_second
            for each, other in zip(rounds, measured["direct"], strict=True)
        ]
        line = f"{name:26}{statistics.median(each.requests_per_second for each in rounds):12,.0f}"
        line += f"{statistics.median(direct):11.2f}"
        costs = [each.cpu_ms_per_1000 for each in rounds if each.cpu_ms_per_1000 is not None]
        if costs:
            line += f"{statistics.median(costs):13.1f}"
            nginx_costs = [each.cpu_ms_per_1000 for each in measured.get("nginx", []) if each.cpu_ms_per_1000]
            if nginx_costs:
                ratios = [mine / theirs for mine, theirs in zip(costs, nginx_costs, strict=True)]
                line += f"{statistics.median(ratios):13.2f}"
        print(line)


if __name__ == "__main__":
    main()
