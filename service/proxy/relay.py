"""One request on its way to a backend and its answer on the way back: who does what when is decided here.

A relay is driven from three sides: its backend connection (`received`, `backend_lost`), its client
connection (`client_gone`, `pause`, `resume`) and the clock (`expire`). It ends exactly once.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from service.proxy.answers import AnswerReader, AnswerUnreadable
from service.proxy.door import Admission
from service.proxy.errors import Refusal, bad_gateway, gateway_timeout, unavailable
from service.proxy.heads import request_head
from service.proxy.passage import Passage, Phase, overdue
from service.proxy.pool import Server
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
    """Made by the client connection for one admitted request; `begin` sets it going."""

    _server: Server

    def __init__(self, plane: DataPlane, client: ClientConnection, admission: Admission) -> None:
        self._plane = plane
        self._client = client
        self._admission = admission
        inbound = admission.inbound
        self._request_id = inbound.head.request_id or plane.make_request_id()
        self._recording: Recording | None = None
        if admission.subject is not None:
            self._recording = Recording(
                admission.subject,
                plane.budget,
                request_size=len(inbound.body),
                limit=plane.config.mirroring.max_body,
            )
        self.phase = Phase.CONNECTION
        self._since = inbound.started
        self._wanted = self._tier = plane.wanted_tier(admission)
        self._connection: BackendConnection | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._failed: list[Server] = []
        self._reader = AnswerReader(for_head=inbound.head.method == b"HEAD")
        self._attempts = 0
        self._retried = False
        self._paused = False
        self._head_sent = False
        self._chunked = False
        self._keep_alive = inbound.keep_alive
        self._first_byte: float | None = None

    def begin(self) -> None:
        self._plane.relays.add(self)
        self._attempt(fresh=not self._admission.is_replayable)

    # -- towards the backend -----------------------------------------------------------------------

    def _attempt(self, *, fresh: bool) -> None:
        """Find a backend and send; `fresh` keeps off pooled connections, which may turn out to be closed."""
        plane = self._plane
        now = time.monotonic()
        pick = plane.servers.pick(self._admission.ladder, self._wanted, now=now, without=self._failed)
        if pick is None:
            self._refuse(
                bad_gateway("backend_unreachable", "No backend of the model could be reached.")
                if self._failed
                else unavailable("no_backend", f"No backend of {self._admission.ladder.model} is up."),
                Ending.UNREACHABLE,
            )
            return
        self._attempts += 1
        self._tier = pick.tier
        self._server = pick.server
        self._server.begin()
        connection = None if fresh else self._server.take_idle()
        if connection is None:
            self.phase = Phase.CONNECTION
            self._since = now
            self._connecting = plane.spawn(self._connect())
        else:
            self._send(connection, now)

    async def _connect(self) -> None:
        server = self._server
        try:
            connection = await connect(server, seconds=self._plane.config.timeouts.connect)
        except TimeoutError:
            self._not_connected(gateway_timeout("connect_timeout", "The backend did not accept in time."))
        except OSError:
            self._not_connected(bad_gateway("backend_unreachable", "The backend could not be reached."))
        else:
            self._connecting = None
            self._send(connection, time.monotonic())

    def _not_connected(self, refusal: Refusal) -> None:
        """Nothing was sent, so anybody else may be asked, whatever the request."""
        self._connecting = None
        self._server.end()
        self._plane.server_failed(self._server, surely=True)
        self._failed.append(self._server)
        if self._attempts < MOST_ATTEMPTS and self._plane.can_pick(
            self._admission, self._wanted, self._failed
        ):
            self._attempt(fresh=not self._admission.is_replayable)
        else:
            self._refuse(refusal, Ending.UNREACHABLE)

    def _send(self, connection: BackendConnection, now: float) -> None:
        inbound = self._admission.inbound
        body = self._admission.body_for(self._tier)
        head = request_head(
            inbound.head,
            authority=self._server.authority,
            api_key=self._server.api_key,
            length=len(body),
            request_id=self._request_id,
        )
        self._connection = connection
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

    # -- from the backend --------------------------------------------------------------------------

    def received(self, data: bytes) -> None:
        reader = self._reader
        now = self._since = time.monotonic()
        if self._first_byte is None:
            self._first_byte = now
        trouble: AnswerUnreadable | None = None
        try:
            reader.feed(data)
        except AnswerUnreadable as error:
            trouble = error
        out = b""
        if not self._head_sent:
            if reader.interims:
                self._send_interims()
            if trouble is not None:
                self._plane.server_failed(self._server)
                self._drop_connection()
                refusal = bad_gateway("bad_answer", f"The backend's answer is unreadable: {trouble}.")
                self._refuse(refusal, Ending.CUT_OFF)
                return
            if not reader.head_complete:
                return
            out = self._open_answer()
        if reader.parts:
            body = reader.take()
            if self._recording is not None:
                self._recording.add(body)
            if self._chunked:
                body = b"%x\r\n%b\r\n" % (len(body), body)
            out = out + body if out else body
        if reader.complete:
            self._client.send(out + reader.last_chunk() if self._chunked else out)
            self._let_go_of_connection(now)
            self._over(Ending.COMPLETE)
            self._client.relay_over(keep_alive=self._keep_alive)
            return
        if out:
            self._client.send(out)
        if trouble is not None:
            self._drop_connection()
            self._break_off(Ending.CUT_OFF)

    def backend_lost(self, *, cleanly: bool) -> None:
        """The connection is gone; `cleanly` when the backend ended it, not a reset."""
        assert self._connection is not None
        was_reused = self._connection.is_reused
        self._connection = None
        self._server.end()
        if self._head_sent:
            if not (cleanly and self._reader.end_of_file()):
                self._break_off(Ending.CUT_OFF)
                return
            if self._chunked:
                self._client.send(self._reader.last_chunk())
            self._over(Ending.COMPLETE)
            self._client.relay_over(keep_alive=self._keep_alive)
            return
        may_retry = self._first_byte is None and not self._retried and self._admission.is_replayable
        if may_retry and was_reused:
            # The backend closed an idle connection just as we wrote on it. That says nothing about it.
            self._ask_again()
            return
        self._plane.server_failed(self._server)
        self._failed.append(self._server)
        if may_retry and self._plane.can_pick(self._admission, self._wanted, self._failed):
            self._ask_again()
        else:
            refusal = bad_gateway("backend_closed", "The backend closed the connection without an answer.")
            self._refuse(refusal, Ending.CUT_OFF)

    def _ask_again(self) -> None:
        self._retried = True
        self._reader.close()
        self._reader = AnswerReader(for_head=self._reader.for_head)
        self._attempt(fresh=True)

    def _send_interims(self) -> None:
        interims = b"".join(self._reader.interims)
        self._reader.interims.clear()
        if not self._admission.inbound.head.http10:
            self._client.send(interims)

    def _open_answer(self) -> bytes:
        """The head for the client."""
        reader, plane, inbound = self._reader, self._plane, self._admission.inbound
        http10 = inbound.head.http10
        plane.server_answered(self._server)
        self._head_sent = True
        self.phase = Phase.BODY
        self._keep_alive = (
            inbound.keep_alive and not plane.is_draining and not reader.ends_with_connection(http10=http10)
        )
        extra = [b"x-tiergate-tier: " + self._tier.name.encode()]
        if self._tier is not self._wanted:
            extra.append(b"x-tiergate-fallback-from: " + self._wanted.name.encode())
            model = self._admission.ladder.model
            labels = (("model", model), ("from", self._wanted.name), ("to", self._tier.name))
            plane.meters.count("fallbacks", *labels)
        if b"x-request-id" not in reader.names:
            extra.append(b"x-request-id: " + self._request_id)
        head, self._chunked = reader.head_for_client(http10=http10, keep_alive=self._keep_alive, extra=extra)
        return head

    # -- from the client and the clock -------------------------------------------------------------

    def client_gone(self) -> None:
        """Nobody waits any more: the backend must not go on generating."""
        self._drop_connection()
        self._over(Ending.CENSORED)

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
        """End it when a limit has passed."""
        late = overdue(
            self.phase,
            self._plane.config.timeouts,
            waited=now - self._since,
            in_all=now - self._admission.inbound.started,
            paused=self._paused,
        )
        if late is None:
            return
        if self.phase is not Phase.CONNECTION:
            self._plane.server_failed(self._server)
        self._drop_connection()
        if self._head_sent:
            self._break_off(Ending.TIMEOUT)
        else:
            message = f"The backend did not answer within {late.limit:g} s."
            self._refuse(gateway_timeout(late.code, message), Ending.TIMEOUT)

    # -- ends --------------------------------------------------------------------------------------

    def _let_go_of_connection(self, now: float) -> None:
        """Back into the pool when the next answer can be nobody else's; closed otherwise."""
        connection, reader = self._connection, self._reader
        assert connection is not None
        self._connection = None
        connection.relay = None
        self._server.end()
        transport = connection.transport
        if (
            reader.keep_alive
            and not reader.leftover
            and not transport.is_closing()
            and transport.get_write_buffer_size() == 0  # an answer that came before all of the request
            and self._server.keep(connection, now)
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
            self._server.end()
        elif self._connection is not None:
            self._connection.drop()
            self._connection = None
            self._server.end()

    def _refuse(self, refusal: Refusal, ending: Ending) -> None:
        self._over(ending)
        self._client.refuse(refusal, self._admission.inbound, request_id=self._request_id)

    def _break_off(self, ending: Ending) -> None:
        """The client must see that its answer is not whole."""
        self._over(ending)
        http10 = self._admission.inbound.head.http10
        self._client.break_off(only_by_reset=self._reader.ends_with_connection(http10=http10))

    def _over(self, ending: Ending) -> None:
        self.phase = Phase.OVER
        status = self._reader.status if self._head_sent else None
        self._plane.relay_over(
            self,
            Passage(
                admission=self._admission,
                tier=self._tier,
                ending=ending,
                status=status,
                answer_type=self._reader.header(b"content-type") if self._head_sent else b"",
                answer_encoding=self._reader.header(b"content-encoding") if self._head_sent else b"",
                first_byte=self._first_byte,
                recording=self._recording,
            ),
        )
        self._reader.close()
