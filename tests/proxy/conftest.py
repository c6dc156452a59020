"""Backends and proxies for a test, stopped after it. The event loop is uvloop's, as in production."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import uvloop

from service.fleet import Ladder
from service.proxy.config import Mirroring, ProxyConfig
from service.proxy.traffic.downstream import ClientConnection
from service.proxy.traffic.plane import DataPlane
from tests.conftest import ValkeyServer
from tests.proxy.scripted import Script, ScriptedBackend, answer_ok
from tests.proxy.standing import KEYRING, MemoryStore, Proxy, StartBackend, StartProxy


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture
async def start_backend() -> AsyncIterator[StartBackend]:
    async with contextlib.AsyncExitStack() as stack:
        started: list[ScriptedBackend] = []

        async def start(script: Script = answer_ok, port: int = 0, **where: Any) -> ScriptedBackend:
            backend = ScriptedBackend(script)
            await backend.start(port, **where)
            stack.push_async_callback(backend.stop)
            started.append(backend)
            return backend

        yield start
    for backend in started:
        assert not backend.failures, backend.failures


@pytest.fixture
async def start_proxy(tmp_path: Path) -> AsyncIterator[StartProxy]:
    defects: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: defects.append(context))
    async with contextlib.AsyncExitStack() as stack:

        async def start(*ladders: Ladder, store: MemoryStore | None = None, **changes: object) -> Proxy:
            defaults = ProxyConfig(
                ladders={each.model: each for each in ladders},
                capture_keys=KEYRING.keys,
                mirroring=Mirroring(sample=1.0, salt=b"salt"),
                probe_seconds=None,
                drain_seconds=0.2,
                state_dir=tmp_path / "state",
            )
            config = replace(defaults, **changes)  # type: ignore[arg-type]
            kept = store or MemoryStore()
            plane = DataPlane(config, kept, instance="test")
            plane.start()
            server = await asyncio.get_running_loop().create_server(
                lambda: ClientConnection(plane), "127.0.0.1", 0
            )

            standing = Proxy(plane, kept, server.sockets[0].getsockname()[1])

            async def stop() -> None:
                server.close()
                for client in standing.clients:
                    client.abort()
                await plane.drain()
                await server.wait_closed()

            stack.push_async_callback(stop)
            return standing

        yield start
    await asyncio.sleep(0.01)  # what was aborted last closes now
    assert not defects, defects


@pytest.fixture
def process_config(valkey: ValkeyServer, tmp_path: Path) -> ProxyConfig:
    """For a proxy of real processes over a real Valkey, on free ports; `running` adds its ladder."""
    return ProxyConfig(
        ladders={},
        listen_port=0,
        admin_port=0,
        redis_url=valkey.url,
        broker_url=valkey.url,
        capture_keys=KEYRING.keys,
        mirroring=Mirroring(sample=1.0),
        drain_seconds=5.0,
        state_dir=tmp_path / "state",
    )


@pytest.fixture(scope="session")
def loopback6() -> str:
    """An address that is this machine's and spelled as IPv6, also where it has no ::1 (many containers)."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))
        return "::1"
    return "::ffff:127.0.0.1"


@pytest.fixture
def deaf_port() -> Iterator[int]:
    """A port that neither accepts nor refuses: its queue is full."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield int(listener.getsockname()[1])
