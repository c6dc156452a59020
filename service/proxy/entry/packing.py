"""Bodies under a Content-Encoding: undone to be looked at, done again where a model is renamed. Pure.

Both hold up everybody's streams while they last: so both are bounded, and what is packed again, for a
neighbour, is packed in the fastest way there is.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Mapping
from functools import partial

import zstandard

from service.wire.content_encoding import Undecodable, decode

MOST_INFLATED = 100
"""Times its size: JSON packs to a tenth, a body that becomes a thousand times its size is a bomb."""
ALWAYS_INFLATED = 1024 * 1024

_PACKERS: Mapping[bytes, Callable[[bytes], bytes]] = {
    b"": bytes,
    b"identity": bytes,
    b"gzip": partial(gzip.compress, compresslevel=0),
    b"deflate": partial(zlib.compress, level=0),
    b"zstd": partial(zstandard.compress, level=-7),
}


def unpacked(body: bytes, codings: bytes, *, most: int) -> bytes | None:
    """The body without its codings; None when it cannot be read, or is too large for what it is."""
    if not all(_name(coding) in _PACKERS for coding in codings.split(b",")):
        return None
    limit = min(most, max(ALWAYS_INFLATED, MOST_INFLATED * len(body)))
    try:
        return decode(body, codings.decode("latin-1"), limit=limit)
    except Undecodable:
        return None


def packed(plain: bytes, codings: bytes) -> bytes:
    """The body under the codings that `unpacked` has undone."""
    for coding in codings.split(b","):
        plain = _PACKERS[_name(coding)](plain)
    return plain


def _name(coding: bytes) -> bytes:
    return coding.strip(b" \t").lower().removeprefix(b"x-")
