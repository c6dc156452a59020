"""The proxy as processes: several on one port, summed counts, restarts, drains, and no orphans."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from service.fleet import Route
from service.proxy.config import ProxyConfig
from service.proxy.processes.run import run
from service.store.redis.capture import unseal
from service.store.redis.captures import open_captures
from service.store.sql.database import open_database
from service.store.traffic.account import STALE_SECONDS
from service.store.traffic.ledger import account
from tests.conftest import ValkeyServer
from tests.patience import PATIENCE
from tests.ports import free_port
from tests.proxy.processes import running
from tests.proxy.raw_client import post
from tests.proxy.scripted import CHUNKED, OK, Peer, Received
from tests.proxy.standing import KEYRING, StartBackend, eventually, ladder


@pytest.fixture
def config(process_config: ProxyConfig) -> ProxyConfig:
    return replace(process_config, processes=2, probe_seconds=0.5)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_processes_share_a_port_and_their_counts_are_summed(
    config: ProxyConfig, valkey: ValkeyServer, start_backend: StartBackend, tmp_path: Path
) -> None:
    backend = await start_backend()
    count = 200
    with running(config, backend.url) as proxy:
        ready = json.loads(await proxy.until("/readyz", 200))
        assert ready == {
            "ready": True,
            "draining": False,
            "models": {"m": True},
            "routes": {"m": {"t0": 100}},
        }
        await proxy.until_counted("processes", 2)
        assert await asyncio.gather(*(proxy.ask() for _ in range(count))) == [200] * count
        async with asyncio.timeout(PATIENCE):
            while True:
                metrics = await proxy.metrics()
                counted = (
                    "tiergate_proxy_ledger_total",
                    frozenset({("count", "shipped"), ("model", "m"), ("reason", "")}),
                )
                if metrics.get(counted) == count:
                    break
                await asyncio.sleep(0.1)
        assert metrics["tiergate_proxy_processes", frozenset()] == 2
        assert (await proxy.page("/nothing"))[0] == 404
        assert proxy.stop() == 0
    with valkey.client() as client:
        instances = client.smembers("tiergate:ledger:instances")
        ledgers = [client.hgetall(b"tiergate:ledger:" + instance) for instance in instances]
        keys = client.keys("tiergate:capture:*")
        captures = [unseal(key.decode().rpartition(":")[2], client.get(key), KEYRING) for key in keys]
    assert len(ledgers) == 2
    assert all(int(ledger.get(b"seen|m", 0)) > 0 for ledger in ledgers), "the kernel spreads connections"
    assert len(captures) == count
    db = open_database(f"sqlite:///{tmp_path / 'tiergate.db'}")
    with closing(db), closing(open_captures(valkey.url)) as store:
        found = account(db, store, now=time.time() + STALE_SECONDS + 1)
    assert (found.seen, found.sampled, found.shipped, found.waiting) == (count, count, count, count)
    assert (found.unaccounted, found.lost, found.balanced, found.problems) == (0, 0, True, ())


async def test_a_process_that_dies_is_replaced_and_counts_do_not_fall(
    config: ProxyConfig, start_backend: StartBackend
) -> None:
    backend = await start_backend()
    with running(config, backend.url) as proxy:
        await proxy.until("/readyz", 200)
        for _ in range(20):
            assert await proxy.ask() == 200
        await proxy.until_counted("ledger_total", 20, count="seen", model="m", reason="")
        before = proxy.children
        victim = before.pop()
        os.kill(victim, signal.SIGKILL)
        await eventually(lambda: victim not in proxy.children and len(proxy.children) == 2)
        assert await asyncio.gather(*(proxy.ask() for _ in range(20))) == [200] * 20
        async with asyncio.timeout(PATIENCE):
            while True:
                metrics = await proxy.metrics()
                requests = sum(
                    v for (name, _), v in metrics.items() if name == "tiergate_proxy_requests_total"
                )
                if requests == 40:
                    break
                await asyncio.sleep(0.1)
        assert metrics["tiergate_proxy_restarts_total", frozenset()] == 1
        assert proxy.stop() == 0


async def test_a_published_route_is_followed_and_no_request_fails(
    config: ProxyConfig, valkey: ValkeyServer, start_backend: StartBackend
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        if received.line.startswith(b"GET"):
            await peer.send(OK)
            return
        await peer.send(CHUNKED)
        for _ in range(5):
            await peer.send(b"1\r\na\r\n", pause=0.02)
        await peer.send(b"0\r\n\r\n")

    one, two = await start_backend(script), await start_backend(script)
    with running(config, one.url, two.url) as proxy, closing(open_captures(valkey.url)) as captures:
        await proxy.until("/readyz", 200)
        seen: list[bytes] = []
        done = asyncio.Event()

        async def stream() -> None:
            client = await proxy.connect()
            while not done.is_set():
                answered = await client.ask(post())
                assert (answered.status, answered.body, answered.is_whole) == (200, b"aaaaa", True)
                seen.append(answered.header(b"x-tiergate-tier")[0])
            client.close()

        async with asyncio.TaskGroup() as group:
            for _ in range(50):
                group.create_task(stream())
            for version, tier in enumerate(("t1", "t0"), start=1):
                before = len(seen)
                await eventually(lambda: len(seen) > before + 100)  # noqa: B023 - it is over by then
                captures.publish_route(Route.only("m", tier, version=version))
                await eventually(lambda: len(seen) > 200 and set(seen[-200:]) == {tier.encode()})  # noqa: B023
            done.set()
        assert set(seen) == {b"t0", b"t1"}
        assert proxy.stop() == 0


async def test_sigterm_finishes_what_is_under_way_and_takes_nothing_new(
    config: ProxyConfig, start_backend: StartBackend
) -> None:
    go_on = asyncio.Event()

    async def script(received: Received, peer: Peer) -> None:
        if received.line.startswith(b"GET"):
            await peer.send(OK)
            return
        await peer.send(CHUNKED + b"5\r\nfirst\r\n")
        await go_on.wait()
        await peer.send(b"4\r\nlast\r\n0\r\n\r\n")

    backend = await start_backend(script)
    with running(config, backend.url) as proxy:
        await proxy.until("/readyz", 200)
        idle = await proxy.connect()
        streams = [await proxy.connect() for _ in range(10)]
        for stream in streams:
            await stream.send(post())
            await stream.reader.readuntil(b"first\r\n")
        children = proxy.children
        proxy.process.send_signal(signal.SIGTERM)
        assert await idle.rest() == b"", "idle connections are closed at once"
        await proxy.until("/readyz", 503)
        with pytest.raises(ConnectionRefusedError):
            await proxy.connect()
        go_on.set()
        for stream in streams:
            assert await stream.rest() == b"4\r\nlast\r\n0\r\n\r\n"
            stream.close()
        idle.close()
        assert await asyncio.to_thread(proxy.process.wait, PATIENCE) == 0
        assert not any(is_alive(pid) for pid in children)


async def test_the_drain_has_an_end(config: ProxyConfig, start_backend: StartBackend) -> None:
    async def script(received: Received, peer: Peer) -> None:
        if received.line.startswith(b"GET"):
            await peer.send(OK)
        else:
            await peer.send(CHUNKED + b"5\r\nfirst\r\n")
            await peer.gone(10 * PATIENCE)  # ten times as long as the end is waited for

    backend = await start_backend(script)
    with running(replace(config, drain_seconds=0.5, processes=1), backend.url) as proxy:
        await proxy.until("/readyz", 200)
        stream = await proxy.connect()
        await stream.send(post())
        await stream.reader.readuntil(b"first\r\n")
        assert await asyncio.to_thread(proxy.stop) == 0
        assert b"0\r\n\r\n" not in await stream.rest()
        stream.close()


async def test_children_do_not_outlive_a_parent_that_was_killed(
    config: ProxyConfig, start_backend: StartBackend
) -> None:
    backend = await start_backend()
    with running(config, backend.url) as proxy:
        await proxy.until("/readyz", 200)
        children = proxy.children
        assert len(children) == 2
        proxy.process.kill()
        proxy.process.wait(PATIENCE)
        await eventually(lambda: not any(is_alive(pid) for pid in children))


async def test_it_serves_and_stops_without_redis(config: ProxyConfig, start_backend: StartBackend) -> None:
    backend = await start_backend()
    away = replace(config, processes=1, redis_url="redis://127.0.0.1:1/0", broker_url="redis://127.0.0.1:1/0")
    with running(away, backend.url) as proxy:
        await proxy.until("/readyz", 200)
        for _ in range(5):
            assert await proxy.ask() == 200
        assert await asyncio.to_thread(proxy.stop) == 0


async def test_a_route_survives_a_restart_without_redis(
    config: ProxyConfig, own_valkey: ValkeyServer, start_backend: StartBackend
) -> None:
    baseline, promoted = await start_backend(), await start_backend()
    known = replace(config, redis_url=own_valkey.url, broker_url=own_valkey.url)
    with running(known, baseline.url, promoted.url) as proxy:
        await proxy.until("/readyz", 200)
        assert await proxy.tier() == "t0"
        with closing(open_captures(own_valkey.url)) as captures:
            captures.publish_route(Route.only("m", "t1", version=1))
        async with asyncio.timeout(PATIENCE):
            while await proxy.tier() != "t1":  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.05)
        assert await asyncio.to_thread(proxy.stop) == 0
    own_valkey.kill()
    with running(known, baseline.url, promoted.url) as proxy:
        assert json.loads(await proxy.until("/readyz", 200))["routes"] == {"m": {"t1": 100}}
        assert [await proxy.tier() for _ in range(20)] == ["t1"] * 20, "from the first request on"
        assert await asyncio.to_thread(proxy.stop) == 0


async def test_requests_that_a_lower_rung_served_are_counted_by_both_tiers(
    config: ProxyConfig, valkey: ValkeyServer, start_backend: StartBackend
) -> None:
    baseline = await start_backend()
    away = [f"http://127.0.0.1:{free_port()}" for _ in range(2)]
    with (
        running(replace(config, processes=1), baseline.url, *away) as proxy,
        closing(open_captures(valkey.url)) as captures,
    ):
        await proxy.until("/readyz", 200)
        name = "tiergate_proxy_fallbacks_total"
        pairs = [("t1", "t0"), ("t2", "t1"), ("t2", "t0")]
        labels = {pair: frozenset({("model", "m"), ("from", pair[0]), ("to", pair[1])}) for pair in pairs}
        before = await proxy.metrics()
        assert {key: value for key, value in before.items() if key[0] == name} == {
            (name, each): 0 for each in labels.values()
        }
        captures.publish_route(Route.only("m", "t2", version=1))
        async with asyncio.timeout(PATIENCE):
            while '"t2"' not in (await proxy.page("/readyz"))[1]:  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.05)
        assert [await proxy.tier() for _ in range(7)] == ["t0"] * 7
        expected = {("t1", "t0"): 0, ("t2", "t1"): 0, ("t2", "t0"): 7}
        await proxy.until_counted("fallbacks_total", 7, model="m", **{"from": "t2", "to": "t0"})
        page = await proxy.metrics()
        assert {pair: page[name, each] for pair, each in labels.items()} == expected
        assert await asyncio.to_thread(proxy.stop) == 0


async def test_it_is_ready_only_while_each_model_has_a_backend(
    config: ProxyConfig, start_backend: StartBackend
) -> None:
    backend = await start_backend()
    with running(replace(config, processes=1), backend.url) as proxy:
        await proxy.until("/readyz", 200)
        await proxy.until("/healthz", 200)
        await backend.stop()
        assert json.loads(await proxy.until("/readyz", 503))["models"] == {"m": False}
        assert (await proxy.page("/healthz"))[0] == 200
        await backend.start(backend.port)
        await proxy.until("/readyz", 200)
        assert proxy.stop() == 0


def test_a_taken_port_says_what_to_do(config: ProxyConfig, capfd: pytest.CaptureFixture[str]) -> None:
    with running(replace(config, processes=1), "http://127.0.0.1:1") as proxy:
        taken = replace(config, ladders={"m": ladder("http://127.0.0.1:1")}, listen_port=proxy.port)
        assert run(taken) == 2
        assert f"cannot listen on 127.0.0.1:{proxy.port}" in capfd.readouterr().err
        admin_port = int(proxy.admin.rpartition(":")[2])
        assert run(replace(taken, listen_port=0, admin_port=admin_port)) == 2
        assert f"cannot listen on 127.0.0.1:{admin_port}" in capfd.readouterr().err
        assert proxy.stop() == 0


@pytest.mark.parametrize("keys", [{}, {"1": b"short"}])
def test_a_missing_or_wrong_key_says_so(
    keys: dict[str, bytes], config: ProxyConfig, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(replace(config, ladders={"m": ladder("http://127.0.0.1:1")}, capture_keys=keys)) == 2
    assert "capture key" in capfd.readouterr().err


async def test_a_process_that_hangs_is_not_counted_as_serving(
    config: ProxyConfig, start_backend: StartBackend
) -> None:
    """What it said before it hung is no longer true of it."""
    backend = await start_backend()
    with running(replace(config, processes=1), backend.url) as proxy:
        await proxy.until("/readyz", 200)
        [child] = proxy.children
        os.kill(child, signal.SIGSTOP)
        try:
            await proxy.until("/healthz", 503)
            assert (await proxy.page("/readyz"))[0] == 503
        finally:
            os.kill(child, signal.SIGCONT)
        await proxy.until("/readyz", 200)
        assert proxy.stop() == 0
