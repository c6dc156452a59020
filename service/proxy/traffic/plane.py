"""One proxy process: everything its connections share, and what becomes of an exchange when it is over."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Collection, Coroutine
from typing import Any, Protocol

from service.fleet import Route, Tier
from service.proxy.budget import Budget
from service.proxy.captures.recorder import Recording
from service.proxy.captures.shipper import Shipper, Store
from service.proxy.config import ProxyConfig
from service.proxy.entry import admission
from service.proxy.entry.door import Admission, Door, OwnAnswer
from service.proxy.gauges.access_log import AccessLog
from service.proxy.gauges.lag import LoopLag
from service.proxy.gauges.meters import Meters
from service.proxy.http.errors import Refusal
from service.proxy.http.holding import Bodies
from service.proxy.http.requests import Inbound
from service.proxy.traffic.access_lines import Lines, has_failed
from service.proxy.traffic.asked_routes import follow_asked
from service.proxy.traffic.crowd import Crowd
from service.proxy.traffic.downstream import ClientConnection
from service.proxy.traffic.kv_guard import KvWatches
from service.proxy.traffic.pool import Server
from service.proxy.traffic.relay import Relay
from service.proxy.traffic.routing import RouteBook
from service.proxy.traffic.servers import Servers
from service.proxy.traffic.shares import Share
from service.proxy.traffic.shortages import Shortages
from service.proxy.traffic.telling import begin_at_zero
from service.store.redis.capture import Capture, Ending, Keyring
from service.store.redis.counters import Dropped, Skipped
from service.store.redis.shipping import StoreDown, StoreFull

LEDGER_SECONDS = 1.0
"""Between two writes of the ledger."""
SHIP_AT_END_SECONDS = 5.0
"""What is left in the buffer gets so long when the process ends."""

_log = logging.getLogger(__name__)


class RouteStore(Store, Protocol):
    """What a process asks of `service.store.redis.shipping.CaptureStore`."""

    async def follow_routes(self, on_route: Callable[[Route], None]) -> None: ...


class DataPlane:
    """Made once per process; `start` it before the first connection, `drain` it when told to stop."""

    def __init__(self, config: ProxyConfig, store: RouteStore, *, instance: str, place: int = 0) -> None:
        """`place` tells processes apart, from 0: they share what is limited for all of them."""
        self.config = config
        self.instance = instance
        self.meters = Meters()
        self.budget = Budget(config.mirroring.buffer_bytes)
        self.bodies = Bodies(config.clients.buffered)
        self.routes = RouteBook(config.ladders, config.state_dir)
        self.share = Share(place, config.processes)
        self.servers = Servers(config.ladders, self.share)
        self.door = Door(config, instance=instance, ledger=self.meters.ledger)
        self.conversation_header = config.mirroring.conversation_header.lower().encode()
        self.clients: set[ClientConnection] = set()
        self.relays: set[Relay] = set()
        self._crowd = Crowd(self, self.share)
        self.crowd = self._crowd.adopt(config.ladders)
        """None when nobody may have to wait for a turn."""
        self.kv_watches = KvWatches(self)
        self.is_draining = False
        self.access_log = AccessLog(config.access_log)
        self.lines = Lines(instance=instance, salt=config.mirroring.salt, forward_paths=config.forward_paths)
        self._store = store
        keyring = Keyring(current=config.capture_key_id, keys=config.capture_keys)
        self.shipper = Shipper(store, keyring, config.mirroring, self.budget, self.meters.ledger)
        self._tasks: set[asyncio.Task[None]] = set()
        self.shortages = Shortages(self.meters)
        self._loop_lag = LoopLag(self.meters.histograms["loop_lag_seconds", ()].observe)
        begin_at_zero(self)
        self._request_prefix = os.urandom(6).hex().encode()
        self._request_count = 0

    def limit(self) -> None:
        """Keep to the limits of the configuration, which has changed."""
        self.crowd = self._crowd.adopt(self.config.ladders)
        self.kv_watches.adopt()

    # -- what relays and client connections ask ----------------------------------------------------

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task that is kept until it ends, and whose failure is told."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def is_split(self, model: str) -> bool:
        return model in self.routes.split

    def wanted_tier(self, admitted: Admission) -> Tier:
        """The tier that the route of this moment gives the request."""
        model = admitted.ladder.model
        if not admitted.sticky:
            return self.routes.serving[model]
        percent = admission.percent_of(self.config.mirroring.salt, admitted.sticky)
        return self.routes.tier_at(model, percent)

    def can_pick(self, admitted: Admission, tier: Tier, without: Collection[Server]) -> bool:
        now = time.monotonic()
        return self.servers.is_up(admitted.ladder, tier, now, without)

    def connected(self, server: Server, seconds: float) -> None:
        self.meters.histograms["connect_seconds", ()].observe(seconds)
        self.meters.count("backend_connections_opened", ("backend", server.url))

    def not_connected(self, server: Server, why: str) -> None:
        self.meters.count("backend_connect_failures", ("backend", server.url))
        self.server_failed(server, why, surely=True)

    def server_failed(self, server: Server, why: str, *, surely: bool = False, spoke: bool = False) -> None:
        """A backend failed a request or its health check; `why` is for the log."""
        now = time.monotonic()
        server.why = why
        if server.failed(now, surely=surely, spoke=spoke):
            self.meters.count("ejections", ("backend", server.url))
            server.notices.ejected(why, now)

    def server_answered(self, server: Server) -> None:
        if server.answered():
            server.notices.back()

    def make_request_id(self) -> bytes:
        self._request_count += 1
        return b"%b-%x" % (self._request_prefix, self._request_count)

    def refused(self, refusal: Refusal) -> None:
        self.meters.count("errors", ("code", refusal.code))

    def answers_itself(self, inbound: Inbound | None, answer: Refusal | OwnAnswer) -> bytes:
        """Tell the access log of an answer that no backend gave; returns the id that the request goes by."""
        request_id = (inbound and inbound.head.request_id) or self.make_request_id()
        log = self.access_log
        if log.is_on and (drawn := log.draw(failed=isinstance(answer, Refusal))) is not None:
            log.write(self.lines.of_own_answer(inbound, answer, request_id, wall=time.time(), drawn=drawn))
        return request_id

    def relay_over(self, relay: Relay, now: float) -> None:
        """Count the exchange; hand its copy, if there is one, to the shipper."""
        self.relays.discard(relay)
        assert relay.ending is not None
        started, first_byte, head = relay.inbound.started, relay.first_byte, relay.head
        meters = self.meters
        meters.request_bytes += len(relay.inbound.body) + relay.inbound.forgotten
        meters.answer_bytes += relay.body_bytes
        request_added: float | None = None
        if relay.was_pooled:
            meters.reused[relay.server.url] += 1
            if relay.attempts == 1 and relay.sent is not None:
                request_added = relay.sent - started
        meters.passed(
            relay.admission.ladder.model,
            relay.tier.name,
            None if head is None else head.status,
            relay.ending,
            first_byte=None if first_byte is None else first_byte - started,
            whole=now - started if relay.ending is Ending.COMPLETE else None,
            request_added=request_added,
            answer_added=relay.relay_seconds,
        )
        log = self.access_log
        if log.is_on and (drawn := log.draw(failed=has_failed(relay))) is not None:
            log.write(self.lines.of_relay(relay, now=now, wall=time.time(), drawn=drawn))
        if relay.recording is not None:
            self._settle(relay, relay.ending, relay.recording, now - started)
        if self.crowd is not None:
            self.crowd.over(relay)
            self.crowd.call()

    def _settle(self, relay: Relay, ending: Ending, recording: Recording, seconds: float) -> None:
        ledger, subject = self.meters.ledger, recording.subject
        if recording.is_too_large:
            ledger.skipped(subject.model, Skipped.TOO_LARGE)
            return
        ledger.sampled(subject.model)
        if recording.overran_budget:
            ledger.dropped(subject.model, Dropped.BUFFER_FULL)
            return
        inbound, answered = relay.inbound, relay.head
        capture = Capture(
            id=subject.id,
            model=subject.model,
            tier=relay.tier.name,
            path=subject.path,
            request_type=subject.request_type,
            request_encoding=subject.request_encoding,
            request_body=inbound.body,
            status=None if answered is None else answered.status,
            response_type="" if answered is None else answered.content_type,
            response_encoding="" if answered is None else answered.content_encoding,
            response_body=recording.answer(),
            ending=ending,
            started_at=time.time() - seconds,
            first_byte_seconds=None if relay.first_byte is None else relay.first_byte - inbound.started,
            total_seconds=seconds,
            tenant=subject.tenant,
            conversation=subject.conversation,
            expects=subject.expects,
            stratum=subject.stratum,
        )
        self.shipper.offer(capture, recording.size)

    # -- beside the connections --------------------------------------------------------------------

    def start(self) -> None:
        """Begin to ship, to write the ledger, to follow routes and to look at the clock."""
        self._loop_lag.start()
        self.kv_watches.adopt()
        self._shipping = self.spawn(self.shipper.run())
        self._beside = [
            self.spawn(self._write_ledger_forever()),
            self.spawn(self._store.follow_routes(self._follow)),
            self.spawn(follow_asked(lambda: self.config.routes_from, self._follow)),
            self.spawn(self._sweep_forever()),
        ]

    async def drain(self) -> None:
        """Finish what is under way within `drain_seconds`, ship what is buffered, close the ledger; once."""
        if self.is_draining:
            return
        self.is_draining = True
        until = time.monotonic() + self.config.drain_seconds
        while self.clients and time.monotonic() < until:
            for client in tuple(self.clients):
                client.drain()
            await asyncio.sleep(0.02)
        self._crowd.close()
        self.kv_watches.close()
        if self.relays:
            _log.warning("%d answers are cut off: `proxy.drain` is over", len(self.relays))
        for relay in self.relays:
            relay.is_cut_short, relay.cause = True, "cut off at the end of proxy.drain"
        for client in tuple(self.clients):
            client.abort()
        self.shipper.stop()
        await self._shipping
        await self.shipper.drain(SHIP_AT_END_SECONDS)
        for task in self._beside:
            task.cancel()
        await asyncio.gather(*self._beside, return_exceptions=True)
        await self._write_ledger(closed=True)
        for server in self.servers:
            for connection in tuple(server.idle):
                connection.drop()
        self._loop_lag.close()
        await self.access_log.close()

    def _follow(self, route: Route) -> None:
        if self.routes.follow(route):
            _log.warning(
                "route %d of %s: %s",
                route.version,
                route.model,
                ", ".join(f"{tier} {weight} %" for tier, weight in route.weights.items()),
            )

    async def _sweep_forever(self) -> None:
        while True:
            timeouts = self.config.timeouts
            limits = [timeouts.first_byte, timeouts.idle, timeouts.total, 2.0]
            if self.crowd is not None:
                limits += self.crowd.patiences
            shortest = min(limit for limit in limits if limit)
            await asyncio.sleep(min(max(shortest / 4, 0.02), 0.5))
            try:
                self._sweep(time.monotonic())
            except Exception:
                # Without a clock nobody would ever be timed out again.
                _log.exception("a look at the clock was cut short")

    def _sweep(self, now: float) -> None:
        for relay in tuple(self.relays):
            relay.expire(now)
        if self.crowd is not None:
            self.crowd.expire(now)
        for client in tuple(self.clients):
            client.expire(now)
        for server in self.servers:
            for connection in server.aged(now):
                connection.drop()

    async def _write_ledger_forever(self) -> None:
        while True:
            # First at once: what a process shipped that died before its first word would belong to nobody.
            if await self._write_ledger(closed=False):
                await self.meters.ledger.numbers.until_low(LEDGER_SECONDS)
            else:
                await asyncio.sleep(LEDGER_SECONDS)

    async def _write_ledger(self, *, closed: bool) -> bool:
        """Whether the store took it."""
        ledger = self.meters.ledger
        reserved = ledger.numbers.last if closed else ledger.numbers.ahead()
        try:
            await self._store.write_ledger(self.instance, ledger.counters, reserved=reserved, closed=closed)
        except (StoreDown, StoreFull) as error:
            _log.log(logging.ERROR if closed else logging.DEBUG, "the ledger was not written: %s", error)
            return False
        ledger.numbers.confirmed(reserved)
        return True

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("a task of the proxy failed", exc_info=task.exception())
