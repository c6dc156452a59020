"""SIGTERM while streams run: to their end within the deadline, cut off for everybody to see after it."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from service.proxy.config import AccessLogPlan, ProxyConfig
from tests.conftest import ValkeyServer
from tests.patience import PATIENCE
from tests.proxy.processes import running
from tests.proxy.raw_client import post
from tests.proxy.scripted import CHUNKED, OK, Peer, Received
from tests.proxy.standing import StartBackend

FIXED_LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
UNTIL_CLOSE = b"HTTP/1.1 200 OK\r\n\r\n"


@pytest.fixture
def config(process_config: ProxyConfig, tmp_path: Path) -> ProxyConfig:
    log = AccessLogPlan(to=str(tmp_path / "access.jsonl"), sample=1.0)
    return replace(process_config, drain_seconds=5.0, access_log=log)


async def test_streams_end_within_the_deadline_and_what_is_left_is_cut_off_visibly(
    config: ProxyConfig, valkey: ValkeyServer, tmp_path: Path, start_backend: StartBackend
) -> None:
    go_on = asyncio.Event()

    async def script(received: Received, peer: Peer) -> None:
        if received.line.startswith(b"GET"):
            await peer.send(OK)
            return
        kind = json.loads(received.body)["kind"]
        if kind == "in time":
            await peer.send(CHUNKED + b"5\r\nfirst\r\n")
            await go_on.wait()
            for _ in range(20):
                await peer.send(b"4\r\nmore\r\n", pause=0.02)
            await peer.send(b"0\r\n\r\n")
            return
        heads = {"chunked": CHUNKED + b"5\r\nfirst\r\n", "length": FIXED_LENGTH + b"first"}
        await peer.send(heads.get(kind, UNTIL_CLOSE + b"first"))
        await peer.gone(30)

    backend = await start_backend(script)
    with running(config, backend.url) as proxy:
        await proxy.until("/readyz", 200)

        async def begin(kind: str) -> object:
            client = await proxy.connect()
            await client.send(post(b'{"model":"m","kind":"%b"}' % kind.encode()))
            await client.reader.readuntil(b"first")
            return client

        in_time = [await begin("in time") for _ in range(5)]
        cut = {kind: await begin(kind) for kind in ("chunked", "length", "until close")}
        started = time.monotonic()
        proxy.process.send_signal(signal.SIGTERM)
        await proxy.until("/readyz", 503)
        assert json.loads((await proxy.page("/readyz"))[1])["draining"] is True
        with pytest.raises(ConnectionRefusedError):
            await proxy.connect()
        go_on.set()
        for client in in_time:
            rest = await client.rest()  # type: ignore[attr-defined]
            assert rest.endswith(b"0\r\n\r\n")
            assert rest.count(b"more") == 20
        rests = {kind: await client.rest() for kind, client in cut.items()}  # type: ignore[attr-defined]
        assert time.monotonic() - started > 4.5, "not before the deadline"
        assert await asyncio.to_thread(proxy.process.wait, PATIENCE) == 0
        for client in (*in_time, *cut.values()):
            client.close()  # type: ignore[attr-defined]
    assert b"0\r\n\r\n" not in rests["chunked"] + rests["until close"]
    assert len(rests["length"]) < 95 or rests["length"] == b"<reset>"
    log = [json.loads(line) for line in (tmp_path / "access.jsonl").read_text().splitlines()]
    assert sorted(line["ending"] for line in log) == ["censored"] * 3 + ["complete"] * 5
    with valkey.client() as client:
        [instance] = client.smembers("tiergate:ledger:instances")
        ledger = client.hgetall(b"tiergate:ledger:" + instance)
    assert ledger[b"#closed"] == b"1"
    assert int(ledger[b"sampled|m"]) == int(ledger[b"shipped|m"]) == 8


async def test_a_second_signal_does_not_wait(config: ProxyConfig, start_backend: StartBackend) -> None:
    async def script(received: Received, peer: Peer) -> None:
        if received.line.startswith(b"GET"):
            await peer.send(OK)
        else:
            await peer.send(CHUNKED + b"5\r\nfirst\r\n")
            await peer.gone(30)

    backend = await start_backend(script)
    with running(replace(config, drain_seconds=60.0), backend.url) as proxy:
        await proxy.until("/readyz", 200)
        client = await proxy.connect()
        await client.send(post())
        await client.reader.readuntil(b"first")
        proxy.process.send_signal(signal.SIGTERM)
        await proxy.until("/readyz", 503)
        proxy.process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(proxy.process.wait, PATIENCE) == 1
        assert b"0\r\n\r\n" not in await client.rest()
        client.close()
