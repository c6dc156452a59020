"""Probes eject a silent backend and bring one back before a client has to try it."""

from __future__ import annotations

import asyncio

import pytest

from service.fleet import Backend
from service.proxy.traffic.health import NoAnswer, Watches, probe, watch_forever
from service.proxy.traffic.pool import FAILURES_TO_EJECT, Server
from tests.ports import free_port
from tests.proxy.raw_client import post
from tests.proxy.scripted import OK, Peer, Received
from tests.proxy.standing import StartBackend, StartProxy, eventually, ladder, turns


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (OK, 200),
        (b"HTTP/1.1 404 Not Found\r\n\r\n", 404),
        (b"HTTP/1.1 503\r\n\r\n", 503),
        (b"what?\r\n", "gave an unreadable answer"),
        (b"HTTP/1.1 200" + b"x" * 100_000, "gave an unreadable answer"),
        (b"", "closed the connection without an answer"),
    ],
)
async def test_a_probe_is_a_status_or_why_there_is_none(
    answer: bytes, status: int | str, start_backend: StartBackend
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(answer)
        peer.close()

    backend = await start_backend(script)
    server = Server(Backend(url=backend.url, api_key="k"))
    if isinstance(status, int):
        assert await probe(server) == status
    else:
        with pytest.raises(NoAnswer, match=f"^{status}$"):
            await probe(server)
    assert backend.last.line == b"GET /health HTTP/1.1"
    assert backend.last.header(b"authorization") == [b"Bearer k"]


async def test_nobody_there_and_nobody_who_speaks_are_told_apart(start_backend: StartBackend) -> None:
    with pytest.raises(NoAnswer, match=r"^refused the connection$"):
        await probe(Server(Backend(url=f"http://127.0.0.1:{free_port()}")))

    async def script(received: Received, peer: Peer) -> None:
        assert await peer.gone()

    silent = await start_backend(script)
    with pytest.raises(NoAnswer, match=r"^timed out$"):
        await probe(Server(Backend(url=silent.url)), seconds=0.1)


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


@pytest.mark.parametrize(
    ("status", "is_out"), [(b"500", True), (b"502", True), (b"404", False), (b"401", False)]
)
async def test_a_health_page_that_fails_three_times_ejects_and_one_that_is_not_there_does_not(
    status: bytes, is_out: bool, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 %b No\r\ncontent-length: 0\r\n\r\n" % status)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    [server] = proxy.plane.servers
    watches = Watches(proxy.plane)
    watches.adopt(0.01)
    await eventually(lambda: len(backend.requests) > FAILURES_TO_EJECT)
    assert server.is_ejected is is_out
    watches.adopt(None)


async def test_a_probe_brings_a_backend_back_although_its_trial_still_hangs(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    hangs = True

    async def script(received: Received, peer: Peer) -> None:
        if received.line.startswith(b"POST") and hangs:
            await peer.gone(30)
        else:
            await peer.send(OK)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    [server] = proxy.plane.servers
    for _ in range(FAILURES_TO_EJECT):
        proxy.plane.server_failed(server, "fell silent")
    server.until = 0.0  # as after its time
    trial = await proxy.connect()
    await trial.send(post())
    await eventually(lambda: server.trial is not None)
    assert (await proxy.ask(post())).status == 503, "one trial at a time"
    hangs = False
    watch = asyncio.get_running_loop().create_task(watch_forever(proxy.plane, server, 0.05))
    await eventually(lambda: not server.is_ejected)
    assert (await proxy.ask(post())).status == 200
    assert server.outstanding == 1
    trial.abort()
    await eventually(lambda: server.outstanding == 0)
    watch.cancel()
    await asyncio.gather(watch, return_exceptions=True)


async def test_what_began_before_the_ejection_does_not_end_the_trial(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.gone(30)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    [server] = proxy.plane.servers
    older = await proxy.connect()
    await older.send(post())
    await eventually(lambda: server.outstanding == 1)
    proxy.plane.server_failed(server, "fell silent", surely=True)
    server.until = 0.0
    trial = await proxy.connect()
    await trial.send(post())
    await eventually(lambda: server.outstanding == 2)
    older.abort()
    await eventually(lambda: server.outstanding == 1)
    assert (await proxy.ask(post())).status == 503
    trial.abort()
    await eventually(lambda: server.outstanding == 0)
    third = await proxy.connect()
    await third.send(post())
    await eventually(lambda: server.outstanding == 1)
    third.abort()


async def test_watches_follow_the_servers_of_the_moment(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    kept, gone, new = [await start_backend() for _ in range(3)]
    proxy = await start_proxy(ladder([kept.url, gone.url]))
    watches = Watches(proxy.plane)
    watches.adopt(0.02)
    await eventually(lambda: bool(kept.requests and gone.requests))
    proxy.plane.servers.adopt({"m": ladder([kept.url, new.url])})
    watches.adopt(0.02)
    asked = len(gone.requests)
    await eventually(lambda: bool(new.requests))
    before = len(kept.requests)
    await eventually(lambda: len(kept.requests) > before + 2)
    assert len(gone.requests) <= asked + 1, "a question may have been under way"
    watches.adopt(None)
    await turns()
    before = len(kept.requests)
    await asyncio.sleep(0.1)
    assert len(kept.requests) == before
