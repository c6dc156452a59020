"""A standard error that nobody reads holds up neither clients nor the proxy's own processes."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from service.proxy.config import AccessLogPlan, Mirroring, ProxyConfig
from tests.patience import PATIENCE
from tests.proxy.processes import Running, running
from tests.proxy.standing import StartBackend, eventually

SMALLEST_PIPE = 4096


@pytest.fixture
def config(process_config: ProxyConfig) -> ProxyConfig:
    log = AccessLogPlan(to="stderr", sample=1.0)
    return replace(process_config, mirroring=Mirroring(), access_log=log, probe_seconds=0.2)


def waiting_in(pipe: int) -> int:
    """Bytes that its reader has yet to take."""
    return int.from_bytes(fcntl.ioctl(pipe, 0x541B, b"\0" * 4), sys.byteorder)  # FIONREAD


async def fill(proxy: Running) -> None:
    """Lines of the access log until not another one fits."""
    assert proxy.process.stderr is not None
    pipe = proxy.process.stderr.fileno()
    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, SMALLEST_PIPE)
    while waiting_in(pipe) < SMALLEST_PIPE - 1000:
        assert await proxy.ask() == 200
    for _ in range(8):
        assert await proxy.ask() == 200
    await asyncio.sleep(0.5)  # until the access log's thread is stuck


async def test_a_full_pipe_stops_neither_clients_nor_the_parent_nor_the_end(
    config: ProxyConfig, start_backend: StartBackend
) -> None:
    backend = await start_backend()
    with running(config, backend.url) as proxy:
        await proxy.until("/readyz", 200)
        await fill(proxy)
        await backend.stop()
        assert await proxy.ask() in (502, 503)
        # The ejection is a warning in the log; both are answered all the same, over and over.
        async with asyncio.timeout(PATIENCE):
            for _ in range(20):
                assert await proxy.ask() in (502, 503)
                await asyncio.sleep(0.02)
        await proxy.until_counted("ejections_total", 1, backend=backend.url)
        # The parent says that a process ended, and starts another.
        (child,) = proxy.children
        os.kill(child, signal.SIGKILL)
        await eventually(lambda: bool(proxy.children - {child}))
        await proxy.until("/healthz", 200)
        assert await proxy.ask() in (502, 503)
        assert await asyncio.to_thread(proxy.stop) == 0


async def test_what_a_process_said_before_an_orderly_end_is_in_the_log(
    config: ProxyConfig, start_backend: StartBackend
) -> None:
    backend = await start_backend()
    with running(config, backend.url) as proxy:
        await proxy.until("/readyz", 200)
        await backend.stop()
        assert await proxy.ask() in (502, 503)
        proxy.process.send_signal(signal.SIGTERM)
        assert proxy.process.stderr is not None
        text = await asyncio.to_thread(proxy.process.stderr.read)
        assert await asyncio.to_thread(proxy.process.wait, PATIENCE) == 0
    assert f"WARNING backend {backend.url} is ejected".encode() in text


def test_why_a_process_could_not_start_is_in_the_log() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "service.proxy.processes.child", "98", "99", "0"],
        stderr=subprocess.PIPE,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode == 1
    assert b"OSError" in ended.stderr
    assert ended.stderr.endswith(b"Bad file descriptor\n")
