"""A proxy that is killed in the middle of a burst: the account bounds what it can have taken along."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from service.proxy.config import Mirroring, ProxyConfig
from service.proxy.gauges.numbers import LEAST_AHEAD, SECONDS_AHEAD, Numbers
from service.proxy.traffic.plane import LEDGER_SECONDS
from service.store.redis.captures import open_captures
from service.store.sql.database import open_database
from service.store.traffic.account import STALE_SECONDS
from service.store.traffic.ledger import account, copy_from_redis
from tests.conftest import ValkeyServer
from tests.patience import PATIENCE
from tests.proxy.processes import Running, running
from tests.proxy.raw_client import post
from tests.proxy.standing import StartBackend

ENOUGH = 100
"""Answers that make a burst, however slow the machine is."""


async def burst(proxy: Running, *, connections: int, seconds: float) -> tuple[int, float]:
    """Ask on many connections at once; kill every process after so long, but not before `ENOUGH` answers.

    Returns how many were answered, and in how many seconds.
    """
    answered, lasted = 0, 0.0
    is_enough = asyncio.Event()

    async def ask() -> None:
        nonlocal answered
        client = await proxy.connect()
        try:
            while (await client.ask(post())).status == 200:
                answered += 1
                if answered >= ENOUGH:
                    is_enough.set()
        except (OSError, EOFError, ValueError, AssertionError, asyncio.IncompleteReadError):
            pass  # it was killed meanwhile
        finally:
            client.close()

    async def kill() -> None:
        nonlocal lasted
        began = time.monotonic()
        await asyncio.sleep(seconds)
        await asyncio.wait_for(is_enough.wait(), PATIENCE)
        lasted = time.monotonic() - began
        for pid in (proxy.process.pid, *proxy.children):  # the parent first: nobody is to be replaced
            os.kill(pid, signal.SIGKILL)

    async with asyncio.TaskGroup() as group:
        group.create_task(kill())
        for _ in range(connections):
            group.create_task(ask())
    return answered, lasted


@pytest.mark.parametrize("sample", [0.0, 1.0])
@pytest.mark.parametrize("seconds", [0.15, LEDGER_SECONDS * 0.9])
async def test_a_burst_before_a_kill_is_within_what_the_account_says(
    sample: float,
    seconds: float,
    process_config: ProxyConfig,
    valkey: ValkeyServer,
    start_backend: StartBackend,
    tmp_path: Path,
) -> None:
    config = replace(process_config, mirroring=Mirroring(sample=sample), probe_seconds=None)
    backend = await start_backend()
    with running(config, backend.url) as proxy:
        await proxy.until("/readyz", 200)
        assert await proxy.ask() == 200  # an idle proxy: nothing of a burst shows in its past
        await asyncio.sleep(LEDGER_SECONDS * 1.5)
        answered, lasted = await burst(proxy, connections=100, seconds=seconds)
    db = open_database(f"sqlite:///{tmp_path / 'tiergate.db'}")
    with closing(db), closing(open_captures(valkey.url)) as captures:
        later = time.time() + STALE_SECONDS + 1
        found = account(db, captures, now=later)
        copy_from_redis(db, captures.redis)
        copied = account(db, now=later)
    for each in (found, copied):
        assert each.seen + each.unaccounted > answered  # one was asked before
        assert each.balanced
        assert "has been silent" in each.problems[0]
    # The rate of a moment may be a multiple of the whole burst's.
    assert found.unaccounted <= LEAST_AHEAD + 10 * SECONDS_AHEAD * answered / lasted


class Clock:
    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


async def test_numbers_run_low_when_half_of_what_was_set_aside_is_used() -> None:
    numbers = Numbers(Clock())
    numbers.confirmed(numbers.ahead())
    for _ in range(LEAST_AHEAD // 2):
        numbers.take()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await numbers.until_low(60)
    numbers.take()
    async with asyncio.timeout(PATIENCE):
        await numbers.until_low(60)
    numbers.confirmed(numbers.ahead())
    started = time.monotonic()
    await numbers.until_low(0.05)
    assert time.monotonic() - started >= 0.04


async def test_numbers_are_set_aside_for_as_long_as_the_store_may_take() -> None:
    clock = Clock()
    numbers = Numbers(clock)
    for _ in range(10_000):
        numbers.take()
    clock.at += 1.0
    assert numbers.ahead() == 10_000 + SECONDS_AHEAD * 10_000
    clock.at += 1.0
    assert numbers.ahead() == 10_000 + LEAST_AHEAD  # it has become quiet


async def test_a_write_that_was_overtaken_leaves_numbers_running_low() -> None:
    numbers = Numbers(Clock())
    reserved = numbers.ahead()
    for _ in range(reserved + 10):
        numbers.take()
    numbers.confirmed(reserved)
    async with asyncio.timeout(PATIENCE):
        await numbers.until_low(60)
