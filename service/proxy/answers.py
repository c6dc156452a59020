"""A backend's answer: read once by llhttp, written again for one client. Pure.

A reader lives for one exchange. Bytes after the end of an answer are never an answer to anything, so
they are noticed and end the connection.
"""

from __future__ import annotations

import httptools

from service.proxy.heads import HOP_BY_HOP, Headers

LAST_CHUNK = b"0\r\n\r\n"

_NEVER_IN_TRAILERS = HOP_BY_HOP | {b"content-length", b"host", b"content-encoding", b"content-type"}
_MOST_HEAD = 256 * 1024
# Plain numbers: members of HTTPStatus take as long to compare as all the rest.
_CONTINUE, _SWITCHING_PROTOCOLS, _OK, _NO_CONTENT = 100, 101, 200, 204
_BODILESS = frozenset({_NO_CONTENT, 304})


class AnswerUnreadable(ValueError):
    """A backend sent what is not an HTTP/1.1 answer."""


class AnswerReader:
    """Feeds on a backend connection's bytes; the relay takes what accumulates.

    `interims` are complete 1xx heads, `parts` body bytes not yet taken. `head_complete`, `complete` and
    `leftover` (bytes followed the answer) only ever turn true.
    """

    __slots__ = (
        "_head_bytes",
        "_parser",
        "_reason",
        "chunked",
        "complete",
        "content_length",
        "for_head",
        "head_complete",
        "headers",
        "interims",
        "keep_alive",
        "leftover",
        "names",
        "parts",
        "status",
        "trailers",
    )

    def __init__(self, *, for_head: bool) -> None:
        self.for_head = for_head
        self._parser = httptools.HttpResponseParser(self)
        self._reason = b""
        self._head_bytes = 0
        """Since anything of the body came: heads, or what stands between and behind chunks."""
        self.status = 0
        self.headers: Headers = []
        self.names: list[bytes] = []
        self.trailers: Headers = []
        self.interims: list[bytes] = []
        self.parts: list[bytes] = []
        self.content_length: bytes | None = None
        self.chunked = False
        self.keep_alive = False
        self.head_complete = False
        self.complete = False
        self.leftover = False

    def feed(self, received: bytes) -> None:
        """AnswerUnreadable when the answer cannot be read on; what was read before stays in `parts`."""
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

    def close(self) -> None:
        """Let go of the parser, which holds on to us: garbage in a ring waits for the collector."""
        del self._parser

    def end_of_file(self) -> bool:
        """Whether a clean end of the connection is the end of this answer: nothing else delimits its body."""
        return self.head_complete and not self.complete and not self.chunked and self.content_length is None

    def take(self) -> bytes:
        """The body bytes since the last call."""
        parts = self.parts
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        return body

    def head_for_client(self, *, http10: bool, keep_alive: bool, extra: list[bytes]) -> tuple[bytes, bool]:
        """The head with its headers in order, and whether the body goes out in chunks."""
        lines = [b"HTTP/1.1 %d %b" % (self.status, self._reason)]
        dropped = self._dropped()
        bodiless = self.status in _BODILESS
        for (name, value), low in zip(self.headers, self.names, strict=True):
            if low in dropped or (low == b"content-length" and self.status == _NO_CONTENT):
                continue
            lines.append(b"%b: %b" % (name, value))
        chunked = self.content_length is None and not http10 and not bodiless
        if chunked and (self.chunked or not self.for_head):
            lines.append(b"transfer-encoding: chunked")
        lines.extend(extra)
        if not keep_alive:
            lines.append(b"connection: close")
        elif http10:
            lines.append(b"connection: keep-alive")
        lines.append(b"\r\n")
        return b"\r\n".join(lines), chunked and not self.for_head

    def ends_with_connection(self, *, http10: bool) -> bool:
        """Whether only closing tells this client where the body ends."""
        return http10 and self.content_length is None and not self.for_head and self.status not in _BODILESS

    def header(self, name: bytes) -> bytes:
        """The first header of that lower-case name, empty when there is none."""
        return self.headers[self.names.index(name)][1] if name in self.names else b""

    def last_chunk(self) -> bytes:
        """The end of a chunked body, with the backend's trailers."""
        kept = [
            b"%b: %b\r\n" % (name, value)
            for name, value in self.trailers
            if name.lower() not in _NEVER_IN_TRAILERS
        ]
        return b"0\r\n" + b"".join(kept) + b"\r\n" if kept else LAST_CHUNK

    def _dropped(self) -> frozenset[bytes]:
        names = self.names
        if b"connection" not in names:
            return HOP_BY_HOP
        listed = {
            token.strip().lower()
            for (_, value), low in zip(self.headers, names, strict=True)
            if low == b"connection"
            for token in value.split(b",")
        }
        return HOP_BY_HOP | (listed - {b"content-length", b"content-type"})

    # -- llhttp calls these ------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self.complete:
            raise AnswerUnreadable("bytes after the end of the answer")

    def on_status(self, reason: bytes) -> None:
        self._reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.head_complete:
            self.trailers.append((name, value))
        else:
            self.headers.append((name, value))
            self.names.append(name.lower())

    def on_headers_complete(self) -> None:
        parser = self._parser
        self.status = parser.get_status_code()
        if parser.get_http_version() not in ("1.1", "1.0"):
            raise AnswerUnreadable(f"an answer in HTTP/{parser.get_http_version()}")
        if self.status < _OK:
            if self.status < _CONTINUE:  # llhttp reads a body behind it
                raise AnswerUnreadable(f"status {self.status:03}")
            if self.status == _SWITCHING_PROTOCOLS:
                raise AnswerUnreadable("101 to a request that asked for no upgrade")
            return
        if b"transfer-encoding" in self.names:
            coding = b",".join(
                value.strip().lower()
                for (_, value), low in zip(self.headers, self.names, strict=True)
                if low == b"transfer-encoding"
            )
            if coding != b"chunked":
                raise AnswerUnreadable(f"unknown transfer coding {coding.decode('latin-1')!r}")
            self.chunked = True
        self.content_length = self.header(b"content-length").strip() or None
        self.keep_alive = parser.should_keep_alive()
        self.head_complete = True
        if self.for_head:
            # llhttp cannot be told that this answers HEAD: it would wait for a body and swallow the next
            # answer. The connection is closed instead.
            self.complete = True
            self.keep_alive = False

    def on_body(self, body: bytes) -> None:
        if self.complete:
            raise AnswerUnreadable("a body in an answer to HEAD")
        self.parts.append(body)

    def on_message_complete(self) -> None:
        if self.head_complete:
            self.complete = True
            return
        if self.status != _CONTINUE:  # the client that expects one has had ours
            dropped = self._dropped()
            lines = [
                b"%b: %b\r\n" % (name, value)
                for (name, value), low in zip(self.headers, self.names, strict=True)
                if low not in dropped and low != b"content-length"
            ]
            self.interims.append(b"HTTP/1.1 %d %b\r\n%b\r\n" % (self.status, self._reason, b"".join(lines)))
        self.headers, self.names, self._reason = [], [], b""
