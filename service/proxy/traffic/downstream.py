"""The client side: one connection of a client, its requests read ahead and answered in order."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, cast

from service.proxy.entry.door import OwnAnswer
from service.proxy.http.errors import Refusal, own_answer, refusal_bytes, request_timeout
from service.proxy.http.requests import Inbound, RequestReader
from service.proxy.traffic.relay import Relay
from service.proxy.traffic.sockets import has_hung_up, reset, take_turns

if TYPE_CHECKING:
    from service.proxy.traffic.plane import DataPlane

LINGER_SECONDS = 2.0
"""How long a connection stays half-open after a last answer, so that a reset does not overtake it."""
TURNS = 32
"""Requests of one client that are answered without a backend before everybody else has a turn."""
READ_AHEAD_BYTES = 256 * 1024
"""Bodies of a client's next requests that are read while an answer is under way; one read more at most."""
FULL_READ = 128 * 1024
"""Bytes after which others have their turn; they may be tens of thousands of chunks."""
LEAST_RATE = 1024
"""Bytes a second of a body."""
_GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"


class ClientConnection(asyncio.Protocol):
    """Made by the listener for each client."""

    __slots__ = (
        "_advancing",
        "_half_closed",
        "_lingers_until",
        "_plane",
        "_reader",
        "_reading_paused",
        "_relay",
        "_since",
        "_sized",
        "_stalls",
        "_transport",
        "_unsent",
        "_waiting",
    )

    _transport: asyncio.Transport

    def __init__(self, plane: DataPlane) -> None:
        self._plane = plane
        self._reader = RequestReader(
            max_head=plane.config.clients.max_head,
            max_body=plane.config.max_request,
            conversation_header=plane.conversation_header,
            bodies=plane.bodies,
        )
        self._waiting = self._reader.ready
        self._relay: Relay | None = None
        self._half_closed = False
        self._advancing = False
        self._reading_paused = False
        self._since = self._reader.since
        """When the client was last answered."""
        self._stalls = False
        """The client reads more slowly than its answer comes."""
        self._unsent: tuple[float, int] | None = None
        """Since when so many bytes have been waiting to be taken."""
        self._lingers_until: float | None = None
        self._sized: tuple[float, float, int] | None = None
        """Of a body at a look at the clock: the `_since` before it, when that look was, its size then."""

    # -- asyncio calls these -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's do not inherit from it
        self._plane.clients.add(self)

    def data_received(self, received: bytes) -> None:
        if self._lingers_until is None and not self._half_closed:
            self._reader.feed(received)
            self._advance()
        if len(received) >= FULL_READ and not self._reading_paused:
            take_turns(self._transport, lambda: not self._reading_paused)

    def eof_received(self) -> bool:
        """A client that ends its side has gone, unless the configuration says that it may still listen."""
        if self._lingers_until is None and (self._relay is not None or self._waiting):
            if self._plane.config.half_close and self._transport.can_write_eof():  # TLS cannot
                self._half_closed = True
                return True
            self._client_left()
            self._transport.abort()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._plane.clients.discard(self)
        self._client_left()
        self._reader.close()

    def pause_writing(self) -> None:
        self._stalls = True
        if self._relay is not None:
            self._relay.pause()

    def resume_writing(self) -> None:
        self._stalls = False
        if self._relay is not None:
            self._relay.resume()
        elif not self._advancing:
            self._advance()

    # -- the relay calls these ---------------------------------------------------------------------

    def send(self, out: bytes) -> None:
        self._transport.write(out)

    def refuse(self, refusal: Refusal, inbound: Inbound, *, request_id: bytes = b"") -> None:
        """Answer a whole request ourselves."""
        self.let_go(inbound)
        keep_alive = inbound.keep_alive and not self._plane.is_draining
        head = inbound.head
        self._plane.refused(refusal)
        request_id = request_id or self._plane.answers_itself(inbound, refusal)
        self.send(
            refusal_bytes(
                refusal,
                keep_alive=keep_alive,
                http10=head.http10,
                body=head.method != b"HEAD",
                request_id=request_id,
            )
        )
        self.relay_over(keep_alive=keep_alive, now=time.monotonic())

    def let_go(self, inbound: Inbound) -> None:
        """Nobody but a capture needs the request's body any more."""
        if inbound.held:
            self._reader.let_go(inbound)

    def relay_over(self, *, keep_alive: bool, now: float) -> None:
        """The answer is written; the next request may have its turn."""
        self._relay = None
        self._since = now
        if not keep_alive:
            self._linger()
        elif not self._advancing and (
            self._waiting or self._reading_paused or self._half_closed or self._reader.expects_continue
        ):
            self._advance()

    def break_off(self, *, only_by_reset: bool) -> None:
        """End the connection so that the client sees an unfinished answer."""
        self._relay = None
        self._waiting.clear()
        if only_by_reset:
            # The body ends where the connection does: a clean end would look like a whole answer.
            # A unix socket has no reset; docs/operations.md tells how to do without.
            reset(self._transport)
        else:
            self._transport.close()

    # -- the plane calls these ---------------------------------------------------------------------

    def expire(self, now: float) -> None:
        """End it when the client took too long with something."""
        limits = self._plane.config.clients
        unsent = self._transport.get_write_buffer_size()
        if unsent == 0:
            self._unsent = None
        elif self._unsent is None or self._unsent[1] != unsent:
            self._unsent = (now, unsent)
        elif limits.stalled is not None and now - self._unsent[0] > limits.stalled:
            self.abort()
            return
        if self._lingers_until is not None:
            if now > self._lingers_until and unsent == 0:
                self._transport.abort()
        elif self._reading_paused and has_hung_up(self._transport, half_close=self._plane.config.half_close):
            self._client_left()
            self._transport.abort()
        elif self._transport.is_closing():
            pass  # a broken answer's last bytes are on their way, and nothing may follow them
        elif self._relay is None:
            waited = now - max(self._since, self._reader.since)
            if self._waiting:  # the body was refused, for the room it took
                self._advance()
            elif self._reader.is_in_head:
                if waited > limits.head:
                    self._give_up()
            elif self._reader.is_in_request:
                if waited > limits.body or self._is_crawling(now, limits.body):
                    self._give_up()
            elif waited > limits.keep_alive:
                self._transport.close()

    def adopt(self) -> None:
        """Go by the plane's new configuration, from the next request on."""
        self._reader.adopt(
            max_head=self._plane.config.clients.max_head,
            max_body=self._plane.config.max_request,
            conversation_header=self._plane.conversation_header,
        )

    def drain(self) -> None:
        """Close at once if no request is under way."""
        if self._relay is None and not self._waiting and not self._reader.is_in_request:
            self._transport.close()

    def idle_since(self) -> float | None:
        """Monotonic: since when it waits for a request; None while one is under way, or the end."""
        if self._relay is not None or self._waiting or self._reader.is_in_request:
            return None
        if self._lingers_until is not None or self._transport.is_closing():
            return None
        if self._transport.get_write_buffer_size():
            return None
        return max(self._since, self._reader.since)

    def make_way(self) -> None:
        """Another client needs the place."""
        self.abort()

    def abort(self) -> None:
        """End it now, whatever is under way."""
        self._abandon()
        self._transport.abort()

    # -- inside ------------------------------------------------------------------------------------

    def _advance(self) -> None:
        """Answer the next request, and the next, until one has to wait for a backend or for the client."""
        self._advancing = True
        turns = TURNS
        while (
            self._relay is None
            and self._waiting
            and self._lingers_until is None
            and not self._stalls
            and turns > 0
        ):
            turns -= 1
            turn = self._waiting.popleft()
            if isinstance(turn, Refusal):
                self._plane.refused(turn)
                request_id = self._plane.answers_itself(None, turn)
                self.send(refusal_bytes(turn, keep_alive=False, request_id=request_id))
                self._linger()
            else:
                self._answer(turn)
        self._advancing = False
        if self._lingers_until is not None:
            return
        if turns == 0 and self._waiting and self._relay is None:
            asyncio.get_running_loop().call_soon(self._advance)
        if self._half_closed and self._relay is None and not self._waiting:
            self._transport.close()
            return
        if self._reader.expects_continue and self._relay is None and not self._waiting:
            self._reader.expects_continue = False
            self._transport.write(_GO_ON)
        if (self._reading_paused or self._waiting or self._reader.is_in_request) and (
            self._reading_paused != self._is_far_ahead()
        ):
            self._reading_paused = not self._reading_paused
            if self._reading_paused:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def _is_crawling(self, now: float, seconds: float) -> bool:
        """Whether the body that is being read has brought next to nothing for that long."""
        size = self._reader.bytes_read
        if self._sized is None or self._sized[0] != self._since:
            self._sized = (self._since, now, size)
        _, looked, before = self._sized
        if now - looked <= seconds:
            return False
        self._sized = (self._since, now, size)
        return size - before < LEAST_RATE * (now - looked)

    def _give_up(self) -> None:
        self._reader.refuse(request_timeout())
        self._advance()

    def _is_far_ahead(self) -> bool:
        """Whether enough is read for the time after what is being answered."""
        if self._relay is None and not self._waiting:
            return False
        return (
            self._stalls
            or len(self._waiting) >= self._plane.config.clients.pipelined
            or self._reader.bytes_read > READ_AHEAD_BYTES
        )

    def _answer(self, inbound: Inbound) -> None:
        plane = self._plane
        if inbound.started < self._since:  # it waited for the answer before it, which is nobody's delay
            inbound.started = self._since
        admitted = plane.door.admit(inbound, split=plane.is_split)
        if isinstance(admitted, Refusal):
            self.refuse(admitted, inbound)
        elif isinstance(admitted, OwnAnswer):
            keep_alive = inbound.keep_alive and not plane.is_draining
            self.let_go(inbound)
            self.send(
                own_answer(
                    admitted.status,
                    admitted.content,
                    keep_alive=keep_alive,
                    http10=inbound.head.http10,
                    body=inbound.head.method != b"HEAD",
                    request_id=plane.answers_itself(inbound, admitted),
                )
            )
            self.relay_over(keep_alive=keep_alive, now=time.monotonic())
        else:
            self._relay = Relay(plane, self, admitted)
            if self._stalls:
                self._relay.pause()
            self._relay.begin()

    def _linger(self) -> None:
        """End our side, and wait a little for the client to end its own."""
        self._waiting.clear()
        if self._half_closed or not self._transport.can_write_eof():
            self._transport.close()
            return
        self._lingers_until = time.monotonic() + LINGER_SECONDS
        if self._reading_paused:
            self._reading_paused = False
            self._transport.resume_reading()
        if not self._transport.is_closing():
            self._transport.write_eof()

    def _client_left(self) -> None:
        if self._relay is not None:
            self._plane.meters.count("client_disconnects", ("phase", self._relay.phase.value))
        self._abandon()

    def _abandon(self) -> None:
        self._waiting.clear()
        if self._relay is not None:
            relay, self._relay = self._relay, None
            relay.client_gone()
