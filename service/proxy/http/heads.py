"""Request heads: what a received one means, whether it may pass, and how it is written for a backend. Pure.

llhttp has already refused both or duplicate lengths, obs-fold, bare LF and bad tokens when a head arrives
here; `judge` refuses what it leaves to us.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from service.proxy.http.administrative import is_administrative
from service.proxy.http.errors import Refusal, malformed, not_implemented

if TYPE_CHECKING:
    from service.proxy.entry.door import Entry

Headers = list[tuple[bytes, bytes]]

METHODS = frozenset({b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS"})
"""llhttp also knows CONNECT, TRACE, WebDAV, RTSP and ICE."""

HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
_OURS = frozenset({b"host", b"content-length"})
"""Written by us, whatever `Connection` lists."""
_DROPPED = HOP_BY_HOP | {b"expect"}
_WATCHED = frozenset(
    {
        b"host",
        b"connection",
        b"transfer-encoding",
        b"expect",
        b"content-type",
        b"content-encoding",
        b"authorization",
        b"x-api-key",
        b"x-request-id",
        b"x-tiergate-shadow",
        b"x-tiergate-replay",
        b"x-tiergate-expects",
    }
)
EXPECTED = frozenset({b"json", b"jsonl", b"none"})
"""Values of `x-tiergate-expects`; any other tells nothing."""
_PLAIN_CONNECTION = frozenset({b"close", b"keep-alive", b""})
_HOST = re.compile(rb"[A-Za-z0-9._~!$&'()*+;=%:\[\]-]*")
_ABSOLUTE = re.compile(rb"https?://([^/?#]*)([^#]*)", re.IGNORECASE)
_DOTS = (b".", b"..")
_REQUEST_ID = re.compile(rb"[!-~]{1,128}")
"""Taken over from a client; any other gives way to one of ours, so that it can be logged and searched for."""
_MOST_PATHS = 1000
_ANSWERED_HERE = b"/v1/models/"
"""What stands behind it is a model's name, whatever words it has."""


OwnHeaders = tuple[tuple[bytes, bytes], ...]
Template = tuple[bytes, bytes, bytes]
"""What stands before the length, the name of the length as the client spelled it, what stands behind it."""


@dataclass(slots=True, kw_only=True)
class Head:
    """A request head that may pass. Not frozen: a frozen one costs thrice as much, per request."""

    method: bytes
    target: bytes
    """Origin form: path and query, as received."""
    path: bytes
    http10: bool
    headers: Headers
    names: list[bytes]
    """Header names in lower case, in order."""
    dropped: frozenset[bytes]
    """Names that end here: hop by hop, or listed by `Connection`."""
    chunked: bool
    expects_continue: bool
    content_type: bytes
    content_encoding: bytes
    credential: bytes
    """`Authorization` or `x-api-key`; for the tenant's keyed hash only."""
    request_id: bytes | None
    opted_out: bool
    replay: bool
    conversation: bytes | None
    expects: bytes = b""
    """`x-tiergate-expects` in lower case: what the answer is to be, for who judges it."""
    templates: dict[tuple[bytes, bytes | None, OwnHeaders], Template] = field(default_factory=dict)
    """What `request_head` has made of it, by backend: a client's next request mostly has the same head."""
    entry: Entry | None = None
    """What the door has made of it."""


def judge(
    *,
    method: bytes,
    target: bytes,
    version: str,
    headers: Headers,
    conversation_header: bytes = b"x-conversation-id",
) -> Head | Refusal:
    """The head, or why it is refused."""
    if version not in ("1.1", "1.0"):
        return Refusal(
            status=HTTPStatus.HTTP_VERSION_NOT_SUPPORTED,
            code="http_version",
            message=f"HTTP/{version} is not spoken here; use HTTP/1.1.",
        )
    if method not in METHODS:
        return not_implemented(f"Method {method.decode('latin-1')} is not supported.")
    seen: dict[bytes, list[bytes]] = {}
    names = []
    for name, value in headers:
        low = name.lower()
        names.append(low)
        if low in _WATCHED or low == conversation_header:
            if low in seen:
                seen[low].append(value)
            else:
                seen[low] = [value]
    http10 = version == "1.0"
    hosts = seen.get(b"host", ())
    if len(hosts) != 1 and (hosts or not http10):
        return malformed("no Host header" if not hosts else "more than one Host header")
    if hosts and _HOST.fullmatch(hosts[0].strip()) is None:
        return malformed("invalid Host header")
    chunked = False
    if b"transfer-encoding" in seen:
        if http10:
            return malformed("Transfer-Encoding under HTTP/1.0")
        codings = b",".join(seen[b"transfer-encoding"]).lower().split(b",")
        if codings[-1].strip() != b"chunked":
            return malformed("Transfer-Encoding does not end in chunked")
        if len(codings) > 1:
            return not_implemented("The only transfer coding supported is chunked.")
        chunked = True
    expects_continue = False
    if b"expect" in seen and not http10:
        if [value.strip().lower() for value in seen[b"expect"]] != [b"100-continue"]:
            return Refusal(
                status=HTTPStatus.EXPECTATION_FAILED,
                code="expectation",
                message="The only expectation supported is 100-continue.",
            )
        expects_continue = True
    dropped = _DROPPED
    for value in seen.get(b"connection", ()):
        if value.lower() not in _PLAIN_CONNECTION:
            listed = {token.strip().lower() for token in value.split(b",")}
            dropped = dropped | (listed - _OURS)
    origin = _origin_form(method, target)
    if origin is None:
        return malformed("invalid request target")
    credentials = seen.get(b"authorization") or seen.get(b"x-api-key")
    request_id = _request_id(seen.get(b"x-request-id", ()))
    if request_id is None:
        dropped = dropped | {b"x-request-id"}
    return Head(
        method=method,
        target=origin,
        path=origin.partition(b"?")[0],
        http10=http10,
        headers=headers,
        names=names,
        dropped=dropped,
        chunked=chunked,
        expects_continue=expects_continue,
        content_type=_first(seen, b"content-type"),
        content_encoding=b",".join(seen[b"content-encoding"]).strip().lower()
        if b"content-encoding" in seen
        else b"",
        credential=credentials[0] if credentials else b"",
        request_id=request_id,
        opted_out=any(
            word.strip().lower() == b"off"  # said once is enough
            for value in seen.get(b"x-tiergate-shadow", ())
            for word in value.split(b",")
        ),
        replay=b"x-tiergate-replay" in seen,
        conversation=_first(seen, conversation_header).strip() or None,
        expects=_first(seen, b"x-tiergate-expects").strip().lower(),
    )


def request_head(
    head: Head,
    *,
    authority: bytes,
    api_key: bytes | None,
    length: int,
    request_id: bytes,
    ours: OwnHeaders = (),
) -> bytes:
    """The head as a backend gets it: as it would have come to it directly, so with the backend's own Host.

    `ours` are the headers that the configuration gives this backend, instead of the client's of those names.
    """
    key = (authority, api_key, ours)
    template = head.templates.get(key)
    if template is None:
        template = head.templates[key] = _template(head, authority, api_key, ours)
    before, length_name, after = template
    if length_name or length or head.chunked:
        before = b"%b%b: %d\r\n%b" % (before, length_name or b"content-length", length, after)
    if b"x-request-id" in head.dropped:
        return b"%bx-request-id: %b\r\n\r\n" % (before, request_id)
    return before + b"\r\n"


def _template(head: Head, authority: bytes, api_key: bytes | None, ours: OwnHeaders) -> Template:
    replaced = {name.lower() for name, _ in ours}
    is_known = api_key is not None or b"authorization" in replaced
    lines = [b"%b %b HTTP/1.1\r\n" % (head.method, head.target)]
    if b"host" not in head.names:
        lines.append(b"host: %b\r\n" % authority)
    before, length_name = b"", b""
    has_key = False
    for (name, value), low in zip(head.headers, head.names, strict=True):
        if low in head.dropped or low in replaced:
            continue
        if low == b"host":
            value = authority
        elif low == b"content-length":
            before, length_name, lines = b"".join(lines), name, []
            continue
        elif low == b"authorization" and api_key is not None:
            if has_key:
                continue
            value, has_key = b"Bearer " + api_key, True
        elif low == b"x-api-key" and is_known:
            continue
        lines.append(b"%b: %b\r\n" % (name, value))
    if not has_key and api_key is not None:
        lines.append(b"authorization: Bearer %b\r\n" % api_key)
    lines += [b"%b: %b\r\n" % each for each in ours]
    rest = b"".join(lines)
    return (before, length_name, rest) if length_name else (rest, b"", b"")


def announced_length(head: Head, headers: Headers) -> int:
    """The length in `headers`, which differ from the head's own in that at most; 0 when there is none.

    llhttp has checked the digits.
    """
    if b"content-length" not in head.names:
        return 0
    return int(headers[head.names.index(b"content-length")][1])


def like_the_last(last: Head, method: bytes, target: bytes, headers: Headers) -> Head | None:
    """The head before, when this one says the same and differs in the length of the body at most."""
    before = last.headers
    if last.target != target or last.method != method or len(headers) != len(before):
        return None
    if b"content-length" not in last.names:
        return last if headers == before else None
    at = last.names.index(b"content-length")
    if (
        headers[at][0] != before[at][0]
        or headers[:at] != before[:at]
        or headers[at + 1 :] != before[at + 1 :]
    ):
        return None
    return last


def offers_only_http2(head: Head) -> bool:
    """Some clients offer it with their first request, and take HTTP/1.1 for an answer (RFC 9110, 7.8)."""
    offers = (value for (_, value), low in zip(head.headers, head.names, strict=True) if low == b"upgrade")
    return all(offer.strip().lower() == b"h2c" for offer in offers)


class ForwardPaths:
    """Which paths pass: exact ones, and what is below those with a trailing slash but administrative."""

    __slots__ = ("_below", "_exact", "_judged")

    def __init__(self, paths: Sequence[str]) -> None:
        self._exact = frozenset(path.encode() for path in paths if not path.endswith("/"))
        self._below = tuple(path.encode() for path in paths if path.endswith("/"))
        self._judged: dict[bytes, bool] = {}

    def __contains__(self, path: bytes) -> bool:
        """A path with dot segments never passes, however encoded: what it means is up to the backend."""
        passes = self._judged.get(path)
        if passes is None:
            if len(self._judged) >= _MOST_PATHS:  # clients make them up
                self._judged.clear()
            passes = self._judged[path] = self._passes(path)
        return passes

    def _passes(self, path: bytes) -> bool:
        if path in self._exact:
            return True
        if not any(
            path.startswith(below)
            and (path.startswith(_ANSWERED_HERE) or not is_administrative(path[len(below) :]))
            for below in self._below
        ):
            return False
        if b"/." not in path and b"%" not in path and b"\\" not in path and b";" not in path:
            return True
        meant = unquote_to_bytes(path).replace(b"\\", b"/")
        return b"\0" not in meant and not any(
            segment.partition(b";")[0] in _DOTS for segment in meant.split(b"/")
        )


def _origin_form(method: bytes, target: bytes) -> bytes | None:
    if b"#" in target:
        return None
    if target.startswith(b"/"):
        return target
    if target == b"*" and method == b"OPTIONS":
        return target
    absolute = _ABSOLUTE.fullmatch(target)
    if absolute is None or _HOST.fullmatch(absolute[1]) is None or not absolute[1]:
        return None
    rest = absolute[2]
    return rest if rest.startswith(b"/") else b"/" + rest


def _request_id(given: Sequence[bytes]) -> bytes | None:
    """The client's own, if there is just one and it is fit to be handed around."""
    value = given[0].strip() if len(given) == 1 else b""
    return value if _REQUEST_ID.fullmatch(value) else None


def _first(seen: dict[bytes, list[bytes]], name: bytes) -> bytes:
    return seen[name][0] if name in seen else b""
