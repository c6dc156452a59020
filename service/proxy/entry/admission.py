"""Who is captured and to which tier a request sticks: decisions taken before any answer exists. Pure."""

from __future__ import annotations

import json
from functools import lru_cache
from hashlib import blake2b
from typing import Any
from urllib.parse import unquote_to_bytes

from service.proxy.entry.scan import MOST_ESCAPES
from service.proxy.entry.surface import Surface
from service.strata import crossed

ELIGIBLE = frozenset({b"/v1/chat/completions", b"/v1/completions", b"/v1/responses", b"/v1/messages"})
"""POSTs to these generate, and may be captured."""

_REPEATABLE = ELIGIBLE | {b"/v1/embeddings", b"/tokenize", b"/detokenize"}
_SAFE = frozenset({b"GET", b"HEAD", b"OPTIONS"})
_ONCE = frozenset({b"previous_response_id", b"conversation", b"background"})
"""Words of /v1/responses that leave something behind on the server: asking twice is not asking once."""

_ELSEWHERE = frozenset(
    {
        b"file",
        b"file_id",
        b"file_ids",
        b"file_data",
        b"file_url",
        b"input_file",
        b"url",
        b"image_url",
        b"video_url",
        b"audio_url",
        b"server_url",
        b"tools",
    }
)
_SUSPICIOUS = {
    b"/v1/chat/completions": _ELSEWHERE,
    b"/v1/completions": frozenset(),
    b"/v1/responses": _ELSEWHERE | {b"previous_response_id", b"conversation", b"prompt", b"item_reference"},
    b"/v1/messages": _ELSEWHERE | {b"container", b"mcp_servers"},
}
"""Without one of these words a request neither leans on the server's memory nor points elsewhere."""

_EXPLICIT = frozenset({b"metadata", b"previous_response_id", b"conversation"})
"""Without one of these a body names no conversation."""

MOST_READ = 16 * 1024 * 1024
"""Bytes of a body that is read to its end, between two events of everybody's streams."""
MOST_VALUES = 250_000
"""Commas, containers and keys in it; the text of the largest prompts has fewer."""

_MOST_ANCHORED = 256 * 1024


def is_eligible(method: bytes, path: bytes) -> bool:
    """Whether the request generates, so that its exchange can be compared."""
    return method == b"POST" and path in ELIGIBLE


def generates(method: bytes, path: bytes) -> bool:
    """The same for a backend, which takes a path with escapes or a slash behind it for the plain one."""
    return is_eligible(method, unquote_to_bytes(path).rstrip(b"/"))


def is_replayable(method: bytes, path: bytes) -> bool | None:
    """Whether asking again is harmless, should the first have been lost; None = it hangs on the body."""
    if method in _SAFE:
        return True
    if method != b"POST" or path not in _REPEATABLE:
        return False
    return None if path == b"/v1/responses" else True


def leaves_traces(surface: Surface) -> bool:
    """Whether a request to /v1/responses may leave something behind on the server."""
    return surface.names_any(_ONCE) or surface.may_be_disguised


def is_sampled(rate: float, salt: bytes, key: bytes) -> bool:
    """A share `rate` of all keys, the same ones wherever the salt is the same."""
    if rate <= 0.0:
        return False
    if rate >= 1.0:
        return True
    return _point(salt, b"sample", key) < int(rate * 2**64)


def tenant_of(salt: bytes, credential: bytes) -> str:
    """Keyed hash of an API key, empty without one; the key itself goes nowhere."""
    if not credential:
        return ""
    return blake2b(credential, digest_size=8, key=salt[:64], person=b"tenant").hexdigest()


def percent_of(salt: bytes, key: bytes) -> int:
    """Where a key falls in 0..99: what routes by weight stick to."""
    return _point(salt, b"route", key) * 100 >> 64


def stratum_of(size: int, surface: Surface | None) -> str:
    """Length of the request, whether it wants structure, whether it streams: `8k-32k/structured/stream`."""
    if surface is None:
        return crossed(size, structured=False, streams=False)
    return crossed(size, structured=surface.wants_structure, streams=surface.streams)


def names_conversation(surface: Surface) -> bool:
    """Whether the body may name its conversation and is worth reading for it."""
    return surface.names_any(_EXPLICIT) or surface.may_be_disguised


def is_suspicious(path: bytes, surface: Surface) -> bool:
    """Whether the request may be one that no other server can answer, and is worth reading to find out."""
    return surface.names_any(_SUSPICIOUS[path]) or surface.may_be_disguised


def read_json(plain: bytes) -> Any:
    """The body's JSON value; None when it is none, or one that would cost everybody time and us memory."""
    if len(plain) > MOST_READ:
        return None
    # A member of an object costs about three times as much as one of an array.
    if sum(map(plain.count, (b"[", b"{", b","))) + 2 * plain.count(b'":') > MOST_VALUES:
        return None
    if plain.count(b"\\") > MOST_ESCAPES:
        return None
    try:
        return json.loads(plain)
    except (ValueError, RecursionError):
        return None


def anchor_of(plain: bytes) -> bytes | None:
    """What the turns of one conversation share: everything up to the first user message.

    For routing only, where two conversations with the same beginning may share a tier. None when the
    body is too large or has no messages.
    """
    body = read_json(plain) if len(plain) <= _MOST_ANCHORED else None
    if not isinstance(body, dict):
        return None
    turns = body.get("messages", body.get("input"))
    if not isinstance(turns, list):
        return None
    beginning = []
    for turn in turns:
        beginning.append(turn)
        if isinstance(turn, dict) and turn.get("role") == "user":
            break
    return json.dumps([body.get("system"), body.get("instructions"), beginning], sort_keys=True).encode()


def _point(salt: bytes, purpose: bytes, key: bytes) -> int:
    """A uniform 64-bit number."""
    digest = _keyed(salt, purpose).copy()  # half the cost of keying anew
    digest.update(key)
    return int.from_bytes(digest.digest(), "big")


@lru_cache(16)
def _keyed(salt: bytes, purpose: bytes) -> blake2b:
    return blake2b(digest_size=8, key=salt[:64], person=purpose)
