"""The configuration of the moment, which only the parent reads: again when asked, its certificate by itself.

Whatever it becomes is told to every process that serves, and to each that starts later.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from service.fleet import Ladder
from service.proxy.config import ProxyConfig
from service.proxy.gauges.access_log import check_writable
from service.proxy.gauges.meters import Meters
from service.proxy.processes.admin import Page, json_page
from service.proxy.processes.certificates import LOOK_SECONDS, Watch, days_left, renews
from service.proxy.processes.control import Orders, framed
from service.proxy.processes.first_look import unreachable
from service.proxy.processes.reloading import reload
from service.store.redis.capture import Keyring
from service.tls import TlsUnusable

TAKEN_SECONDS = 5.0
"""Patience with processes that are told a new configuration."""

Reread = Callable[[], ProxyConfig]
"""Reads the configuration again; ValueError, with all that is wrong, when it cannot be used."""

_log = logging.getLogger(__name__)


class Steering:
    """`reload` when asked, `watch_certificate` all the time; `serving` tells what processes tell."""

    def __init__(
        self, config: ProxyConfig, reread: Reread | None, serving: Callable[[], Sequence[dict[str, Any]]]
    ) -> None:
        self._orders = Orders(number=0, config=config)
        self._reread = reread
        self._serving = serving
        self._meters = Meters()
        self._one_at_a_time = asyncio.Lock()
        self.followers: set[asyncio.StreamWriter] = set()
        """The control sockets of the processes; one that is added is told `orders` first."""
        for outcome in ("applied", "unchanged", "refused"):
            self._meters.counters["config_reloads", (("outcome", outcome),)] = 0

    @property
    def config(self) -> ProxyConfig:
        return self._orders.config

    def follow(self, control: asyncio.StreamWriter) -> None:
        """Tell a process what to serve by, now and from now on."""
        control.write(framed(self._orders))
        self.followers.add(control)

    def admin_names(self) -> tuple[str, ...]:
        """What the admin address is called, besides the names that every machine has."""
        return (self.config.admin_host, *self.config.admin_hosts)

    def snapshot(self) -> dict[str, Any]:
        """Meters, as a process tells them."""
        if self.config.tls is not None:
            self._meters.gauges["tls_certificate_days_left", ()] = days_left(self.config.tls)
        else:
            self._meters.gauges.pop(("tls_certificate_days_left", ()), None)
        return self._meters.snapshot()

    async def reload(self) -> Page:
        """Read the configuration again; says what came of it once every process goes by it."""
        async with self._one_at_a_time:
            if self._reread is None:
                return json_page(
                    HTTPStatus.NOT_IMPLEMENTED, {"error": "this proxy was started without a file"}
                )
            try:
                wanted = await asyncio.to_thread(self._reread)
                Keyring(current=wanted.capture_key_id, keys=wanted.capture_keys)
                check_writable(wanted.access_log)
            except Exception as error:  # whatever is wrong with a file, clients must not notice
                self._meters.count("config_reloads", ("outcome", "refused"))
                _log.error("the configuration is not taken, the one before stands: %s", error)
                return json_page(HTTPStatus.UNPROCESSABLE_ENTITY, {"outcome": "refused", "error": str(error)})
            found = reload(self.config, wanted)
            outcome = "applied" if found.is_change else "unchanged"
            self._meters.count("config_reloads", ("outcome", outcome))
            if renews(self.config.tls, found.config.tls):
                self._meters.count("tls_reloads", ("outcome", "applied"))
            if found.waiting:
                _log.warning("%s: a new value is taken at the next start", ", ".join(found.waiting))
            before = self.config.ladders
            self._tell(found.config)  # also when it says the same: an access log may have been moved
            taken, missing = await asyncio.gather(self._until_taken(), self._missing(before))
            for backend in missing:
                _log.warning("new in the configuration and not to be used as it is: backend %s", backend)
            _log.warning("the configuration is read again: %s", outcome)
            return json_page(
                HTTPStatus.OK,
                {
                    "outcome": outcome,
                    "needs_restart": list(found.waiting),
                    "processes": taken,
                    "unreachable": missing,
                },
            )

    async def _missing(self, before: Mapping[str, Ladder]) -> list[str]:
        """New backends that cannot be used yet. They may be about to start, so nothing is refused for it."""
        if self.config.probe_seconds is None:
            return []  # health pages are not to be asked for
        try:
            return await unreachable(before, self.config.ladders)
        except Exception:
            # The configuration is taken already, whatever became of the question.
            _log.exception("new backends could not be asked")
            return []

    def _tell(self, config: ProxyConfig) -> None:
        self._orders = Orders(number=self._orders.number + 1, config=config)
        frame = framed(self._orders)
        for control in self.followers:
            control.write(frame)

    async def _until_taken(self) -> int:
        """How many processes go by the last configuration, after a little patience with all that serve."""
        until = time.monotonic() + TAKEN_SECONDS
        while True:
            serving = self._serving()
            taken: int = sum(snapshot["orders"] >= self._orders.number for snapshot in serving)
            if taken == len(serving) or time.monotonic() > until:
                return taken
            await asyncio.sleep(0.02)

    async def watch_certificate(self) -> None:
        """Take a changed certificate without being asked, until cancelled."""
        watch: Watch | None = None
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            current = self.config.tls
            if current is None:
                continue
            if watch is None or watch.current != current:
                watch = Watch(current)
            try:
                renewed = watch.look()
            except TlsUnusable as error:
                self._meters.count("tls_reloads", ("outcome", "refused"))
                _log.error("the changed certificate is not taken, the one before stands: %s", error)
                continue
            if renewed is not None and self.config.tls == current:
                self._meters.count("tls_reloads", ("outcome", "applied"))
                _log.warning("the certificate is renewed, it expires in %.0f days", days_left(renewed))
                self._tell(replace(self.config, tls=renewed))
