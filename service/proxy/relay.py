"""One request on its way to a backend and its answer on the way back: who does what when is decided here.

A relay is driven from three sides: its backend connection (`received`, `backend_lost`), its client
connection (`client_gone`, `pause`, `resume`) and the clock (`expire`). It ends exactly once.
"""

from __future__ import annotations

import asyncio
import time
from functools import lru_cache
from typing import TYPE_CHECKING

from service.proxy.answer_heads import AnswerHead
from service.proxy.answers import AnswerReader, AnswerUnreadable
from service.proxy.crowd import Crowd, is_bounded
from service.proxy.door import Admission
from service.proxy.errors import Refusal, bad_gateway, gateway_timeout, unavailable
from service.proxy.heads import request_head
from service.proxy.passage import Phase, overdue
from service.proxy.pool import Pick, Server
from service.proxy.recorder import Recording
from service.proxy.upstream import BackendConnection, connect
from service.store.capture import Ending

if TYPE_CHECKING:
    from service.proxy.downstream import ClientConnection
    from service.proxy.plane import DataPlane

MOST_ATTEMPTS = 3
"""Backends that are asked to take a request before the client hears of it."""
_ONE_WRITE = 64 * 1024


class Relay:
    """Made by the client connection for one admitted request; `begin` sets it going.

    What is public is for whoever counts, logs and keeps the exchange when it is over.
    """

    server: Server
    """The backend that was asked last; unset when there was none to ask."""

    # Most relays never touch these: setting each of them for every request would cost as much as parsing.
    phase = Phase.CONNECTION
    ending: Ending | None = None
    queued_seconds = 0.0
    """It waited for a place at a backend; nothing else counts them."""
    attempts = 0
    """Backends that were asked to take the request."""
    first_byte: float | None = None
    """Monotonic."""
    sent: float | None = None
    """Monotonic: when the request had been written, the last time."""
    was_pooled = False
    """It was sent over a connection that was open already."""
    relay_seconds: float | None = None
    """From the read that completed the answer's head until the client's transport had it."""
    body_bytes = 0
    """Of the answer, without what frames it."""
    refusal: Refusal | None = None
    """What we answer in the backend's place."""
    recording: Recording | None = None
    _connection: BackendConnection | None = None
    _connecting: asyncio.Task[None] | None = None
    failed: frozenset[Server] = frozenset()
    """Backends that it is not put to again."""
    _retried = False
    _paused = False
    _head_sent = False
    _chunked = False
    _reader: AnswerReader | None = None
    """Of the answer of the backend that was asked last."""

    def __init__(self, plane: DataPlane, client: ClientConnection, admission: Admission) -> None:
        self._plane = plane
        self._client = client
        self.admission = admission
        inbound = self.inbound = admission.inbound
        self.request_id = inbound.head.request_id or plane.make_request_id()
        if admission.subject is not None:
            self.recording = Recording(
                admission.subject,
                plane.budget,
                request_size=len(inbound.body),
                limit=plane.config.mirroring.max_body,
            )
        self._since = inbound.started
        self.wanted = self.tier = plane.wanted_tier(admission)

    @property
    def head(self) -> AnswerHead | None:
        """The head of the answer, once the client has it."""
        return self._reader.head if self._head_sent and self._reader is not None else None

    def begin(self) -> None:
        self._plane.relays.add(self)
        crowd = self._plane.crowd
        if crowd is None or crowd.enter(self):
            self._attempt(fresh=not self.admission.is_replayable)

    def attempt(self) -> None:
        """It has waited for its turn, and has it."""
        self._attempt(fresh=self._retried or not self.admission.is_replayable)

    def turn_away(self, refusal: Refusal, crowd: Crowd) -> None:
        """It gets no turn, or not another one."""
        if self.attempts:
            self._refuse(refusal, Ending.UNREACHABLE)
            return
        self.refusal = refusal
        crowd.unserved(self)
        self._client.refuse(refusal, self.inbound, request_id=self.request_id)

    # -- towards the backend -----------------------------------------------------------------------

    def _attempt(self, *, fresh: bool) -> None:
        """Find a backend and send; `fresh` keeps off pooled connections, which may turn out to be closed."""
        plane = self._plane
        now = time.monotonic()
        pick = plane.servers.pick(self.admission.ladder, self.wanted, now=now, without=self.failed)
        if pick is None and (pick := self._none_free(now)) is None:
            return
        self.attempts += 1
        self.tier, self.server = pick
        self.server.begin(self)
        connection = None if fresh else self.server.take_idle()
        self.was_pooled = connection is not None
        if connection is None:
            self.phase = Phase.CONNECTION
            self._since = now
            self._connecting = plane.spawn(self._connect())
        else:
            self._send(connection, now)

    def _none_free(self, now: float) -> Pick | None:
        """Every backend is down, or every one is full; then it waits, unless limits are not about it."""
        plane, ladder = self._plane, self.admission.ladder
        if plane.crowd is not None and plane.servers.is_crowded(
            ladder, self.wanted, now=now, without=self.failed
        ):
            if not is_bounded(self):
                return plane.servers.pick(ladder, self.wanted, now=now, without=self.failed, overfill=True)
            plane.crowd.wait(self)
        elif self.failed:
            message = "No backend of the model could be reached."
            self._refuse(bad_gateway("backend_unreachable", message), Ending.UNREACHABLE)
        else:
            message = f"No backend of {ladder.model} is up."
            self._refuse(unavailable("no_backend", message), Ending.UNREACHABLE)
        return None

    async def _connect(self) -> None:
        server = self.server
        try:
            connection = await connect(server, seconds=self._plane.config.timeouts.connect)
        except TimeoutError:
            self._not_connected(gateway_timeout("connect_timeout", "The backend did not accept in time."))
        except OSError:
            self._not_connected(bad_gateway("backend_unreachable", "The backend could not be reached."))
        else:
            self._connecting = None
            now = time.monotonic()
            self._plane.connected(server, now - self._since)
            self._send(connection, now)

    def _not_connected(self, refusal: Refusal) -> None:
        """Nothing was sent, so anybody else may be asked, whatever the request."""
        self._connecting = None
        self.server.end(self)
        self._plane.not_connected(self.server)
        self.failed |= {self.server}
        if self.attempts < MOST_ATTEMPTS and self._plane.can_pick(self.admission, self.wanted, self.failed):
            self._plane.meters.count("retries", ("reason", "not_connected"))
            self._attempt(fresh=not self.admission.is_replayable)
        else:
            self._refuse(refusal, Ending.UNREACHABLE)

    def _send(self, connection: BackendConnection, now: float) -> None:
        inbound = self.inbound
        body = self.admission.body_for(self.tier)
        head = request_head(
            inbound.head,
            authority=self.server.authority,
            api_key=self.server.api_key,
            length=len(body),
            request_id=self.request_id,
            ours=self.server.headers,
        )
        self._connection = connection
        self._reader = AnswerReader(for_head=inbound.head.method == b"HEAD", known=self.server.known_answer)
        self.phase = Phase.FIRST_BYTE
        self._since = now
        connection.relay = self
        if self._paused:
            connection.transport.pause_reading()
        if len(body) <= _ONE_WRITE:
            connection.transport.write(head + body)
        else:
            connection.transport.write(head)
            connection.transport.write(body)
        self.sent = time.monotonic()

    # -- from the backend --------------------------------------------------------------------------

    def received(self, data: bytes) -> None:
        reader = self._reader
        assert reader is not None
        now = self._since = time.monotonic()
        if self.first_byte is None:
            self.first_byte = now
        trouble: AnswerUnreadable | None = None
        try:
            reader.feed(data)
        except AnswerUnreadable as error:
            trouble = error
        out = b""
        if not self._head_sent:
            if reader.interims:
                self._send_interims(reader)
            if trouble is not None:
                self._plane.server_failed(self.server)
                self._drop_connection()
                refusal = bad_gateway("bad_answer", f"The backend's answer is unreadable: {trouble}.")
                self._refuse(refusal, Ending.CUT_OFF)
                return
            if reader.head is None:
                return
            out = self._open_answer(reader, reader.head)
        if reader.parts:
            body = reader.take()
            self.body_bytes += len(body)
            if self.recording is not None:
                self.recording.add(body)
            if self._chunked:
                body = b"%x\r\n%b\r\n" % (len(body), body)
            out = out + body if out else body
        if reader.complete:
            self._client.send(out + reader.last_chunk() if self._chunked else out)
            if self.relay_seconds is None:
                self.relay_seconds = time.monotonic() - now
            self._let_go_of_connection(reader, now)
            self._over(Ending.COMPLETE, now)
            self._client.relay_over(keep_alive=self._keep_alive, now=now)
            return
        if out:
            self._client.send(out)
            if self.relay_seconds is None:
                self.relay_seconds = time.monotonic() - now
        if trouble is not None:
            self._drop_connection()
            self._break_off(Ending.CUT_OFF)

    def backend_lost(self, *, cleanly: bool) -> None:
        """The connection is gone; `cleanly` when the backend ended it, not a reset."""
        reader = self._reader
        assert self._connection is not None
        assert reader is not None
        was_reused = self._connection.is_reused
        self._connection = None
        self.server.end(self)
        if self._head_sent:
            if not (cleanly and reader.end_of_file()):
                self._break_off(Ending.CUT_OFF)
                return
            if self._chunked:
                self._client.send(reader.last_chunk())
            now = time.monotonic()
            self._over(Ending.COMPLETE, now)
            self._client.relay_over(keep_alive=self._keep_alive, now=now)
            return
        may_retry = self.first_byte is None and not self._retried and self.admission.is_replayable
        if may_retry and was_reused:
            # The backend closed an idle connection just as we wrote on it. That says nothing about it.
            self._ask_again("idle_closed")
            return
        self._plane.server_failed(self.server)
        self.failed |= {self.server}
        if may_retry and self._plane.can_pick(self.admission, self.wanted, self.failed):
            self._ask_again("backend_closed")
        else:
            refusal = bad_gateway("backend_closed", "The backend closed the connection without an answer.")
            self._refuse(refusal, Ending.CUT_OFF)

    def _ask_again(self, reason: str) -> None:
        self._plane.meters.count("retries", ("reason", reason))
        self._retried = True
        self._attempt(fresh=True)

    def _send_interims(self, reader: AnswerReader) -> None:
        interims = b"".join(reader.interims)
        reader.interims.clear()
        if not self.inbound.head.http10:
            self._client.send(interims)

    def _open_answer(self, reader: AnswerReader, head: AnswerHead) -> bytes:
        """The head for the client."""
        plane, inbound, server = self._plane, self.inbound, self.server
        http10 = inbound.head.http10
        server.known_answer = reader.known
        if server.failures:
            plane.server_answered(server)
        self._head_sent = True
        self.phase = Phase.BODY
        if inbound.held:
            self._let_go_of_body()
        self._keep_alive = (
            inbound.keep_alive and not plane.is_draining and not head.ends_with_connection(http10=http10)
        )
        if self.tier.name != self.wanted.name:
            labels = (
                ("model", self.admission.ladder.model),
                ("from", self.wanted.name),
                ("to", self.tier.name),
            )
            plane.meters.count("fallbacks", *labels)
        out, self._chunked = head.for_client(
            http10=http10,
            keep_alive=self._keep_alive,
            marks=_marks(self.tier.name, self.wanted.name),
            length=reader.length,
            request_id=self.request_id,
        )
        return out

    # -- from the client and the clock -------------------------------------------------------------

    def client_gone(self) -> None:
        """Nobody waits any more: the backend must not go on generating."""
        if self.phase is Phase.QUEUE and not self.attempts:
            assert self._plane.crowd is not None
            self.ending = Ending.CENSORED
            self._plane.crowd.unserved(self)
            return
        self._drop_connection()
        self._over(Ending.CENSORED, time.monotonic())

    def pause(self) -> None:
        """The client reads more slowly than the backend writes."""
        self._paused = True
        if self._connection is not None:
            self._connection.transport.pause_reading()

    def resume(self) -> None:
        self._paused = False
        self._since = time.monotonic()
        if self._connection is not None:
            self._connection.transport.resume_reading()

    def expire(self, now: float) -> None:
        """End it when a limit has passed; how long it may wait for its turn is the crowd's to say."""
        if self.phase is Phase.QUEUE:
            return
        late = overdue(
            self.phase,
            self._plane.config.timeouts,
            waited=now - self._since,
            in_all=now - self.inbound.started,
            paused=self._paused,
        )
        if late is None:
            return
        if self.phase is not Phase.CONNECTION:
            self._plane.server_failed(self.server)
        self._drop_connection()
        if self._head_sent:
            self._break_off(Ending.TIMEOUT)
        else:
            message = f"The backend did not answer within {late.limit:g} s."
            self._refuse(gateway_timeout(late.code, message), Ending.TIMEOUT)

    # -- ends --------------------------------------------------------------------------------------

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

    def _let_go_of_body(self) -> None:
        """It will not be sent again, and may be as large as many answers."""
        self._client.let_go(self.inbound)
        if self.recording is None or not self.recording.is_whole:
            self.admission.plain = None
            self.inbound.forget()

    def _drop_connection(self) -> None:
        if self._connecting is not None:
            self._connecting.cancel()
            self._connecting = None
            self.server.end(self)
        elif self._connection is not None:
            self._connection.drop()
            self._connection = None
            self.server.end(self)

    def _refuse(self, refusal: Refusal, ending: Ending) -> None:
        self.refusal = refusal
        self._over(ending, time.monotonic())
        self._client.refuse(refusal, self.inbound, request_id=self.request_id)

    def _break_off(self, ending: Ending) -> None:
        """The client must see that its answer is not whole."""
        head = self.head
        assert head is not None
        self._over(ending, time.monotonic())
        self._client.break_off(only_by_reset=head.ends_with_connection(http10=self.inbound.head.http10))

    def _over(self, ending: Ending, now: float) -> None:
        self.phase = Phase.OVER
        self.ending = ending
        self._plane.relay_over(self, now)
        if self._reader is not None:
            self._reader.close()


@lru_cache(1024)
def _marks(tier: str, wanted: str) -> bytes:
    """Our header lines in an answer: who gave it, and instead of whom."""
    fallback = b"" if tier == wanted else b"x-tiergate-fallback-from: %b\r\n" % wanted.encode()
    return b"x-tiergate-tier: %b\r\n%b" % (tier.encode(), fallback)
