"""A proxy with few file descriptors, or none left: nobody else is to blame, and clients get in again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from service.proxy.config import ClientLimits, Mirroring, ProxyConfig
from service.proxy.processes.descriptors import ASIDE, FEW, MOST, complaint, places
from tests.leash import Leashed
from tests.patience import PATIENCE
from tests.proxy.processes import RUN, Running
from tests.proxy.raw_client import get, post
from tests.proxy.scripted import CHUNKED, OK, Peer, Received
from tests.proxy.standing import StartBackend, ladder

LIMITED = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))"
NONE_LEFT = 3
"""Everything that is open stays open, and nothing more can be opened."""


@pytest.fixture
def config(process_config: ProxyConfig) -> ProxyConfig:
    return replace(process_config, mirroring=Mirroring(), probe_seconds=0.2, drain_seconds=1.0)


@contextlib.contextmanager
def limited(config: ProxyConfig, url: str, *, soft: int, hard: int) -> Iterator[tuple[Running, Path]]:
    """A proxy whose processes may have so many files open, and its log."""
    log_path = config.state_dir.parent / "log"
    with log_path.open("wb") as log:
        script = LIMITED.format(soft=soft, hard=hard) + RUN
        process = Leashed([sys.executable, "-c", script], stdin=subprocess.PIPE, stderr=log)
    try:
        assert process.stdin is not None
        with process.stdin:
            pickle.dump(replace(config, ladders={"m": ladder(url)}), process.stdin)
        announced = None
        while announced is None:
            assert process.poll() is None, log_path.read_text()
            announced = re.search(r"on http://127\.0\.0\.1:(\d+), admin on (\S+),", log_path.read_text())
        yield Running(process, int(announced[1]), announced[2]), log_path
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(PATIENCE)


async def counted(proxy: Running, name: str, **labels: str) -> float | None:
    return (await proxy.metrics()).get((f"tiergate_proxy_{name}", frozenset(labels.items())))


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def test_the_soft_limit_is_lifted_to_the_hard_one(
    config: ProxyConfig, start_backend: StartBackend
) -> None:
    backend = await start_backend()
    with limited(config, backend.url, soft=128, hard=8192) as (proxy, log):
        await proxy.until("/readyz", 200)
        assert await counted(proxy, "max_fds") == 8192
        assert await counted(proxy, "client_limit") == (8192 - ASIDE) / 2
        (child,) = proxy.children
        assert resource.prlimit(child, resource.RLIMIT_NOFILE) == (8192, 8192)
        assert resource.prlimit(proxy.process.pid, resource.RLIMIT_NOFILE) == (8192, 8192)
        assert await asyncio.to_thread(proxy.stop) == 0
    assert "WARNING" not in log.read_text()


async def test_idle_clients_beyond_what_fits_give_way_and_no_backend_is_ejected(
    config: ProxyConfig, start_backend: StartBackend
) -> None:
    backend = await start_backend()
    with limited(config, backend.url, soft=256, hard=256) as (proxy, log):
        await proxy.until("/readyz", 200)
        assert "may open 256 files, so it takes 96 clients at once: raise the hard limit" in log.read_text()
        idle = [await proxy.connect() for _ in range(300)]
        assert [await proxy.ask() for _ in range(20)] == [200] * 20
        # Whoever came last is still there.
        assert [(await client.ask(post())).status for client in idle[-60:]] == [200] * 60
        assert await idle[0].reader.read() == b"", "it was the first to go"
        await proxy.until("/readyz", 200)
        await eventually_counted(proxy, "ledger_total", 80, count="seen", model="m", reason="")
        assert await counted(proxy, "ejections_total", backend=backend.url) == 0
        closed = await counted(proxy, "clients_crowded_out_total", outcome="closed") or 0
        assert 300 - 96 <= closed <= 300 + 20 - 96
        assert await counted(proxy, "clients_crowded_out_total", outcome="refused") == 0
        assert await counted(proxy, "shortages_total", error="EMFILE") == 0
        for client in idle:
            client.close()
        assert await asyncio.to_thread(proxy.stop) == 0


async def test_a_client_for_whom_nobody_can_make_way_is_told_to_come_again(
    config: ProxyConfig, start_backend: StartBackend
) -> None:
    go_on = asyncio.Event()

    async def stream(received: Received, peer: Peer) -> None:
        if not received.line.startswith(b"POST"):
            await peer.send(OK)
            return
        await peer.send(CHUNKED + b"2\r\nhi\r\n")
        await go_on.wait()
        await peer.send(b"0\r\n\r\n")

    backend = await start_backend(stream)
    few = replace(config, clients=ClientLimits(connections=3))
    with limited(few, backend.url, soft=1024, hard=1024) as (proxy, log):
        await proxy.until("/readyz", 200)
        assert "WARNING" not in log.read_text(), "so many were asked for"
        streams = [await proxy.connect() for _ in range(2)]
        for client in streams:
            await client.send(post())
            await client.reader.readuntil(b"hi\r\n")
        begun = await proxy.connect()
        await begun.send(get(b"/v1/models") + b"POST /v1/chat/completions HTT")
        assert (await begun.answer()).status == 200, "what came with it has been read"
        for _ in range(3):
            turned_away = await proxy.connect()
            answered = await turned_away.ask(post())
            assert (answered.status, answered.error) == (503, b"too_many_connections")
            assert answered.header(b"retry-after") == [b"1"]
            assert answered.header(b"connection") == [b"close"]
            assert await turned_away.reader.read() == b""
            turned_away.close()
        go_on.set()
        for client in streams:
            assert await client.reader.readuntil(b"0\r\n\r\n")
        assert await proxy.ask() == 200
        assert await counted(proxy, "client_limit") == 3
        await eventually_counted(proxy, "clients_crowded_out_total", 3, outcome="refused")
        assert await counted(proxy, "errors_total", code="too_many_connections") == 3
        for client in (*streams, begun):
            client.close()
        assert await asyncio.to_thread(proxy.stop) == 0


async def eventually_counted(proxy: Running, name: str, value: float, **labels: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while await counted(proxy, name, **labels) != value:  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.05)


async def test_without_a_descriptor_requests_are_answered_503_and_nobody_is_ejected(
    config: ProxyConfig, start_backend: StartBackend
) -> None:
    backend = await start_backend()
    with limited(config, backend.url, soft=1024, hard=1024) as (proxy, log):
        await proxy.until("/readyz", 200)
        clients = [await proxy.connect() for _ in range(6)]
        for client in clients:
            assert (await client.ask(get(b"/v1/models"))).status == 200, "it has been let in"
        (child,) = proxy.children
        resource.prlimit(child, resource.RLIMIT_NOFILE, (NONE_LEFT, 1024))
        for client in clients:
            answered = await client.ask(post())
            assert (answered.status, answered.error) == (503, b"proxy_exhausted")
            assert answered.header(b"retry-after") == [b"1"]
        # Who comes now waits for better times, at no cost, and so do the health checks.
        coming = [await proxy.connect() for _ in range(3)]
        for client in coming:
            await client.send(post())
        async with asyncio.timeout(PATIENCE):  # until it has been noticed that nobody can be let in
            while (await counted(proxy, "shortages_total", error="EMFILE") or 0) <= 6:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        before = cpu_seconds(child)
        await asyncio.sleep(1.5)
        assert cpu_seconds(child) - before < 0.75, "it must not be woken over and over"
        resource.prlimit(child, resource.RLIMIT_NOFILE, (1024, 1024))
        for client in coming:
            assert (await client.answer()).status == 200
        for client in clients:
            assert (await client.ask(post())).status == 200
        await eventually_counted(proxy, "errors_total", 6, code="proxy_exhausted")
        assert await counted(proxy, "ejections_total", backend=backend.url) == 0
        assert await counted(proxy, "backend_connect_failures_total", backend=backend.url) == 0
        assert (await counted(proxy, "shortages_total", error="EMFILE") or 0) > 6
        for client in (*clients, *coming):
            client.close()
        assert await asyncio.to_thread(proxy.stop) == 0
    said = log.read_text()
    assert said.count("the proxy itself cannot open another connection: too many open files") == 1
    assert "ejected" not in said


async def test_a_client_that_came_while_there_was_no_descriptor_is_never_lost_with_the_listener(
    config: ProxyConfig, start_backend: StartBackend
) -> None:
    backend = await start_backend()
    with limited(config, backend.url, soft=1024, hard=1024) as (proxy, _):
        await proxy.until("/readyz", 200)
        (child,) = proxy.children
        for _ in range(3):
            resource.prlimit(child, resource.RLIMIT_NOFILE, (NONE_LEFT, 1024))
            coming = await proxy.connect()
            await asyncio.sleep(0.4)
            resource.prlimit(child, resource.RLIMIT_NOFILE, (1024, 1024))
            assert (await coming.ask(post())).status == 200
            coming.close()
        assert await asyncio.to_thread(proxy.stop) == 0


def test_half_of_what_is_not_kept_aside_is_for_clients() -> None:
    assert places(None, of=1024) == (1024 - ASIDE) // 2
    assert places(100, of=1024) == 100
    assert places(5000, of=1024) == 1024 - ASIDE
    assert places(None, of=16) == places(10, of=16) == 1


@pytest.mark.parametrize(
    ("wanted", "of", "words"),
    [
        (None, 1024, "may open 1024 files, so it takes 480 clients"),
        (5000, 1024, "proxy.clients.connections is 5000, but 960 fit"),
        (200, 1024, None),
        (None, FEW + 1, None),
        (10_000, MOST, None),
    ],
)
def test_a_limit_that_is_too_low_for_what_is_wanted_is_worth_a_word(
    wanted: int | None, of: int, words: str | None
) -> None:
    told = complaint(wanted, of)
    assert told is None if words is None else told is not None and words in told
