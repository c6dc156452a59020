"""The head of a backend's answer, and how it is written for a client. Pure."""

from __future__ import annotations

from service.proxy.http.heads import HOP_BY_HOP, Headers

NO_CONTENT, NOT_MODIFIED = 204, 304
BODILESS = frozenset({NO_CONTENT, NOT_MODIFIED})

_MOST_RENDERINGS = 32
"""Of one head, by client and tier; a head that serves more is not worth remembering."""


class AnswerHead:
    """A complete head of a final answer. A known one speaks for answers that differ in their length."""

    __slots__ = (
        "_renderings",
        "chunked",
        "content_encoding",
        "content_type",
        "for_head",
        "has_request_id",
        "headers",
        "keep_alive",
        "length",
        "names",
        "reason",
        "status",
    )

    def __init__(
        self,
        *,
        status: int,
        reason: bytes,
        headers: Headers,
        names: list[bytes],
        chunked: bool,
        keep_alive: bool,
        for_head: bool,
    ) -> None:
        self.status = status
        self.reason = reason
        self.headers = headers
        self.names = names
        """In lower case, in the order of `headers`."""
        self.chunked = chunked
        self.keep_alive = keep_alive
        """Whether the backend's connection may be used again."""
        self.for_head = for_head
        """It answers HEAD: whatever it says of a body, there is none."""
        self.length = self.header(b"content-length").strip() or None
        self.has_request_id = b"x-request-id" in names
        self.content_type = self.header(b"content-type").decode("latin-1")
        self.content_encoding = self._listed(b"content-encoding")
        """All codings, in the order in which they were applied."""
        self._renderings: dict[tuple[bool, bool, bytes], tuple[bytes, bytes, bool]] = {}

    def header(self, name: bytes) -> bytes:
        """The first header of that lower-case name, empty when there is none."""
        return self.headers[self.names.index(name)][1] if name in self.names else b""

    def _listed(self, name: bytes) -> str:
        """All headers of that lower-case name as one list."""
        if name not in self.names:
            return ""
        values = (value for (_, value), low in zip(self.headers, self.names, strict=True) if low == name)
        return b", ".join(values).decode("latin-1")

    def ends_with_connection(self, *, http10: bool) -> bool:
        """Whether only closing tells this client where the body ends."""
        return http10 and self.length is None and not self.for_head and self.status not in BODILESS

    def for_client(
        self, *, http10: bool, keep_alive: bool, marks: bytes, length: bytes | None, request_id: bytes
    ) -> tuple[bytes, bool]:
        """The head with its headers in order, and whether the body goes out in chunks.

        `marks` are header lines of ours, each with its line end; `length` stands for the one in the head.
        """
        key = (http10, keep_alive, marks)
        rendering = self._renderings.get(key)
        if rendering is None:
            if len(self._renderings) >= _MOST_RENDERINGS:
                self._renderings.clear()
            rendering = self._renderings[key] = self._rendering(http10, keep_alive, marks)
        before, after, chunked = rendering
        if length is None or not after:
            length = b""
        if self.has_request_id:
            return b"%b%b%b\r\n" % (before, length, after), chunked
        return b"%b%b%bx-request-id: %b\r\n\r\n" % (before, length, after, request_id), chunked

    def _rendering(self, http10: bool, keep_alive: bool, marks: bytes) -> tuple[bytes, bytes, bool]:
        """What stands before the length and what behind it, but for the end; and whether in chunks."""
        before, lines = b"", [b"HTTP/1.1 %d %b\r\n" % (self.status, self.reason)]
        dropped = listed_by_connection(self.headers, self.names)
        for (name, value), low in zip(self.headers, self.names, strict=True):
            if low in dropped or (low == b"content-length" and self.status == NO_CONTENT):
                continue
            if low == b"content-length":
                before, lines = b"%b%b: " % (b"".join(lines), name), [b"\r\n"]
            else:
                lines.append(b"%b: %b\r\n" % (name, value))
        chunked = self.length is None and not http10 and self.status not in BODILESS
        if chunked and (self.chunked or not self.for_head):
            lines.append(b"transfer-encoding: chunked\r\n")
        if not keep_alive:
            lines.append(b"connection: close\r\n")
        elif http10:
            lines.append(b"connection: keep-alive\r\n")
        rest = b"".join(lines) + marks
        chunked = chunked and not self.for_head
        return (before, rest, chunked) if before else (rest, b"", chunked)


def listed_by_connection(headers: Headers, names: list[bytes]) -> frozenset[bytes]:
    """Names of headers that end here: hop by hop, or listed by `Connection`."""
    if b"connection" not in names:
        return HOP_BY_HOP
    listed = {
        token.strip().lower()
        for (_, value), low in zip(headers, names, strict=True)
        if low == b"connection"
        for token in value.split(b",")
    }
    return HOP_BY_HOP | (listed - {b"content-length", b"content-type"})
