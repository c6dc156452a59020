"""Processes share no memory, and share a limit all the same."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace

from service.fleet import KvGuard, Limits
from service.proxy.config import Mirroring, ProxyConfig
from tests.patience import PATIENCE
from tests.proxy.processes import running
from tests.proxy.raw_client import post
from tests.proxy.scripted import OK, Peer, Received
from tests.proxy.standing import StartBackend, ladder

RESTARTS = ("tiergate_proxy_restarts_total", frozenset[tuple[str, str]]())
LIMIT = ("tiergate_proxy_concurrency_limit", frozenset({("model", "m")}))


async def test_processes_keep_to_the_limit_together_and_one_that_is_replaced_has_its_share(
    process_config: ProxyConfig, start_backend: StartBackend
) -> None:
    under_way, most = 0, 0

    async def script(received: Received, peer: Peer) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.02)
        under_way -= 1
        await peer.send(OK)

    model = replace(
        ladder((await start_backend(script)).url),
        limits=Limits(concurrency=3, queue=200, queue_seconds=PATIENCE),
    )
    config = replace(
        process_config,
        ladders={"m": model},
        processes=2,
        mirroring=Mirroring(sample=0.0),
        probe_seconds=None,
    )
    with running(config) as proxy:

        async def until_shared(*, restarts: int) -> None:
            async with asyncio.timeout(PATIENCE):
                while True:
                    metrics = await proxy.metrics()
                    if metrics.get(LIMIT) == 3 and metrics[RESTARTS] == restarts:
                        return
                    await asyncio.sleep(0.1)

        await proxy.until("/readyz", 200)
        await until_shared(restarts=0)
        assert await asyncio.gather(*(proxy.ask(post()) for _ in range(60))) == [200] * 60
        assert 1 < most <= 3
        victim = min(proxy.children)
        os.kill(victim, signal.SIGKILL)
        await until_shared(restarts=1)
        most = 0
        assert await asyncio.gather(*(proxy.ask(post()) for _ in range(60))) == [200] * 60
        assert 1 < most <= 3
        assert proxy.stop() == 0


async def test_every_process_holds_requests_back_from_a_full_cache_and_says_so(
    process_config: ProxyConfig, start_backend: StartBackend
) -> None:
    usage, came = 0.95, 0

    async def script(received: Received, peer: Peer) -> None:
        nonlocal came
        if received.line.startswith(b"GET /metrics "):
            page = f"vllm:kv_cache_usage_perc {usage}\nvllm:num_requests_running 4.0\n".encode()
            await peer.send(
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (len(page), page)
            )
            await peer.send(b"0\r\n\r\n")
            return
        came += received.line.startswith(b"POST")
        await peer.send(OK)

    backend = await start_backend(script)
    guard = KvGuard(above=0.9, below=0.8, every=0.05, stale=600.0)
    model = replace(ladder(backend.url), limits=Limits(queue_seconds=None, kv_guard=guard))
    config = replace(process_config, ladders={"m": model}, processes=2, probe_seconds=None)
    with running(config) as proxy:
        await proxy.until_counted("kv_guard_closed", 2, backend=backend.url)
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(proxy.ask(post())) for _ in range(6)]
            await proxy.until_counted("queued", 6, model="m")
            assert came == 0
            usage = 0.1
        assert [task.result() for task in asked] == [200] * 6
        await proxy.until_counted("kv_guard_closed", 0, backend=backend.url)
        assert proxy.stop() == 0
