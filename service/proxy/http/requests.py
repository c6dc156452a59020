"""A client's bytes, read into requests by llhttp and by what `heads.judge` adds to it. No I/O.

A connection's next request mostly has the head of the one before; then neither is asked again (`known`).

A refusal is the last thing a reader yields: where the next request would begin is then anybody's guess.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass

import httptools

from service.proxy.http.errors import Refusal, head_too_large, malformed, not_implemented, too_large
from service.proxy.http.heads import Head, Headers, announced_length, judge, like_the_last, offers_only_http2
from service.proxy.http.holding import SMALL_BODY, Bodies, Holding
from service.proxy.http.known import KnownHead, known


@dataclass(slots=True, kw_only=True)
class Inbound:
    """A complete request of a client. Not frozen, as `Head` is not."""

    head: Head
    body: bytes
    keep_alive: bool
    started: float
    """Monotonic time at which its last byte was here, the answer before it over, and its turn come."""
    held: int = 0
    """Bytes of the body that a budget gave and has not got back."""
    forgotten: int = 0
    """Bytes of a body that nobody needs any more and that is gone."""

    @property
    def size(self) -> int:
        """Of the body."""
        return len(self.body) + self.forgotten

    def forget(self) -> None:
        self.forgotten, self.body = len(self.body), b""


class _Stop(Exception):
    """Ends parsing from within; `_refusal` says why."""


class RequestReader:
    """Whole requests, in order, appear in `ready`."""

    __slots__ = (
        "_barren",
        "_begun",
        "_body",
        "_conversation_header",
        "_head",
        "_head_bytes",
        "_headers",
        "_holding",
        "_in_head",
        "_is_repeated",
        "_known",
        "_last",
        "_last_version",
        "_max_body",
        "_max_head",
        "_missing",
        "_parser",
        "_refusal",
        "_room",
        "_small",
        "_target",
        "expects_continue",
        "is_closed",
        "ready",
        "since",
    )

    def __init__(
        self, *, max_head: int, max_body: int, conversation_header: bytes, bodies: Bodies | None = None
    ) -> None:
        """`bodies` is asked for what bodies hold that are not small."""
        self._max_head = max_head
        self._max_body = max_body
        self._holding = Holding(bodies)
        self._small = self._room = min(SMALL_BODY, max_body)
        """`_room`: to which size the body may grow before anybody is asked."""
        self._conversation_header = conversation_header
        self._parser = httptools.HttpRequestParser(self)
        self.ready: deque[Inbound | Refusal] = deque()
        self.is_closed = False
        """Nothing more will be read: the last request was the client's last, or was refused."""
        self.expects_continue = False
        """The client waits to be told to send the body; the caller clears it when it has."""
        self.since = time.monotonic()
        """When the client began a head, or last sent something else."""
        self._refusal: Refusal | None = None
        self._in_head = False
        self._head_bytes = 0
        """Of the head's parts that are complete."""
        self._barren = 0
        """Bytes of reads that brought only this head, or nothing of the body: chunk extensions, trailers."""
        self._target = b""
        self._headers: Headers = []
        self._head: Head | None = None
        """Of the request whose body is being read."""
        self._body: bytes | bytearray = b""
        self._last: Head | None = None
        self._last_version = ""
        self._begun = 0
        """Requests that began in this read."""
        self._is_repeated = False
        """The head that was parsed last says the same as the one before."""
        self._known: KnownHead[Head] | None = None
        self._missing = 0
        """Bytes of the body that are still to come under a known head."""

    def adopt(self, *, max_head: int, max_body: int, conversation_header: bytes) -> None:
        """Judge by other limits from now on."""
        self._max_head = max_head
        self._max_body = max_body
        self._small = min(SMALL_BODY, max_body)
        self._room = max(self._holding.under_way, self._small)
        if conversation_header != self._conversation_header:
            self._conversation_header = conversation_header
            self._last = self._known = None  # they were judged by the old one

    @property
    def is_in_head(self) -> bool:
        return self._in_head

    @property
    def bytes_read(self) -> int:
        """Of bodies: of the requests that are ready and of the one that is being read."""
        return len(self._body) + sum(len(each.body) for each in self.ready if isinstance(each, Inbound))

    @property
    def is_in_request(self) -> bool:
        return self._in_head or self._head is not None

    def feed(self, received: bytes) -> None:
        """Read on; what follows a last request is nobody's business."""
        if self.is_closed:
            return
        if self._missing:
            received = self._read_known(received, self._missing, 0)
        while self._known is not None and self._head is None and not self._in_head and received:
            framed = self._known.match(received)
            if framed is None:
                break
            length, begin, _ = framed
            if length > self._small:
                break
            self._head = self._known.meaning
            received = self._read_known(received, length, begin)
        if received:
            self._parse(received)

    def _read_known(self, received: bytes, length: int, begin: int) -> bytes:
        """Body under a known head; returns what follows it."""
        head = self._head
        assert head is not None
        now = self.since = time.monotonic()
        part = received[begin : begin + length]
        self._missing = length - len(part)
        if not self._body:
            self._body = part
        elif isinstance(self._body, bytearray):
            self._body += part
        else:
            self._body = bytearray(self._body) + part
        if not self._missing:
            body, self._body = self._body, b""
            self._head = None
            self.ready.append(Inbound(head=head, body=bytes(body), keep_alive=True, started=now))
        return received[begin + length :]

    def _parse(self, received: bytes) -> None:
        if not self._in_head:
            self.since = time.monotonic()
        is_fresh = not self.is_in_request
        self._begun = 0
        self._is_repeated = False
        self._barren += len(received)
        try:
            self._parser.feed_data(received)
        except httptools.HttpParserUpgrade as stopped:
            # llhttp stops behind a request that offers another protocol; this client goes on in ours.
            if not self.is_closed:
                self._parser = httptools.HttpRequestParser(self)
                self.feed(received[stopped.args[0] :])
            return
        except httptools.HttpParserError as error:
            if not self.is_closed:
                self.refuse(self._refusal or malformed(str(error)))
            return
        if self._barren > self._max_head and self.is_in_request:
            # One endless header reaches `on_header` only at its end, and until then httptools keeps it.
            self.refuse(head_too_large(self._max_head))
        elif self._is_repeated and is_fresh and self._begun == 1:
            self._remember(received)

    def _remember(self, received: bytes) -> None:
        """The head at the beginning of this read, in which no other began, is the one parsed last."""
        last = self._last
        if last is None or last.chunked or last.expects_continue or not self._parser.should_keep_alive():
            return
        self._known = known(received, last)

    def close(self) -> None:
        """Let go of the parser, which holds on to us: garbage in a ring waits for the collector."""
        self.is_closed = True
        self._holding.close()
        del self._parser

    def let_go(self, inbound: Inbound) -> None:
        """The budget may have back what this body holds: a backend has it, or none will."""
        self._holding.give_back(inbound.held)
        inbound.held = 0

    def refuse(self, refusal: Refusal) -> None:
        """Read no further; the refusal follows the requests that are ready."""
        self.is_closed = True
        self.expects_continue = False
        self._in_head = False
        self._head = None
        self._missing = 0
        self._body = b""
        self._holding.drop()
        self.ready.append(refusal)

    # -- llhttp calls these ------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._begun += 1
        self._in_head = True
        self._head_bytes = self._barren = 0
        self._target = b""
        self._headers = []
        self.since = time.monotonic()

    def on_url(self, part: bytes) -> None:
        self._target += part
        self._count_head(len(part))

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # a trailer otherwise: the body goes on with a length, which leaves it no place
            self._headers.append((name, value))
            self._count_head(len(name) + len(value) + 4)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._barren = 0
        parser = self._parser
        method, version = parser.get_method(), parser.get_http_version()
        head: Head | Refusal | None = None
        if self._last is not None and self._last_version == version:
            head = like_the_last(self._last, method, self._target, self._headers)
        self._is_repeated = head is not None
        if head is None:
            head = judge(
                method=method,
                target=self._target,
                version=version,
                headers=self._headers,
                conversation_header=self._conversation_header,
            )
        if isinstance(head, Refusal):
            self._stop(head)
        else:
            self._last, self._last_version = head, version
            length = announced_length(head, self._headers)
            if length > self._max_body:
                self._stop(too_large(self._max_body))
            self._head = head
            self.expects_continue = head.expects_continue
            if parser.should_upgrade():
                self._let_offer_pass(head, length)

    def _let_offer_pass(self, head: Head, length: int) -> None:
        """llhttp ends a request that offers another protocol with its head; a short body we read."""
        readable = length <= self._small and not head.expects_continue and self._parser.should_keep_alive()
        if head.chunked or not offers_only_http2(head) or (length and not readable):
            self._stop(not_implemented("Upgrade is not supported."))
        self._missing = length

    def on_body(self, part: bytes) -> None:
        self._barren = 0
        if not self._body:
            self._body = part
        elif isinstance(self._body, bytearray):
            self._body += part
        else:  # a list of parts would cost more than the parts when these are small
            self._body = bytearray(self._body)
            self._body += part
        if len(self._body) > self._room:
            self._make_room(len(self._body))

    def _make_room(self, size: int) -> None:
        """For a body that is no longer small."""
        if size > self._max_body:
            self._stop(too_large(self._max_body))
        refusal = self._holding.grow(size, self.refuse)
        if refusal is not None:
            self._stop(refusal)
        self._room = size

    def on_message_complete(self) -> None:
        assert self._head is not None
        if self._missing:  # so llhttp thinks
            return
        keep_alive = self._parser.should_keep_alive()
        self.is_closed = not keep_alive
        inbound = Inbound(
            head=self._head, body=bytes(self._body), keep_alive=keep_alive, started=time.monotonic()
        )
        if self._room > self._small:
            inbound.held, self._room = self._holding.hand_over(), self._small
        self.ready.append(inbound)
        self._head = None
        self._body = b""
        self.expects_continue = False

    def _count_head(self, amount: int) -> None:
        self._head_bytes += amount
        if self._head_bytes > self._max_head:
            self._stop(head_too_large(self._max_head))

    def _stop(self, refusal: Refusal) -> None:
        self._refusal = refusal
        raise _Stop(refusal.code)
