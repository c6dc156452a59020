"""One request on its way to a backend: who is asked, over which connection, and who else when that fails."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from service.proxy.entry.door import Admission
from service.proxy.http.answers import AnswerReader
from service.proxy.http.errors import Refusal, internal_error, unavailable
from service.proxy.http.heads import request_head
from service.proxy.traffic.notices import why_unreached
from service.proxy.traffic.passage import Phase
from service.proxy.traffic.pool import Server
from service.proxy.traffic.servers import Pick
from service.proxy.traffic.shortages import shortage_of
from service.proxy.traffic.upstream import BackendConnection, connect
from service.store.redis.capture import Ending

if TYPE_CHECKING:
    from service.proxy.traffic.plane import DataPlane

MOST_ATTEMPTS = 3
"""Backends that are asked to take a request before the client hears of it."""
_ONE_WRITE = 64 * 1024

_log = logging.getLogger(__name__)


class Errand(ABC):
    """The way out; `relay.Relay` adds the way back.

    What is public is for whoever counts, logs and keeps the exchange when it is over.
    """

    server: Server
    """The backend that was asked last; unset when there was none to ask."""

    # Most requests never touch these: setting each of them every time would cost as much as parsing.
    phase = Phase.CONNECTION
    is_overflow = False
    """It went to a rung below since its tier was full, and not since that was down."""
    attempts = 0
    """Backends that were asked to take the request."""
    failed: frozenset[Server] = frozenset()
    """Backends that it is not put to again."""
    cause: str | None = None
    """Why a backend failed it, the last one that did; or why they are all out."""
    sent: float | None = None
    """Monotonic: when the request had been written, the last time."""
    was_pooled = False
    """It was sent over a connection that was open already."""
    _connection: BackendConnection | None = None
    _connecting: asyncio.Task[None] | None = None
    _retried = False
    _paused = False
    """The client reads more slowly than the backend writes."""
    _reader: AnswerReader | None = None
    """Of the answer of the backend that was asked last."""

    def __init__(self, plane: DataPlane, admission: Admission) -> None:
        self._plane = plane
        self.admission = admission
        inbound = self.inbound = admission.inbound
        self.request_id = inbound.head.request_id or plane.make_request_id()
        self._since = inbound.started
        self.wanted = self.tier = plane.wanted_tier(admission)

    @abstractmethod
    def received(self, data: bytes) -> None:
        """From the backend."""

    @abstractmethod
    def backend_lost(self, *, cleanly: bool) -> None:
        """The connection is gone; `cleanly` when the backend ended it, not a reset."""

    @abstractmethod
    def _none_free(self, now: float) -> Pick | None:
        """Every backend is down, or every one is full: which to take all the same, if any."""

    @abstractmethod
    def _refuse(self, refusal: Refusal, ending: Ending) -> None:
        """Nobody answers: say so to the client."""

    def attempt(self) -> None:
        """It has waited for its turn, and has it."""
        self._attempt(fresh=self._retried or not self.admission.is_replayable)

    def _attempt(self, *, fresh: bool) -> None:
        """Find a backend and send; `fresh` keeps off pooled connections, which may turn out to be closed."""
        plane = self._plane
        now = time.monotonic()
        pick = plane.servers.pick(self.admission.ladder, self.wanted, now=now, without=self.failed)
        if pick is None and (pick := self._none_free(now)) is None:
            return
        self.attempts += 1
        self.tier, self.server = pick
        if self.tier.name != self.wanted.name:
            self.is_overflow = plane.servers.passed_over(
                self.admission.ladder, self.wanted, self.tier, now=now, without=self.failed
            )
        self.server.begin(self)
        connection = None if fresh else self.server.take_idle()
        self.was_pooled = connection is not None
        if connection is None:
            self.phase = Phase.CONNECTION
            self._since = now
            self._connecting = plane.spawn(self._connect())
        else:
            self._send(connection, now)

    async def _connect(self) -> None:
        server = self.server
        try:
            connection = await connect(server, seconds=self._plane.config.timeouts.connect)
        except (OSError, ValueError) as error:  # a host name that is none is a UnicodeError
            short = shortage_of(error, server.host)
            if short is not None:
                self._could_not_connect(short)
                return
            if isinstance(error, TimeoutError):
                refusal = unavailable("connect_timeout", "The backend did not accept in time.")
            else:
                refusal = unavailable("backend_unreachable", "The backend could not be reached.")
            self._not_connected(refusal, why_unreached(error))
        else:
            self._connecting = None
            now = time.monotonic()
            self._plane.connected(server, now - self._since)
            self._send(connection, now)

    def _could_not_connect(self, short: int) -> None:
        """For want of something of our own: no other backend could be asked either, and none is to blame."""
        self._connecting = None
        self.server.end(self)
        self.cause = os.strerror(short).lower()
        self._plane.shortages.met(short)
        message = "The proxy cannot open another connection at the moment."
        self._refuse(unavailable("proxy_exhausted", message), Ending.UNREACHABLE)

    def _not_connected(self, refusal: Refusal, why: str) -> None:
        """Nothing was sent, so anybody else may be asked, whatever the request."""
        self._connecting = None
        self.server.end(self)
        self.cause = why
        self._plane.not_connected(self.server, why)
        self.failed |= {self.server}
        if self.attempts < MOST_ATTEMPTS and self._plane.can_pick(self.admission, self.wanted, self.failed):
            self._plane.meters.count("retries", ("reason", "not_connected"))
            self._attempt(fresh=not self.admission.is_replayable)
        else:
            self._refuse(refusal, Ending.UNREACHABLE)

    def _send(self, connection: BackendConnection, now: float) -> None:
        self._connection = connection  # before anything else: whatever happens now, it is given up with us
        connection.relay = self
        try:
            head, body = self._rendered()
        except Exception:
            # A defect of ours must end with an answer, not with a request that waits for its total timeout.
            _log.exception("a request could not be written for %s", self.server.url)
            self._drop_connection()
            self._refuse(internal_error(), Ending.UNREACHABLE)
            return
        for_head = self.inbound.head.method == b"HEAD"
        self._reader = AnswerReader(for_head=for_head, known=self.server.known_answer)
        self.phase = Phase.FIRST_BYTE
        self._since = now
        if self._paused:
            connection.transport.pause_reading()
        if len(body) <= _ONE_WRITE:
            connection.transport.write(head + body)
        else:
            connection.transport.write(head)
            connection.transport.write(body)
        self.sent = time.monotonic()

    def _rendered(self) -> tuple[bytes, bytes]:
        """Head and body as the backend gets them."""
        server, body = self.server, self.admission.body_for(self.tier)
        head = request_head(
            self.inbound.head,
            authority=server.authority,
            api_key=server.api_key,
            length=len(body),
            request_id=self.request_id,
            ours=server.headers,
        )
        return head, body

    def _failed(self, why: str, detail: str = "", *, spoke: bool = True) -> None:
        """The backend that has it did not do what it should; the detail goes to the log of failures alone."""
        self.cause = why
        self._plane.server_failed(self.server, f"{why}: {detail}" if detail else why, spoke=spoke)

    def _ask_again(self, reason: str) -> None:
        self._plane.meters.count("retries", ("reason", reason))
        self._retried = True
        self._attempt(fresh=True)

    def _let_go_of_connection(self, reader: AnswerReader, now: float) -> None:
        """Back into the pool when the next answer can be nobody else's; closed otherwise."""
        connection, head = self._connection, reader.head
        assert connection is not None
        assert head is not None
        self._connection = None
        connection.relay = None
        self.server.end(self)
        transport = connection.transport
        if (
            head.keep_alive
            and not reader.leftover
            and not transport.is_closing()
            and transport.get_write_buffer_size() == 0  # an answer that came before all of the request
            and self.server.keep(connection, now)
        ):
            connection.is_reused = True
            if self._paused:
                transport.resume_reading()
        else:
            transport.abort()

    def _drop_connection(self) -> None:
        if self._connecting is not None:
            self._connecting.cancel()
            self._connecting = None
            self.server.end(self)
        elif self._connection is not None:
            self._connection.drop()
            self._connection = None
            self.server.end(self)
