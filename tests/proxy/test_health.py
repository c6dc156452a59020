"""Probes eject a silent backend and bring one back before a client has to try it."""

from __future__ import annotations

import asyncio

import pytest

from service.fleet import Backend
from service.proxy.health import probe, watch_forever
from service.proxy.pool import Server
from tests.proxy.raw_client import post
from tests.proxy.scripted import OK, Peer, Received
from tests.proxy.standing import StartBackend, StartProxy, eventually, free_port, ladder


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (OK, 200),
        (b"HTTP/1.1 404 Not Found\r\n\r\n", 404),
        (b"HTTP/1.1 503\r\n\r\n", 503),
        (b"what?\r\n", None),
        (b"", None),
    ],
)
async def test_a_probe_is_a_status_or_nothing(
    answer: bytes, status: int | None, start_backend: StartBackend
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(answer)
        peer.close()

    backend = await start_backend(script)
    assert await probe(Server(Backend(url=backend.url, api_key="k"))) == status
    assert backend.last.line == b"GET /health HTTP/1.1"
    assert backend.last.header(b"authorization") == [b"Bearer k"]


async def test_nobody_there_is_nothing() -> None:
    assert await probe(Server(Backend(url=f"http://127.0.0.1:{free_port()}"))) is None


async def test_a_loading_backend_is_ejected_and_comes_back(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    loading = True

    async def script(received: Received, peer: Peer) -> None:
        health = received.line.startswith(b"GET /health")
        await peer.send(b"HTTP/1.1 503 Loading\r\ncontent-length: 0\r\n\r\n" if health and loading else OK)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    [server] = proxy.plane.servers
    watch = asyncio.get_running_loop().create_task(watch_forever(proxy.plane, server, 0.05))
    await eventually(lambda: server.is_ejected)
    assert (await proxy.ask(post())).status == 503
    loading = False
    await eventually(lambda: not server.is_ejected)
    assert (await proxy.ask(post())).status == 200
    watch.cancel()
    await asyncio.gather(watch, return_exceptions=True)
