"""New requests wait while a backend's KV cache is full, as its own metrics tell; without them nobody waits.

A prompt that finds no blocks pushes out an answer that is half written, which then is computed again. So a
backend whose cache is used above a level is full for us: the request goes to another backend of its tier, or
stands in line (`crowd`). Between two looks no more are let in than the free part would hold at the size of
those that run, or a burst would fill it before anybody looked again.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from typing import TYPE_CHECKING

from service.engines.pressure import Pressure, pressure
from service.fleet import KvGuard
from service.proxy.traffic.access_lines import address
from service.proxy.traffic.asking import NoAnswer, NoTime, ask_page
from service.proxy.traffic.pool import Server
from service.proxy.traffic.shares import Share

if TYPE_CHECKING:
    from service.proxy.traffic.plane import DataPlane

PAGE = "/metrics"
LONGEST_PAGE = 4 * 1024 * 1024
"""Bytes."""
PATIENCE_SECONDS = 5.0
"""For one page."""
GAUGES = ("kv_guard_closed", "kv_guard_blind")

_log = logging.getLogger(__name__)


class Gate:
    """What one backend may get of this process until the next look. Pure."""

    __slots__ = ("_each", "_guard", "_share", "is_closed")

    def __init__(self, guard: KvGuard, share: Share) -> None:
        self._guard = guard
        self._share = share
        self._each: float | None = None
        """Share of the cache that one request takes; None before anything ran."""
        self.is_closed = False

    def told(self, look: Pressure, outstanding: int) -> int | None:
        """Requests that it may have at once; `outstanding` it has already. None = no limit."""
        guard = self._guard
        if look.usage >= guard.above:
            self.is_closed = True
        elif look.usage < guard.below:
            self.is_closed = False
        if look.running == 0 and look.waiting == 0:
            self.is_closed = False  # what is in use although nothing runs can be let go
        elif look.running and look.usage:
            self._each = look.usage / look.running
        if self.is_closed:
            return 0
        if self._each is None:
            return None
        room = int((guard.above - look.usage) / self._each - look.waiting)
        return outstanding + self._share.part(max(room, 1))


class Silence:
    """From a backend's last word on: when that holds nobody back any more, why there is no other. Pure."""

    __slots__ = ("_is_sure", "_said", "_why", "ends")

    def __init__(self, ends: float) -> None:
        self.ends = ends
        """Monotonic."""
        self._why: str | None = None
        self._is_sure = False
        self._said: set[str] = set()

    def heard(self, why: str, *, hurried: bool) -> None:
        """What a look came to. One that was cut short (`hurried`) found nothing out that another has."""
        if not hurried or not self._is_sure:
            self._why, self._is_sure = why, not hurried

    def untold(self) -> str | None:
        """Why, where that has not been said yet."""
        if self._why is None or self._why in self._said:
            return None
        self._said.add(self._why)
        return self._why


async def watch_forever(plane: DataPlane, server: Server, guard: KvGuard) -> None:
    """Look again and again, until cancelled; a word older than `guard.stale` holds nobody back."""
    gate = Gate(guard, plane.share)
    silence = Silence(time.monotonic() + guard.stale)
    try:
        while True:
            left = silence.ends - time.monotonic()
            if left <= 0 and not server.is_unheard:
                gate = Gate(guard, plane.share)
                server.is_unheard = True
                server.keep_to(None)
                _let_go_on(plane)
            if server.is_unheard and (why := silence.untold()) is not None:
                _log.warning(
                    "backend %s does not tell its KV cache, so that its guard is open: %s",
                    address(server.url),
                    why,
                )
            # Once open it holds nobody back, and has time to find out why.
            seconds = PATIENCE_SECONDS if server.is_unheard else min(PATIENCE_SECONDS, left)
            look = await _look(server, seconds)
            plane.meters.count(
                "kv_guard_looks",
                ("backend", server.url),
                ("outcome", "told" if isinstance(look, Pressure) else "silent"),
            )
            if isinstance(look, Pressure):
                silence = Silence(time.monotonic() + guard.stale)
                if server.is_unheard:
                    server.is_unheard = False
                    _log.warning("backend %s tells its KV cache again", address(server.url))
                server.keep_to(gate.told(look, server.outstanding))
                _let_go_on(plane)
            else:
                hurried = isinstance(look, NoTime) and seconds < PATIENCE_SECONDS
                silence.heard(str(look), hurried=hurried)
            pause = guard.every * random.uniform(0.8, 1.2)  # processes must not ask in step
            if not server.is_unheard:
                pause = max(0.0, min(pause, silence.ends - time.monotonic()))
            await asyncio.sleep(pause)
    finally:
        # However it ends: a guard that nobody opens any more would shut clients out for good.
        server.is_unheard = False
        server.keep_to(None)


def _let_go_on(plane: DataPlane) -> None:
    if plane.crowd is not None:
        plane.crowd.call()


async def _look(server: Server, seconds: float) -> Pressure | NoAnswer:
    """What it tells, or why it tells nothing."""
    try:
        page = await ask_page(server, PAGE, seconds=seconds, longest=LONGEST_PAGE)
        look = pressure(page.decode("utf-8", "replace"))
    except NoAnswer as error:
        return error
    except Exception as error:  # of any kind: who looks no more would leave the guard as it is
        _log.exception("backend %s: its metrics could not be read", address(server.url))
        return NoAnswer(str(error))
    return look if look is not None else NoAnswer(f"its {PAGE} has no usage of a KV cache")


class KvWatches:
    """One `watch_forever` for each server that has a guard; without any, nothing at all."""

    def __init__(self, plane: DataPlane) -> None:
        self._plane = plane
        self._watching: dict[Server, tuple[KvGuard, asyncio.Task[None]]] = {}

    def adopt(self) -> None:
        """Watch the guarded servers of the moment."""
        wanted = {server: server.guard for server in self._plane.servers if server.guard is not None}
        for server, (guard, task) in tuple(self._watching.items()):
            if wanted.get(server) != guard:
                task.cancel()
                del self._watching[server]
        gauges = self._plane.meters.gauges
        for series in [key for key in gauges if key[0] in GAUGES]:
            del gauges[series]
        for server, guard in wanted.items():
            for outcome in ("told", "silent"):
                labels = (("backend", server.url), ("outcome", outcome))
                self._plane.meters.counters["kv_guard_looks", labels] += 0
            if server not in self._watching:
                task = self._plane.spawn(watch_forever(self._plane, server, guard))
                self._watching[server] = guard, task

    def close(self) -> None:
        """Look at nobody any more, and hold nobody back."""
        for _, task in self._watching.values():
            task.cancel()
        self._watching.clear()

    def gauge(self) -> None:
        """Write the gauges of guarded backends; one address may be several, each with another API key."""
        gauges = self._plane.meters.gauges
        for name in GAUGES:
            for server in self._watching:
                gauges[name, (("backend", server.url),)] = 0
        for server in self._watching:
            for name, holds in zip(GAUGES, (server.is_shut, server.is_unheard), strict=True):
                if holds:
                    gauges[name, (("backend", server.url),)] = 1
