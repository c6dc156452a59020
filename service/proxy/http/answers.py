"""A backend's answer, read by llhttp and by what it leaves to us. Pure.

A reader lives for one exchange. Bytes after the end of an answer are never an answer to anything, so they are
noticed and end the connection. Under a head that this backend has used before, llhttp is not asked (`known`).
"""

from __future__ import annotations

import re

import httptools

from service.proxy.http.answer_heads import BODILESS, AnswerHead, listed_by_connection
from service.proxy.http.heads import HOP_BY_HOP, Headers
from service.proxy.http.known import KnownHead, known

LAST_CHUNK = b"0\r\n\r\n"

_NEVER_IN_TRAILERS = HOP_BY_HOP | {b"content-length", b"host", b"content-encoding", b"content-type"}
_MOST_HEAD = 256 * 1024
# Plain numbers: members of HTTPStatus take as long to compare as all the rest.
_CONTINUE, _SWITCHING_PROTOCOLS, _OK = 100, 101, 200
_CONTROLS = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


class AnswerUnreadable(ValueError):
    """A backend sent what is not an HTTP/1.1 answer."""


class AnswerReader:
    """Feeds on a backend connection's bytes; the relay takes what accumulates.

    `interims` are complete 1xx heads, `parts` body bytes not yet taken. `head` and `length` come with the end
    of the head; `complete` and `leftover` (bytes followed the answer) only ever turn true.
    """

    # Most readers never touch these: setting each of them for every answer would cost as much as parsing.
    head: AnswerHead | None = None
    length: bytes | None = None
    """As the head spells it."""
    complete = False
    leftover = False
    _parser: httptools.HttpResponseParser | None = None
    _missing = 0
    """Bytes of the body that are still to come under a known head."""

    def __init__(self, *, for_head: bool, known: KnownHead[AnswerHead] | None = None) -> None:
        self._for_head = for_head
        self.known = known
        """The head that the backend used last, when only its length can differ the next time."""
        self.parts: list[bytes] = []
        self.interims: list[bytes] = []
        self.trailers: Headers = []

    def feed(self, received: bytes) -> None:
        """AnswerUnreadable when the answer cannot be read on; what was read before stays in `parts`."""
        if self._parser is not None:
            self._parse(received)
        elif self.head is not None:
            self._read_known(received)
        elif self.known is None or self._for_head or (framed := self.known.match(received)) is None:
            self._begin_parsing()
            self._parse(received)
            self._remember(received)
        else:
            self.head = self.known.meaning
            self._missing, begin, self.length = framed
            self._read_known(received[begin:])

    def _read_known(self, body: bytes) -> None:
        """Body under a known head."""
        if len(body) > self._missing:
            self.leftover = True
            body = body[: self._missing]
        if body:
            self._missing -= len(body)
            self.parts.append(body)
        self.complete = not self._missing

    def _begin_parsing(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._reason = b""
        self._headers: Headers = []
        self._names: list[bytes] = []
        self._head_bytes = 0
        """Since anything of the body came: heads, or what stands between and behind chunks."""

    def _parse(self, received: bytes) -> None:
        assert self._parser is not None
        try:
            self._parser.feed_data(received)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if self.complete:
                self.leftover = True
                return
            cause = error.__context__
            raise AnswerUnreadable(str(cause if isinstance(cause, AnswerUnreadable) else error)) from error
        if self.parts or self.complete:
            self._head_bytes = 0
        else:
            self._head_bytes += len(received)
            if self._head_bytes > _MOST_HEAD:
                raise AnswerUnreadable(f"more than {_MOST_HEAD} bytes of headers")

    def _remember(self, received: bytes) -> None:
        """The head that this first read began with; an interim head before it would have had no length."""
        head = self.head
        if head is not None and head.keep_alive and not head.chunked and head.status not in BODILESS:
            self.known = known(received, head)

    def close(self) -> None:
        """Let go of the parser, which holds on to us: garbage in a ring waits for the collector."""
        self._parser = None

    def end_of_file(self) -> bool:
        """Whether a clean end of the connection is the end of this answer: nothing else delimits its body."""
        head = self.head
        return head is not None and not self.complete and not head.chunked and head.length is None

    def take(self) -> bytes:
        """The body bytes since the last call."""
        parts = self.parts
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        return body

    def last_chunk(self) -> bytes:
        """The end of a chunked body, with the backend's trailers."""
        kept = [
            b"%b: %b\r\n" % (name, value)
            for name, value in self.trailers
            if name.lower() not in _NEVER_IN_TRAILERS
        ]
        return b"0\r\n" + b"".join(kept) + b"\r\n" if kept else LAST_CHUNK

    # -- llhttp calls these ------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self.complete:
            raise AnswerUnreadable("bytes after the end of the answer")

    def on_status(self, reason: bytes) -> None:
        self._reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.head is not None:
            self.trailers.append((name, value))
        else:
            self._headers.append((name, value))
            self._names.append(name.lower())

    def on_headers_complete(self) -> None:
        parser, names = self._parser, self._names
        assert parser is not None
        status, version = parser.get_status_code(), parser.get_http_version()
        if version not in ("1.1", "1.0"):
            raise AnswerUnreadable(f"an answer in HTTP/{version}")
        if _CONTROLS.search(self._reason):
            raise AnswerUnreadable("control characters in the reason phrase")
        chunked = b"transfer-encoding" in names
        if status < _OK:
            if status < _CONTINUE:  # llhttp reads a body behind it
                raise AnswerUnreadable(f"status {status:03}")
            if status == _SWITCHING_PROTOCOLS:
                raise AnswerUnreadable("101 to a request that asked for no upgrade")
            if chunked or b"content-length" in names:  # llhttp reads a body behind some of these
                raise AnswerUnreadable(f"status {status} with a body")
            return
        if chunked:
            coding = b",".join(
                value.strip().lower()
                for (_, value), low in zip(self._headers, names, strict=True)
                if low == b"transfer-encoding"
            )
            if coding != b"chunked":
                raise AnswerUnreadable(f"unknown transfer coding {coding.decode('latin-1')!r}")
        self.head = AnswerHead(
            status=status,
            reason=self._reason,
            headers=self._headers,
            names=names,
            chunked=chunked,
            # A server of HTTP/1.0 that sends chunks has its framing wrong somewhere (RFC 9112, 6.1).
            keep_alive=parser.should_keep_alive()
            and not self._for_head
            and not (chunked and version == "1.0"),
            for_head=self._for_head,
        )
        self.length = self.head.length
        if self._for_head:
            # llhttp cannot be told that this answers HEAD: it would wait for a body and swallow the next
            # answer. The connection is closed instead.
            self.complete = True

    def on_body(self, body: bytes) -> None:
        if self.complete:
            raise AnswerUnreadable("a body in an answer to HEAD")
        self.parts.append(body)

    def on_message_complete(self) -> None:
        if self.head is not None:
            self.complete = True
            return
        assert self._parser is not None
        status = self._parser.get_status_code()
        if status != _CONTINUE:  # the client that expects one has had ours
            dropped = listed_by_connection(self._headers, self._names)
            lines = [
                b"%b: %b\r\n" % (name, value)
                for (name, value), low in zip(self._headers, self._names, strict=True)
                if low not in dropped
            ]
            self.interims.append(b"HTTP/1.1 %d %b\r\n%b\r\n" % (status, self._reason, b"".join(lines)))
        self._headers, self._names, self._reason = [], [], b""
