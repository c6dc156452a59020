"""The client side: one connection of a client, its requests read ahead and answered in order."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections import deque
from typing import TYPE_CHECKING, cast

import httptools

from service.proxy.door import Inbound, OwnAnswer
from service.proxy.errors import (
    Refusal,
    head_too_large,
    malformed,
    not_implemented,
    own_answer,
    refusal_bytes,
    request_timeout,
    too_large,
)
from service.proxy.heads import Head, Headers, judge
from service.proxy.relay import Relay

if TYPE_CHECKING:
    from service.proxy.plane import DataPlane

LINGER_SECONDS = 2.0
"""How long a connection stays half-open after a last answer, so that a reset does not overtake it."""
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"


class _Stop(Exception):
    """Ends parsing from within; `_refusal` says why."""


class ClientConnection(asyncio.Protocol):
    """Made by the listener for each client."""

    __slots__ = (
        "_advancing",
        "_body",
        "_closes_after",
        "_half_closed",
        "_head",
        "_head_bytes",
        "_head_read",
        "_headers",
        "_in_head",
        "_lingers_until",
        "_owes_continue",
        "_parser",
        "_plane",
        "_reading_paused",
        "_refusal",
        "_relay",
        "_since",
        "_stalls",
        "_target",
        "_transport",
        "_unsent",
        "_waiting",
    )

    _transport: asyncio.Transport

    def __init__(self, plane: DataPlane) -> None:
        self._plane = plane
        self._parser = httptools.HttpRequestParser(self)
        self._waiting: deque[Inbound | Refusal] = deque()
        self._relay: Relay | None = None
        self._refusal: Refusal | None = None
        """Why no further request is read."""
        self._closes_after = False
        """The request read last was the client's last."""
        self._half_closed = False
        self._advancing = False
        self._in_head = False
        self._head_bytes = 0
        """Of its parts that are complete."""
        self._head_read = 0
        """Of reads that brought nothing but this head."""
        self._target = b""
        self._headers: Headers = []
        self._head: Head | None = None
        """Of the request whose body is being read."""
        self._body: bytes | bytearray = b""
        self._owes_continue = False
        self._reading_paused = False
        self._since = time.monotonic()
        """When the client last sent something, began a head, or was answered."""
        self._stalls = False
        """The client reads more slowly than its answer comes."""
        self._unsent: tuple[float, int] | None = None
        """Since when so many bytes have been waiting to be taken."""
        self._lingers_until: float | None = None

    # -- asyncio calls these -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's do not inherit from it
        self._plane.clients.add(self)

    def data_received(self, received: bytes) -> None:
        if self._refusal is not None or self._closes_after or self._lingers_until is not None:
            return
        was_in_head = self._in_head
        if not was_in_head:
            self._since = time.monotonic()
        try:
            self._parser.feed_data(received)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if not self._closes_after:  # whatever follows a last request is nobody's business
                self._stop_reading(self._refusal or malformed(str(error)))
        if was_in_head and self._in_head:
            # One endless header reaches `on_header` only at its end.
            self._head_read += len(received)
            if self._head_read > self._plane.config.clients.max_head:
                self._stop_reading(head_too_large(self._plane.config.clients.max_head))
        self._advance()

    def eof_received(self) -> bool:
        """A client that ends its side has gone, unless the configuration says that it may still listen."""
        if self._lingers_until is None and (self._relay is not None or self._waiting):
            if self._plane.config.half_close:
                self._closes_after = self._half_closed = True
                return True
            self._abandon()
            self._transport.abort()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._plane.clients.discard(self)
        self._abandon()

    def pause_writing(self) -> None:
        self._stalls = True
        if self._relay is not None:
            self._relay.pause()

    def resume_writing(self) -> None:
        self._stalls = False
        if self._relay is not None:
            self._relay.resume()

    # -- llhttp calls these ------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._in_head = True
        self._head_bytes = self._head_read = 0
        self._target = b""
        self._headers = []
        self._since = time.monotonic()

    def on_url(self, part: bytes) -> None:
        self._target += part
        self._count_head(len(part))

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # a trailer otherwise: the body goes on with a length, which leaves it no place
            self._headers.append((name, value))
            self._count_head(len(name) + len(value) + 4)

    def on_headers_complete(self) -> None:
        self._in_head = False
        config = self._plane.config
        if self._parser.should_upgrade():
            self._stop(not_implemented("Upgrade is not supported."))
        judged = judge(
            method=self._parser.get_method(),
            target=self._target,
            version=self._parser.get_http_version(),
            headers=self._headers,
            conversation_header=self._plane.conversation_header,
        )
        if isinstance(judged, Refusal):
            self._stop(judged)
        elif judged.content_length is not None and judged.content_length > config.max_request:
            self._stop(too_large(config.max_request))
        else:
            self._head = judged
            self._body = b""
            if judged.expects_continue:
                if self._relay is None and not self._waiting:
                    self._transport.write(_GO_ON)
                else:
                    self._owes_continue = True

    def on_body(self, part: bytes) -> None:
        if not self._body:
            self._body = part
        elif isinstance(self._body, bytearray):
            self._body += part
        else:
            self._body = bytearray(self._body)
            self._body += part
        if len(self._body) > self._plane.config.max_request:
            self._stop(too_large(self._plane.config.max_request))

    def on_message_complete(self) -> None:
        assert self._head is not None
        keep_alive = self._parser.should_keep_alive()
        self._closes_after = not keep_alive
        self._waiting.append(
            Inbound(
                head=self._head,
                body=bytes(self._body),
                keep_alive=keep_alive,
                started=time.monotonic(),
            )
        )
        self._head = None
        self._body = b""
        self._owes_continue = False

    # -- the relay calls these ---------------------------------------------------------------------

    def send(self, out: bytes) -> None:
        self._transport.write(out)

    def refuse(self, refusal: Refusal, inbound: Inbound, *, request_id: bytes = b"") -> None:
        """Answer a whole request ourselves."""
        keep_alive = inbound.keep_alive and not self._plane.is_draining
        head = inbound.head
        self._plane.refused(refusal)
        self.send(
            refusal_bytes(
                refusal,
                keep_alive=keep_alive,
                http10=head.http10,
                body=head.method != b"HEAD",
                request_id=request_id or head.request_id or b"",
            )
        )
        self.relay_over(keep_alive=keep_alive)

    def relay_over(self, *, keep_alive: bool) -> None:
        """The answer is written; the next request may have its turn."""
        self._relay = None
        self._since = time.monotonic()
        if not keep_alive:
            self._linger()
        elif not self._advancing:
            self._advance()

    def break_off(self, *, only_by_reset: bool) -> None:
        """End the connection so that the client sees an unfinished answer."""
        self._relay = None
        self._waiting.clear()
        if only_by_reset:
            # The body ends where the connection does: a clean end would look like a whole answer.
            opened: socket.socket = self._transport.get_extra_info("socket")
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            self._transport.abort()
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
        elif self._relay is None and not self._waiting:
            waited = now - self._since
            if self._in_head or self._head is not None:
                if waited > (limits.head if self._in_head else limits.body):
                    self._stop_reading(request_timeout())
                    self._advance()
            elif waited > limits.keep_alive:
                self._transport.close()

    def drain(self) -> None:
        """Close at once if no request is under way."""
        if self._relay is None and not self._waiting and not self._in_head and self._head is None:
            self._transport.close()

    def abort(self) -> None:
        """End it now, whatever is under way."""
        self._abandon()
        self._transport.abort()

    # -- inside ------------------------------------------------------------------------------------

    def _advance(self) -> None:
        """Answer the next request, and the next, until one has to wait for a backend."""
        self._advancing = True
        while self._relay is None and self._waiting and self._lingers_until is None:
            turn = self._waiting.popleft()
            if isinstance(turn, Refusal):
                self._plane.refused(turn)
                self.send(refusal_bytes(turn, keep_alive=False))
                self._linger()
            else:
                self._answer(turn)
        self._advancing = False
        if self._half_closed and self._relay is None and not self._waiting:
            self._transport.close()
            return
        if self._relay is None and self._owes_continue and not self._waiting:
            self._owes_continue = False
            self._transport.write(_GO_ON)
        if self._reading_paused != (len(self._waiting) >= self._plane.config.clients.pipelined):
            self._reading_paused = not self._reading_paused
            if self._reading_paused:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def _answer(self, inbound: Inbound) -> None:
        plane = self._plane
        admitted = plane.door.admit(inbound, split=plane.is_split)
        if isinstance(admitted, Refusal):
            self.refuse(admitted, inbound)
        elif isinstance(admitted, OwnAnswer):
            keep_alive = inbound.keep_alive and not plane.is_draining
            self.send(
                own_answer(
                    admitted.status,
                    admitted.content,
                    keep_alive=keep_alive,
                    http10=inbound.head.http10,
                    body=inbound.head.method != b"HEAD",
                    request_id=inbound.head.request_id or b"",
                )
            )
            self.relay_over(keep_alive=keep_alive)
        else:
            self._relay = Relay(plane, self, admitted)
            if self._stalls:
                self._relay.pause()
            self._relay.begin()

    def _count_head(self, amount: int) -> None:
        self._head_bytes += amount
        if self._head_bytes > self._plane.config.clients.max_head:
            self._stop(head_too_large(self._plane.config.clients.max_head))

    def _stop(self, refusal: Refusal) -> None:
        self._refusal = refusal
        raise _Stop(refusal.code)

    def _stop_reading(self, refusal: Refusal) -> None:
        """No further request is read; this is the last thing the client hears."""
        self._refusal = refusal
        self._in_head = False
        self._head = None
        self._body = b""
        self._waiting.append(refusal)

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

    def _abandon(self) -> None:
        self._waiting.clear()
        if self._relay is not None:
            relay, self._relay = self._relay, None
            relay.client_gone()
