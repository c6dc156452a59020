"""New requests wait while a backend's KV cache is full, and for nobody who does not tell."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from service.engines.pressure import Pressure
from service.fleet import KvGuard, Ladder, Limits, Route
from service.proxy.traffic.kv_guard import Gate, Silence
from service.proxy.traffic.pool import Server
from service.proxy.traffic.shares import Share
from service.proxy.traffic.telling import snapshot
from tests.proxy.raw_client import get
from tests.proxy.scripted import OK, Peer, Received
from tests.proxy.standing import Proxy, StartBackend, StartProxy, eventually, ladder, turns
from tests.proxy.test_crowd import Clients, Till, adopted, count, waiting

GUARD = KvGuard(above=0.9, below=0.8, every=0.01, stale=600.0)
"""A look hangs until the test says what the page tells, so that nothing happens by the clock."""
NO_PAGE = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"


def page(usage: float, running: float | None, queued: float = 0.0) -> bytes:
    text = f"# TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc {usage}\n"
    if running is not None:
        text += f"vllm:num_requests_running {running}\nvllm:num_requests_waiting {queued}\n"
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(text), text.encode())


class Engine(Till):
    """A backend that answers when the test says so, and tells its metrics when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.pages: list[bytes] = []
        self.looks = 0
        self.always: bytes | None = None
        """What it tells whenever it is asked, from when it is set."""

    async def __call__(self, received: Received, peer: Peer) -> None:
        if received.line.startswith(b"GET /metrics "):
            self.looks += 1
            await peer.send(await self._page(self.looks))
        else:
            await super().__call__(received, peer)

    async def _page(self, look: int) -> bytes:
        """For this look; one that the proxy gave up takes no page away from the next."""
        await eventually(
            lambda: self.always is not None or (bool(self.pages) and look == self.looks), seconds=600.0
        )
        return self.always or self.pages.pop(0)

    def tell(self, usage: float, running: float | None = 4.0, queued: float = 0.0) -> None:
        self.pages.append(page(usage, running, queued))


def guarded(model: Ladder, guard: KvGuard | None = GUARD, **limits: object) -> Ladder:
    kept = replace(Limits(), kv_guard=guard, **limits)  # type: ignore[arg-type]
    return replace(model, limits=kept)


def server_of(proxy: Proxy, tier: str = "t0", place: int = 0, model: str = "m") -> Server:
    return proxy.plane.servers.of(model, tier)[place]


async def told(
    proxy: Proxy, engine: Engine, server: Server, usage: float, running: float | None = 4.0
) -> None:
    """Until the proxy goes by it."""

    def looks() -> float:
        return count(proxy, "kv_guard_looks", backend=server.url, outcome="told")

    before = looks()
    engine.tell(usage, running)
    await eventually(lambda: looks() > before)


def gate(guard: KvGuard = GUARD, share: Share = Share()) -> Gate:
    return Gate(guard, share)


def test_it_closes_at_a_level_and_opens_below_a_lower_one() -> None:
    one = gate()
    shut = [
        one.told(Pressure(usage=usage, running=4), 4) == 0 for usage in (0.89, 0.9, 0.85, 0.8, 0.79, 0.85)
    ]
    assert shut == [False, True, True, True, False, False]


def test_no_more_are_let_in_than_the_free_part_holds_at_the_size_of_those_that_run() -> None:
    assert gate().told(Pressure(usage=0.5, running=5), outstanding=5) == 5 + 4
    assert gate().told(Pressure(usage=0.5, running=5, waiting=3), outstanding=5) == 5 + 1
    assert gate().told(Pressure(usage=0.5, running=5, waiting=9), outstanding=5) == 5 + 1


def test_before_anything_ran_nobody_knows_what_a_request_takes() -> None:
    one = gate()
    assert one.told(Pressure(usage=0.0, running=0), 0) is None
    assert one.told(Pressure(usage=0.1, running=1), 1) == 1 + 8
    assert one.told(Pressure(usage=0.0, running=0), 0) == 9, "what the last ones took is remembered"


def test_an_engine_that_runs_nothing_takes_one_whatever_its_cache_still_holds() -> None:
    one = gate()
    assert one.told(Pressure(usage=0.95, running=3), 3) == 0
    assert one.told(Pressure(usage=0.95, running=0), 0) == 1
    assert one.told(Pressure(usage=0.95, running=0, waiting=1), 0) == 0


def test_without_a_number_of_those_that_run_the_level_alone_counts() -> None:
    one = gate()
    assert [one.told(Pressure(usage=usage), 3) for usage in (0.5, 0.95, 0.85, 0.5)] == [None, 0, 0, None]


def test_processes_share_what_is_free() -> None:
    look = Pressure(usage=0.4, running=4)
    assert [gate(share=Share(place, 2)).told(look, 2) for place in (0, 1)] == [2 + 3, 2 + 2]


def test_a_look_that_was_cut_short_found_nothing_out_that_another_has() -> None:
    silence = Silence(0.0)
    silence.heard("timed out", hurried=True)
    assert silence.untold() == "timed out", "better than nothing"
    silence.heard("answered 404", hurried=False)
    silence.heard("timed out", hurried=True)
    assert silence.untold() == "answered 404"
    silence.heard("timed out", hurried=False)
    assert silence.untold() is None, "no reason is told twice"
    silence.heard("refused the connection", hurried=False)
    assert [silence.untold(), silence.untold()] == ["refused the connection", None]


async def test_new_requests_wait_while_it_is_full_and_those_under_way_go_on(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    engine = Engine()
    proxy = await start_proxy(guarded(ladder((await start_backend(engine)).url)))
    server = server_of(proxy)
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await told(proxy, engine, server, 0.5)
        await clients.ask("1")
        await engine.until_there("1")
        await told(proxy, engine, server, 0.93)
        await clients.ask("2", "3")
        assert waiting(proxy) == 2
        engine.answer("1")
        assert await clients.status("1") == 200
        await told(proxy, engine, server, 0.85)
        assert (waiting(proxy), server.is_shut) == (2, True)
        await told(proxy, engine, server, 0.6)
        await engine.until_there("2", "3")
        engine.answer("2", "3")
    assert [await clients.status(name) for name in "123"] == [200, 200, 200]


async def test_when_it_opens_no_burst_fills_it_before_the_next_look(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    engine = Engine()
    proxy = await start_proxy(guarded(ladder((await start_backend(engine)).url)))
    server = server_of(proxy)
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await told(proxy, engine, server, 0.95)
        await clients.ask(*"12345678")
        await told(proxy, engine, server, 0.5, running=5)  # a tenth each: four more reach 90 %
        await engine.until_there(*"1234")
        await turns()
        assert waiting(proxy) == 4
        engine.answer("1")
        await engine.until_there("5")
        await told(proxy, engine, server, 0.95)
        engine.answer(*"2345")
        await eventually(lambda: server.outstanding == 0)
        assert waiting(proxy) == 3
        await told(proxy, engine, server, 0.95, running=0)
        for name in "678":
            await engine.until_there(name)
            engine.answer(name)


async def test_another_backend_of_the_tier_is_asked_instead(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    full, free = Engine(), Engine()
    free.always = page(0.1, 1.0)
    urls = [(await start_backend(each)).url for each in (full, free)]
    proxy = await start_proxy(guarded(ladder(urls)))
    await told(proxy, full, server_of(proxy), 0.95)
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask(*"1234")
        await free.until_there(*"1234")
        free.answer(*"1234")
    assert full.came == []


async def test_a_tier_whose_caches_are_full_is_not_down(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    engine, baseline = Engine(), Engine()
    baseline.always = page(0.0, 0.0)
    urls = [(await start_backend(each)).url for each in (baseline, engine)]
    proxy = await start_proxy(guarded(ladder(*urls)))
    server = server_of(proxy, "t1")
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await told(proxy, engine, server, 0.95)
        proxy.store.publish(Route.only("m", "t1", version=1))
        await clients.ask("1")
        assert waiting(proxy) == 1
        await told(proxy, engine, server, 0.1)
        await engine.until_there("1")
        engine.answer("1")
    assert baseline.came == []


async def test_who_comes_behind_too_many_is_told_so(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    engine = Engine()
    proxy = await start_proxy(guarded(ladder((await start_backend(engine)).url), queue=1, queue_seconds=None))
    server = server_of(proxy)
    await told(proxy, engine, server, 0.95)
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask("1", "2")
        assert await clients.status("2") == 429
        assert count(proxy, "queue_refusals", model="m", reason="full") == 1
        await told(proxy, engine, server, 0.1)
        await engine.until_there("1")
        engine.answer("1")
    assert engine.came == ["1"]


async def test_who_waits_too_long_is_told_so(start_backend: StartBackend, start_proxy: StartProxy) -> None:
    engine = Engine()
    proxy = await start_proxy(guarded(ladder((await start_backend(engine)).url), queue_seconds=0.1))
    await told(proxy, engine, server_of(proxy), 0.95)
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask("1")
        assert await clients.status("1") == 429
    assert count(proxy, "queue_refusals", model="m", reason="timeout") == 1


async def test_questions_of_other_kinds_do_not_wait(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    engine = Engine()
    proxy = await start_proxy(guarded(ladder((await start_backend(engine)).url)))
    await told(proxy, engine, server_of(proxy), 0.95)
    assert (await proxy.ask(get(b"/version"))).status == 200


async def test_who_falls_silent_holds_nobody_back_any_more_and_that_is_counted(
    start_backend: StartBackend, start_proxy: StartProxy, caplog: pytest.LogCaptureFixture
) -> None:
    engine = Engine()
    engine.always = page(0.95, 4.0)
    proxy = await start_proxy(guarded(ladder((await start_backend(engine)).url), replace(GUARD, stale=1.0)))
    server = server_of(proxy)
    await eventually(lambda: gauges(proxy, server) == {"kv_guard_closed": 1, "kv_guard_blind": 0})
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask("1")
        engine.always = NO_PAGE
        await engine.until_there("1")
        await eventually(lambda: gauges(proxy, server) == {"kv_guard_closed": 0, "kv_guard_blind": 1})
        engine.answer("1")
    assert count(proxy, "kv_guard_looks", backend=server.url, outcome="silent") > 0
    await eventually(
        lambda: "does not tell its KV cache, so that its guard is open: answered 404" in caplog.text
    )
    engine.always = page(0.95, 4.0)
    await eventually(lambda: server.is_shut and not server.is_unheard)


async def test_the_reason_told_is_not_that_the_last_look_had_no_time(
    start_backend: StartBackend, start_proxy: StartProxy, caplog: pytest.LogCaptureFixture
) -> None:
    engine = Engine()
    engine.pages.append(NO_PAGE)  # and from then on it hangs
    proxy = await start_proxy(guarded(ladder((await start_backend(engine)).url), replace(GUARD, stale=0.5)))
    await eventually(lambda: server_of(proxy).is_unheard)
    await eventually(lambda: "its guard is open: answered 404" in caplog.text)


async def test_a_word_holds_nobody_back_for_longer_than_it_counts_whenever_the_next_look_is(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    engine = Engine()
    engine.tell(0.95)  # and from then on it hangs
    guard = replace(GUARD, every=600.0, stale=0.5)
    proxy = await start_proxy(guarded(ladder((await start_backend(engine)).url), guard))
    await eventually(lambda: server_of(proxy).is_unheard)
    assert server_of(proxy).most is None


def gauges(proxy: Proxy, server: Server) -> dict[str, float]:
    found = snapshot(proxy.plane)["meters"]["gauges"]
    return {
        name: value
        for name, labels, value in found
        if name.startswith("kv_guard_") and labels == (("backend", server.url),)
    }


async def test_an_engine_that_has_no_such_metric_is_said_to_tell_nothing(
    start_backend: StartBackend, start_proxy: StartProxy, caplog: pytest.LogCaptureFixture
) -> None:
    engine = Engine()
    engine.always = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nx 1"
    proxy = await start_proxy(guarded(ladder((await start_backend(engine)).url), replace(GUARD, stale=0.02)))
    await eventually(lambda: server_of(proxy).is_unheard)
    await eventually(lambda: "its guard is open: its /metrics has no usage of a KV cache" in caplog.text)
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask("1")
        await engine.until_there("1")
        engine.answer("1")


async def test_a_reload_takes_the_guard_away_and_whoever_waits_goes_on(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    engine = Engine()
    model = ladder((await start_backend(engine)).url)
    proxy = await start_proxy(guarded(model))
    server = server_of(proxy)
    await told(proxy, engine, server, 0.95)
    async with asyncio.TaskGroup() as group:
        clients = Clients(proxy, group)
        await clients.ask("1")
        assert waiting(proxy) == 1
        adopted(proxy, ladders={"m": model})
        await engine.until_there("1")
        engine.answer("1")
    assert gauges(proxy, server) == {}
    assert server.most is None
    adopted(proxy, ladders={"m": guarded(model)})
    await told(proxy, engine, server, 0.95)
    assert server.is_shut


async def test_without_a_guard_nobody_is_asked_and_nothing_is_weighed(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        assert not received.line.startswith(b"GET /metrics")
        await peer.send(OK)

    backend = await start_backend(script)
    proxy = await start_proxy(ladder(backend.url))
    assert (await proxy.ask(get(b"/version"))).status == 200
    assert proxy.plane.crowd is None
    assert server_of(proxy).most is None
    assert gauges(proxy, server_of(proxy)) == {}
