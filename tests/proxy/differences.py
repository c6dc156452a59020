"""Where our parsers and h11 do not agree on what to take: every known class of difference, and why it stands.

Stricter than h11 is safe: the peer is told, and nothing is passed on. Laxer must be harmless: what passes is
written anew from its meaning. `test_fuzz_requests` and `test_fuzz_answers` fail on a difference that is not
here, and on an entry that no file of the corpus shows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stricter:
    """h11 takes it, we do not; `says` is a pattern of what we answer."""

    says: str
    because: str

    def explains(self, complaint: str) -> bool:
        return re.search(self.says, complaint) is not None


@dataclass(frozen=True, slots=True)
class Laxer:
    """We take it, h11 does not; `says` is a pattern of what h11 answers, `bytes` of what came."""

    says: str
    bytes: bytes
    because: str

    def explains(self, complaint: str, received: bytes) -> bool:
        return re.search(self.says, complaint) is not None and re.search(self.bytes, received) is not None


_BARE_LF = (
    Stricter("Missing expected CR", "a bare LF ends a line for some parsers and is a character for others"),
    Stricter("Invalid header field char", "a bare LF where a header or the end of the head should begin"),
    Stricter(
        "Invalid header value char", "a bare LF behind an empty value, or a control character in a value"
    ),
    Stricter("Unexpected whitespace after header value", "obs-fold: RFC 9112, 5.2 lets a server refuse it"),
)
_LENGTHS = (
    Stricter("Duplicate Content-Length", "two lengths are refused even when they agree"),
    Stricter("Invalid character in Content-Length", "a list of lengths, even of equal ones"),
    Stricter("can't be present with", "both Content-Length and Transfer-Encoding: the classic of smuggling"),
)
_CHUNKS = (
    Stricter("Invalid character in chunk size", "white space around a chunk size is bad white space of old"),
    Stricter("Invalid character in chunk extensions", "h11 takes any bytes for an extension"),
    Stricter("Expected LF after chunk size", "a bare CR in a chunk extension"),
)

REQUESTS_STRICTER = (
    *_BARE_LF,
    *_LENGTHS,
    *_CHUNKS,
    Stricter("Expected CRLF after version", "a bare LF at the end of the request line"),
    Stricter("Expected space after method|Invalid method", "h11 takes any token for a method; we take seven"),
    Stricter(
        "is not supported|is not spoken here", "methods, versions and upgrades that are not ours to forward"
    ),
    Stricter("Connection Preface|Pause on PRI", "h11 takes `PRI` for a method like another"),
    Stricter("Invalid HTTP version", "h11 takes HTTP/1.2 and above for HTTP/1.1"),
    Stricter("[Uu]nexpected .*char in url|Invalid char(acters)? in url", "h11 takes any printable target"),
    Stricter("invalid request target", "a target that is neither a path nor http://HOST/ nor OPTIONS *"),
    Stricter(
        "invalid Host header", "h11 takes any value; a path, a user or a list in it is somebody's trick"
    ),
    Stricter("Transfer-Encoding under HTTP/1.0", "RFC 9112, 6.1: its framing is faulty"),
    Stricter(
        "Invalid `Transfer-Encoding`|invalid `Transfer-Encoding`", "`chunked` and a tab, or one in a trailer"
    ),
    Stricter("The only expectation supported", "417 is what RFC 9110, 10.1.1 has for it"),
)
_ZEROS = Laxer(
    "bad Content-Length", rb":[ \t]*0+[0-9]{20}", "h11 takes 20 digits of a length, leading zeros and all"
)
REQUESTS_LAXER = (
    _ZEROS,
    Laxer(
        "illegal request line", rb"[A-Z/?*a-z0-9 ]  ", "several spaces in the request line: one is written"
    ),
    Laxer(
        "illegal request line|no request line received",
        rb"(?:\A|[\r\n])[\r\n]+[A-Z]",
        "empty lines, or a line's end in halves, before a request (RFC 9112, 2.2): they go no further",
    ),
    Laxer("closed", rb"HTTP/1\.0", "h11 knows no keep-alive of HTTP/1.0"),
    Laxer("illegal request line", rb"(?:RTSP|ICE)/1\.0", "llhttp reads it as HTTP/1.0, and so it is written"),
)

ANSWERS_STRICTER = (
    *_BARE_LF,
    *_LENGTHS,
    *_CHUNKS,
    Stricter("Invalid HTTP version", "h11 takes any digits for a version"),
    Stricter("an answer in HTTP/", "the same, of the versions that llhttp knows"),
    Stricter("Invalid response status", "a bare LF right behind the status"),
    Stricter("control characters in the reason", "h11 refuses all of them but DEL"),
    Stricter(
        "with a body", "an interim answer with a length or a transfer coding (RFC 9110, 8.6; 9112, 6.1)"
    ),
    Stricter("Content-Length overflow", "h11 counts without a limit, and waits for none of it after HEAD"),
    Stricter(
        "Data after `Connection: close`", "an interim answer of HTTP/1.0 ends the connection for llhttp"
    ),
)
ANSWERS_LAXER = (
    _ZEROS,
    Laxer(
        "no response line received|illegal status line",
        rb"(?:\A|\n)[\r\n]+(?:HTTP|RTSP|ICE)/",
        "empty lines before the status line: they go no further",
    ),
    Laxer(
        "Only Transfer-Encoding: chunked|Transfer-Encoding headers",
        rb"\r\n0+[^\r\n]*\r\n(?:[^\r\n]+\r\n)*(?i:transfer-encoding):",
        "a transfer coding in the trailers: it frames nothing there and is dropped",
    ),
    Laxer(
        "illegal status line", rb"(?:RTSP|ICE)/1\.0", "read as HTTP/1.0, so that the connection ends with it"
    ),
)
