"""Backends as this process sees them: idle connections, requests under way, and who is ejected for now."""

from __future__ import annotations

import itertools
import ssl
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from service.fleet import Backend, Ladder, Tier
from service.proxy.answer_heads import AnswerHead
from service.proxy.heads import OwnHeaders
from service.proxy.known import KnownHead
from service.proxy.routing import rungs_down

if TYPE_CHECKING:
    from service.proxy.upstream import BackendConnection

FAILURES_TO_EJECT = 3
"""In a row, where a refused connection counts as all three."""
SHORTEST_EJECTION = 1.0
LONGEST_EJECTION = 30.0
"""Seconds; each ejection in a row lasts twice as long."""
MOST_IDLE = 256
IDLE_SECONDS = 60.0

_PORTS = {"http": 80, "https": 443}


class Server:
    """One backend URL, shared by every tier and model that names it."""

    __slots__ = (
        "api_key",
        "authority",
        "ejections",
        "failures",
        "headers",
        "host",
        "idle",
        "known_answer",
        "outstanding",
        "port",
        "tls",
        "trial",
        "until",
        "url",
    )

    def __init__(self, backend: Backend) -> None:
        split = urlsplit(backend.url)
        if split.scheme not in _PORTS or not split.hostname:
            raise ValueError(f"backend {backend.url!r} is not http://HOST or https://HOST")
        self.url = backend.url.rstrip("/")
        self.host = split.hostname
        self.port = split.port or _PORTS[split.scheme]
        self.tls = ssl.create_default_context() if split.scheme == "https" else None
        self.authority = split.netloc.rpartition("@")[2].encode()
        self.api_key = None if backend.api_key is None else backend.api_key.encode()
        self.headers: OwnHeaders = ()
        """What the configuration adds to each request, in place of what the client sent of those names."""
        self.idle: list[BackendConnection] = []
        self.known_answer: KnownHead[AnswerHead] | None = None
        """The head of its last answer, when the next may have the same."""
        self.outstanding = 0
        self.failures = 0
        self.ejections = 0
        self.until = 0.0
        """Monotonic time at which the current ejection ends."""
        self.trial: object | None = None
        """The request that is finding out whether it is back."""

    def is_usable(self, now: float) -> bool:
        """Not ejected; or the ejection is over and nobody is trying it yet."""
        if self.failures < FAILURES_TO_EJECT:
            return True
        return now >= self.until and self.trial is None

    @property
    def is_ejected(self) -> bool:
        return self.failures >= FAILURES_TO_EJECT

    def begin(self, asking: object) -> None:
        """A request goes to it; `asking` is whoever will end it."""
        self.outstanding += 1
        if self.is_ejected and self.trial is None:
            self.trial = asking

    def end(self, asking: object) -> None:
        """That request is over, however it ended. Those that began before an ejection are no trial of it."""
        self.outstanding -= 1
        if self.trial is asking:
            self.trial = None

    def answered(self) -> bool:
        """It answered; whether that ended an ejection."""
        was_ejected = self.is_ejected
        self.trial = None  # it may go on for minutes, and must not stand for the next ejection's
        self.failures = self.ejections = 0
        self.until = 0.0
        return was_ejected

    def failed(self, now: float, *, surely: bool = False) -> bool:
        """It did not answer (`surely`: nobody listens there); whether that ejects it."""
        self.failures += FAILURES_TO_EJECT if surely else 1
        if not self.is_ejected or now < self.until:
            return False
        self.until = now + min(SHORTEST_EJECTION * 2.0**self.ejections, LONGEST_EJECTION)
        self.ejections = min(self.ejections + 1, 16)
        return True

    def take_idle(self) -> BackendConnection | None:
        """The connection used last: the least likely to have been closed meanwhile."""
        while self.idle:
            connection = self.idle.pop()
            if not connection.transport.is_closing():
                return connection
        return None

    def keep(self, connection: BackendConnection, now: float) -> bool:
        """Keep a connection for the next request; False when there are enough."""
        if len(self.idle) >= MOST_IDLE:
            return False
        connection.idle_since = now
        self.idle.append(connection)
        return True

    def aged(self, now: float) -> list[BackendConnection]:
        """Connections idle for too long, taken out of the pool; the caller closes them."""
        fresh = next(
            (
                index
                for index, connection in enumerate(self.idle)
                if now - connection.idle_since < IDLE_SECONDS
            ),
            len(self.idle),
        )
        aged, self.idle = self.idle[:fresh], self.idle[fresh:]
        return aged


Pick = tuple[Tier, Server]
"""Where a request goes."""


class Servers:
    """All backends of all serving tiers."""

    def __init__(self, ladders: Mapping[str, Ladder]) -> None:
        self._known: dict[tuple[str, str | None], Server] = {}
        self._of_tier: dict[tuple[str, str], tuple[Server, ...]] = {}
        for model, ladder in ladders.items():
            for tier in ladder.tiers:
                self._of_tier[model, tier.name] = tuple(self._server(backend) for backend in tier.backends)
        self._turn = itertools.count()

    def __iter__(self) -> Iterator[Server]:
        return iter(self._known.values())

    def of(self, model: str, tier: str) -> tuple[Server, ...]:
        return self._of_tier[model, tier]

    def pick(
        self, ladder: Ladder, wanted: Tier, *, now: float, without: Collection[Server] = ()
    ) -> Pick | None:
        """The least loaded backend of the wanted tier, or of the next rung down that has one."""
        servers = self._of_tier[ladder.model, wanted.name]
        if len(servers) == 1 and servers[0].failures == 0 and not without:
            return wanted, servers[0]
        server = self._least_loaded(servers, now, without)
        if server is not None:
            return wanted, server
        for tier in rungs_down(ladder, wanted):
            server = self._least_loaded(self._of_tier[ladder.model, tier.name], now, without)
            if server is not None:
                return tier, server
        return None

    def is_up(self, ladder: Ladder, wanted: Tier, now: float) -> bool:
        """Whether a request for that tier would find a backend."""
        return self.pick(ladder, wanted, now=now) is not None

    def _least_loaded(
        self, servers: tuple[Server, ...], now: float, without: Collection[Server]
    ) -> Server | None:
        if len(servers) == 1 and not without:
            return servers[0] if servers[0].is_usable(now) else None
        usable = [server for server in servers if server not in without and server.is_usable(now)]
        if not usable:
            return None
        # Start elsewhere each time, or an idle fleet would send everything to its first backend.
        first = next(self._turn) % len(usable)
        return min(usable[first:] + usable[:first], key=lambda server: server.outstanding)

    def _server(self, backend: Backend) -> Server:
        key = (backend.url.rstrip("/"), backend.api_key)
        if key not in self._known:
            self._known[key] = Server(backend)
        return self._known[key]
