"""A reload in a process that serves: what goes on as it began, and what is new from the next request on."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from service.fleet import Route
from service.proxy.config import ClientLimits, Timeouts
from service.proxy.processes.adoption import adopt
from service.proxy.processes.entrance import Entrance
from service.proxy.traffic.health import Watches
from service.store.redis.capture import Ending
from tests.proxy.raw_client import get, post
from tests.proxy.scripted import CHUNKED, OK, Peer, Received
from tests.proxy.standing import Proxy, StartBackend, StartProxy, eventually, ladder


def reload(proxy: Proxy, **changes: object) -> None:
    config = replace(proxy.plane.config, **changes)  # type: ignore[arg-type]
    entrance = Entrance(proxy.plane, None)
    adopt(config, proxy.plane, entrance, Watches(proxy.plane))


async def test_streams_end_where_they_began_and_the_next_request_goes_elsewhere(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    go_on = asyncio.Event()

    async def script(received: Received, peer: Peer) -> None:
        await peer.send(CHUNKED + b"5\r\nfirst\r\n")
        await go_on.wait()
        await peer.send(b"4\r\nlast\r\n0\r\n\r\n")

    old, new = await start_backend(script), await start_backend()
    proxy = await start_proxy(ladder(old.url))
    streams = [await proxy.connect() for _ in range(5)]
    for stream in streams:
        await stream.send(post())
        await stream.reader.readuntil(b"first\r\n")
    idle = await proxy.connect()
    reload(proxy, ladders={"m": ladder(new.url)})
    assert (await idle.ask(post())).status == 200
    assert len(new.requests) == 1
    go_on.set()
    for stream in streams:
        assert await stream.reader.readuntil(b"0\r\n\r\n") == b"4\r\nlast\r\n0\r\n\r\n"
        assert (await stream.ask(post())).body == b"{}", "the client's connection goes on"
    assert (len(old.requests), len(new.requests)) == (5, 6)
    captures = await proxy.captures(11)
    assert all(capture.ending is Ending.COMPLETE for capture in captures)
    assert len({capture.id for capture in captures}) == 11
    assert ("backend", old.url) not in {label for _, labels in proxy.plane.meters.gauges for label in labels}


async def test_a_backend_that_stays_keeps_its_connections_and_one_that_goes_loses_them(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    stays, goes = await start_backend(), await start_backend()
    proxy = await start_proxy(ladder(stays.url), ladder(goes.url, model="n"))
    await proxy.ask(post())
    await proxy.ask(post(b'{"model":"n"}'))
    reload(proxy, ladders={"m": ladder(stays.url), "k": ladder(stays.url, model="k")})
    await proxy.ask(post())
    await proxy.ask(post(b'{"model":"k"}'))
    assert stays.connections == 1
    await eventually(lambda: not goes._writers)
    answered = await proxy.ask(post(b'{"model":"n"}'))
    assert (answered.status, answered.error) == (404, b"model_not_found")


async def test_new_limits_hold_on_connections_that_are_open(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    large = post(b'{"model":"m","x":"' + b"x" * 2000 + b'"}')
    assert (await client.ask(large)).status == 200
    assert (await client.ask(get(b"/metrics"))).error == b"path_not_forwarded"
    reload(
        proxy,
        forward_paths=("/v1/", "/metrics"),
        max_request=1000,
        clients=ClientLimits(max_head=500),
        mirroring=replace(proxy.plane.config.mirroring, conversation_header="x-thread", sample=0.0),
    )
    assert (await client.ask(get(b"/metrics"))).status == 200
    assert (await client.ask(post())).status == 200
    assert (await client.ask(large)).status == 413
    other = await proxy.connect()
    assert (await other.ask(post(headers=[b"x-filler: " + b"x" * 600]))).status == 431


async def test_new_timeouts_hold_for_requests_under_way(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.gone(30)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    client = await proxy.connect()
    await client.send(post())
    await eventually(lambda: bool(backend.requests))
    reload(proxy, timeouts=Timeouts(first_byte=0.1))
    assert (await client.answer()).error == b"first_byte_timeout"


async def test_mirroring_and_keys_are_those_of_the_moment(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    await proxy.ask(post())
    mirroring = proxy.plane.config.mirroring
    reload(proxy, mirroring=replace(mirroring, sample=0.0))
    await proxy.ask(post())
    reload(proxy, mirroring=mirroring, capture_key_id="2", capture_keys={"2": b"q" * 16, "1": b"k" * 16})
    await proxy.ask(post())
    await eventually(lambda: sum(len(batch) for batch in proxy.store.batches) == 2)
    assert proxy.ledger["skipped|m|not_sampled"] == 1


async def test_a_route_is_followed_through_a_reload(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    one, two, three = [await start_backend() for _ in range(3)]
    proxy = await start_proxy(ladder(one.url, two.url))
    proxy.store.publish(Route.only("m", "t1", version=1))
    reload(proxy, ladders={"m": ladder(one.url, three.url)})
    answered = await proxy.ask(post())
    assert answered.header(b"x-tiergate-tier") == [b"t1"]
    assert answered.header(b"x-tiergate-fallback-from") == []
    assert (len(two.requests), len(three.requests)) == (0, 1)


async def test_a_request_that_is_asked_again_after_a_reload_is_no_fallback(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    break_off = asyncio.Event()

    async def script(received: Received, peer: Peer) -> None:
        await break_off.wait()
        peer.reset()

    old, new = await start_backend(script), await start_backend()
    proxy = await start_proxy(ladder(old.url))
    client = await proxy.connect()
    await client.send(post())
    await eventually(lambda: bool(old.requests))
    reload(proxy, ladders={"m": ladder(new.url, calls_it="renamed")})
    break_off.set()
    answered = await client.answer()
    assert answered.status == 200
    assert answered.header(b"x-tiergate-fallback-from") == []
    assert b'"renamed"' in new.last.body, "by the name that the new backend knows"


async def test_what_cannot_be_taken_changes_nothing(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    before = proxy.plane.config
    with pytest.raises(ValueError, match="capture key"):
        reload(proxy, capture_keys={}, ladders={"n": ladder("http://127.0.0.1:1", model="n")})
    assert proxy.plane.config is before
    assert (await proxy.ask(post())).body == OK[-2:]
