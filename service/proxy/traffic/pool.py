"""One backend as this process sees it: idle connections, requests under way, whether it is ejected."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from service import tls
from service.fleet import Backend, KvGuard
from service.proxy.http.answer_heads import AnswerHead
from service.proxy.http.heads import OwnHeaders
from service.proxy.http.known import KnownHead
from service.proxy.traffic.notices import Notices

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
