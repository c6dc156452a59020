"""What an event waits for the loop: close to nothing while it is idle, and all of a standstill."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise

from service.proxy.gauges.lag import EVERY_SECONDS, LoopLag
from tests.proxy.standing import eventually


async def test_an_idle_loop_lets_nobody_wait() -> None:
    waits: list[float] = []
    lag = LoopLag(waits.append)
    lag.start()
    await eventually(lambda: len(waits) >= 20 and min(waits) < 0.005)
    lag.close()
    assert all(wait >= 0.0 for wait in waits)


async def test_a_standstill_is_told_as_what_each_event_would_have_waited() -> None:
    waits: list[float] = []
    lag = LoopLag(waits.append)
    lag.start()
    await eventually(lambda: len(waits) >= 1)
    waits.clear()
    time.sleep(0.5)  # noqa: ASYNC251 - the standstill
    await eventually(lambda: len(waits) >= 8)
    lag.close()
    worst = waits[:8]
    assert worst == sorted(worst, reverse=True)
    assert worst[0] > 0.3
    steps = [before - after for before, after in pairwise(worst)]
    assert all(abs(step - EVERY_SECONDS) < 1e-6 for step in steps)


async def test_it_tells_nothing_once_it_is_closed() -> None:
    waits: list[float] = []
    lag = LoopLag(waits.append)
    lag.start()
    lag.close()
    lag.close()
    await asyncio.sleep(2 * EVERY_SECONDS)
    assert not waits
