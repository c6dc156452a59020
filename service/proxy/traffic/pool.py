"""Backends as this process sees them: idle connections, requests under way, and who is ejected for now."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from service import tls
from service.fleet import Backend, KvGuard, Ladder, Tier
from service.proxy.http.answer_heads import AnswerHead
from service.proxy.http.heads import OwnHeaders
from service.proxy.http.known import KnownHead
from service.proxy.traffic.notices import Notices
from service.proxy.traffic.routing import rungs_down
from service.proxy.traffic.shares import Share

if TYPE_CHECKING:
    from service.proxy.traffic.upstream import BackendConnection

FAILURES_TO_EJECT = 3
"""In a row, where a refused connection counts as all three."""
SHORTEST_EJECTION = 1.0
LONGEST_EJECTION = 30.0
"""Seconds; each ejection in a row lasts twice as long."""
MOST_IDLE = 256
IDLE_SECONDS = 60.0

_PORTS = {"http": 80, "https": 443}


class Server:
    """One backend, shared by every tier and model that names it with the same key, headers and TLS."""

    __slots__ = (
        "api_key",
        "authority",
        "declared",
        "ejections",
        "failures",
        "guard",
        "guarded",
        "headers",
        "host",
        "idle",
        "is_retired",
        "is_unheard",
        "known_answer",
        "most",
        "notices",
        "outstanding",
        "port",
        "socket",
        "spoke",
        "tls",
        "trial",
        "until",
        "url",
        "why",
    )

    def __init__(self, backend: Backend) -> None:
        split = urlsplit(backend.url)
        self.url = backend.url.rstrip("/")
        self.socket = backend.socket
        """The path of its unix socket; None where host and port say where it is."""
        if self.socket is not None:
            # What a client on this machine would have called it.
            self.host, self.port, self.authority = "localhost", 0, b"localhost"
        elif split.scheme not in _PORTS or not split.hostname:
            raise ValueError(f"backend {backend.url!r} is not http://HOST, https://HOST or unix:/PATH")
        else:
            self.host = split.hostname
            self.port = split.port or _PORTS[split.scheme]
            self.authority = split.netloc.rpartition("@")[2].encode()
        self.tls = None
        if split.scheme == "https":
            self.tls = tls.connecting(
                ca=backend.tls.ca,
                certificate=backend.tls.certificate,
                key=backend.tls.key,
                insecure_skip_verify=backend.tls.insecure_skip_verify,
            )
        self.api_key = None if backend.api_key is None else backend.api_key.encode()
        self.headers: OwnHeaders = tuple(
            (name.encode(), value.encode("latin-1")) for name, value in backend.headers
        )
        """What the configuration adds to each request, in place of what the client sent of those names."""
        self.idle: list[BackendConnection] = []
        self.known_answer: KnownHead[AnswerHead] | None = None
        """The head of its last answer, when the next may have the same."""
        self.outstanding = 0
        self.declared: int | None = None
        """Requests it gets from this process at once, as configured; None = no limit."""
        self.guard: KvGuard | None = None
        self.guarded: int | None = None
        """The same, as its KV guard says at the moment."""
        self.is_unheard = False
        """It has a guard, which is open since its metrics tell nothing."""
        self.most: int | None = None
        """The lesser of `declared` and `guarded`."""
        self.failures = 0
        self.ejections = 0
        self.until = 0.0
        """Monotonic time at which the current ejection ends."""
        self.trial: object | None = None
        """The request that is finding out whether it is back."""
        self.notices = Notices(self.url)
        self.spoke = False
        """Since it answered last it failed only by what it said: it is there, perhaps for other requests."""
        self.why: str | None = None
        """Why it failed last; None since it answered."""
        self.is_retired = False
        """No longer configured: it finishes what is under way and is asked nothing more."""

    def is_usable(self, now: float) -> bool:
        """Not ejected; or the ejection is over and nobody is trying it yet."""
        if self.failures < FAILURES_TO_EJECT:
            return True
        # What it does not answer may fill it for minutes: it is down then, not busy.
        is_filled = self.declared is not None and self.outstanding >= self.declared
        return now >= self.until and self.trial is None and not is_filled

    @property
    def is_full(self) -> bool:
        """It has as many requests as it takes."""
        return self.most is not None and self.outstanding >= self.most

    @property
    def is_shut(self) -> bool:
        """Its KV guard lets nothing new in."""
        return self.guarded == 0

    @property
    def is_ejected(self) -> bool:
        return self.failures >= FAILURES_TO_EJECT

    def keep_to(self, guarded: int | None) -> None:
        """Take what its KV guard says; None = it holds nothing back."""
        self.guarded = guarded
        given = [each for each in (self.declared, guarded) if each is not None]
        self.most = min(given, default=None)

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
        self.spoke = False
        self.why = None
        return was_ejected

    def failed(self, now: float, *, surely: bool = False, spoke: bool = False) -> bool:
        """It did not answer (`surely`: nobody listens there), or not as it should; whether that ejects it."""
        self.spoke = spoke and (self.spoke or self.failures == 0)
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
        """Keep a connection for the next request; False when there are enough, or no next request."""
        if self.is_retired or len(self.idle) >= MOST_IDLE:
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

    def __init__(self, ladders: Mapping[str, Ladder], share: Share = Share()) -> None:
        self._share = share
        self._known: dict[Backend, Server] = {}
        self._of_tier: dict[tuple[str, str], tuple[Server, ...]] = {}
        self._ladders: Mapping[str, Ladder] = {}
        self._turn = itertools.count()
        self.adopt(ladders)

    def adopt(self, ladders: Mapping[str, Ladder]) -> list[Server]:
        """Serve by these ladders from now on; returns the servers that no longer stand in any of them.

        A backend that is configured as before keeps its connections, its counts and its ejection.
        """
        known: dict[Backend, Server] = {}
        most: dict[Backend, int] = {}
        guards: dict[Backend, KvGuard] = {}
        of_tier: dict[tuple[str, str], tuple[Server, ...]] = {}
        for model, ladder in ladders.items():
            for tier in ladder.tiers:
                servers = []
                for backend in tier.backends:
                    same = _identity(backend)
                    if same not in known:
                        known[same] = self._known.get(same) or Server(backend)
                    servers.append(known[same])
                    if backend.max_concurrency is not None:
                        most[same] = min(backend.max_concurrency, most.get(same, backend.max_concurrency))
                    if (guard := ladder.limits.kv_guard) is not None:
                        guards[same] = min(guard, guards.get(same, guard), key=_strictness)
                of_tier[model, tier.name] = tuple(servers)
        retired = [server for same, server in self._known.items() if same not in known]
        for server in retired:
            server.is_retired = True
        for same, server in known.items():
            server.declared = self._share.part(most[same]) if same in most else None
            server.guard = guards.get(same)
            server.keep_to(server.guarded if server.guard is not None else None)
        self._known, self._of_tier, self._ladders = known, of_tier, ladders
        return retired

    def __iter__(self) -> Iterator[Server]:
        return iter(self._known.values())

    def of(self, model: str, tier: str) -> tuple[Server, ...]:
        return self._of_tier[model, tier]

    def pick(
        self,
        ladder: Ladder,
        wanted: Tier,
        *,
        now: float,
        without: Collection[Server] = (),
        overfill: bool = False,
    ) -> Pick | None:
        """The least loaded backend of the wanted tier, or of the next rung down that is up.

        None when no rung is up; and when one is whose backends are all full, unless `overfill` says that
        it does not matter. A tier that is busy is not down: the rung below it would be overrun.
        """
        if self._ladders.get(ladder.model) is ladder:
            servers = self._of_tier[ladder.model, wanted.name]
            if len(servers) == 1 and not without and servers[0].failures == 0 and servers[0].most is None:
                return wanted, servers[0]
        rung = self._rung(ladder, wanted, now, without)
        if rung is None:
            return None
        tier, usable = rung
        # Start elsewhere each time, or an idle fleet would send everything to its first backend.
        first = next(self._turn) % len(usable)
        in_turn = usable[first:] + usable[:first]
        server = min(in_turn, key=_load)
        if server.most is not None and server.is_full and not overfill:
            free = [each for each in in_turn if not each.is_full]
            if not free:
                return None
            server = min(free, key=_load)
        return tier, server

    def is_crowded(
        self, ladder: Ladder, wanted: Tier, *, now: float, without: Collection[Server] = ()
    ) -> bool:
        """Whether a request for that tier would find backends, and all of them full."""
        rung = self._rung(ladder, wanted, now, without)
        return rung is not None and all(server.is_full for server in rung[1])

    def is_up(self, ladder: Ladder, wanted: Tier, now: float, without: Collection[Server] = ()) -> bool:
        """Whether a request for that tier would find a backend, busy or not."""
        return self._rung(ladder, wanted, now, without) is not None

    def why_down(self, ladder: Ladder, wanted: Tier) -> str | None:
        """Why a backend of the tier failed last, if one has."""
        servers = self._of_tier.get((ladder.model, wanted.name), ())
        return next((server.why for server in servers if server.why), None)

    def _rung(
        self, ladder: Ladder, wanted: Tier, now: float, without: Collection[Server]
    ) -> tuple[Tier, list[Server]] | None:
        """The tier that would answer, and its backends that are up."""
        if self._ladders.get(ladder.model) is not ladder:
            # Admitted before a reload, and asked again after it: by the new ladder, if that has its tier.
            current = self._ladders.get(ladder.model)
            if current is None:
                return None
            ladder = current
            wanted = next((tier for tier in ladder.tiers if tier.name == wanted.name), ladder.baseline)
        for tier in rungs_down(ladder, wanted):
            servers = self._of_tier[ladder.model, tier.name]
            usable = [server for server in servers if server not in without and server.is_usable(now)]
            if usable:
                return tier, usable
        # Nobody is left: then rather one who answers some requests badly than a refusal for everybody.
        servers = self._of_tier[ladder.model, wanted.name]
        there = [server for server in servers if server not in without and server.spoke]
        return (wanted, there) if there else None


def _strictness(guard: KvGuard) -> tuple[float, float]:
    """Of two models that share a backend, whose cache is one, the lower level holds for both."""
    return guard.above, guard.below


def _load(server: Server) -> int:
    return server.outstanding


def _identity(backend: Backend) -> Backend:
    """What makes two entries of the configuration one server."""
    return replace(backend, url=backend.url.rstrip("/"), max_concurrency=None)
