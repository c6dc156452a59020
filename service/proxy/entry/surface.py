"""What a request body says at a glance: its model, and which words stand in it. Pure.

A body is mostly one long string. Cut at its quotes it is a list of few parts, and a key or a short value is
one of them, whole; that costs one pass where looking for each word would cost one each.
"""

from __future__ import annotations

import re

from service.proxy.entry.scan import ModelName, Trouble, find_model
from service.wire.formats import GUIDES

_MOST_PARTS = 4000
"""Between quotes, at once: so that memory stays bounded."""
_MOST_IN_ALL = 500_000
_WINDOW = 64 * 1024
_LONGEST_WORD = 32
_ESCAPE = b"\\u00"
"""A key may be spelled with it, and no pure ASCII key without."""
_LEADING = re.compile(rb'[ \t\r\n]*+\{[ \t\r\n]*+"model"[ \t\r\n]*+:[ \t\r\n]*+("[^"\\\x00-\x1f]*+")')
_TRUE = re.compile(rb'"stream"[ \t\r\n]*+:[ \t\r\n]*+true')
_FORMATS = ("tools", "functions", "response_format", "output_format", "format")
"""The last within `text` of /v1/responses and `output_config` of /v1/messages."""
_STRUCTURED = frozenset(key.encode() for key in (*_FORMATS, *GUIDES))


class Surface:
    """One body that may be JSON. Nothing here raises, whatever the body is."""

    __slots__ = ("_body", "_words", "may_be_disguised", "model")

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.may_be_disguised = b"\\" in body and _ESCAPE in body
        """Words may stand here that `names` does not see, since their letters are escaped."""
        self.model: ModelName | Trouble | None = None
        """The top-level `model`."""
        parts = body.split(b'"', _MOST_PARTS)
        if len(parts) <= _MOST_PARTS:
            self._words = {part for part in parts if len(part) <= _LONGEST_WORD}
        else:
            self._words, is_all = _words_of_many(body)
            self.may_be_disguised |= not is_all
        if b"\0" in body[:4]:
            self.model = Trouble.NOT_UTF8
        elif len(parts) > _MOST_PARTS or self.may_be_disguised:
            self.model = find_model(body)
        elif b"model" in self._words:
            self.model = _leading_model(body, parts) or find_model(body)

    def names(self, word: bytes) -> bool:
        """Whether the word stands between quotes, as a key or as a whole value of at most 32 bytes."""
        return word in self._words

    def names_any(self, words: frozenset[bytes]) -> bool:
        """Whether one of these words does."""
        return not words.isdisjoint(self._words)

    @property
    def streams(self) -> bool:
        """Whether the request asks for a stream."""
        return self.names(b"stream") and _TRUE.search(self._body) is not None

    @property
    def wants_structure(self) -> bool:
        """Whether the request asks for structured output or offers tools."""
        return self.names_any(_STRUCTURED)


def _words_of_many(body: bytes) -> tuple[set[bytes], bool]:
    """The short parts of a body with very many quotes, window by window; and whether these are all."""
    words: set[bytes] = set()
    at = seen = 0
    while at < len(body) and seen < _MOST_IN_ALL:
        parts = body[at : at + _WINDOW].split(b'"')
        # The last part may go on: it comes again with the next window, unless it is as long as one.
        at += _WINDOW - (len(parts[-1]) if len(parts) > 1 and at + _WINDOW < len(body) else 0)
        seen += len(parts)
        words.update(part for part in parts if len(part) <= _LONGEST_WORD)
    return words, at >= len(body)


def _leading_model(body: bytes, parts: list[bytes]) -> ModelName | None:
    """The model when it is the first member and no other key can be one: the common case."""
    leading = _LEADING.match(body)
    if leading is None or parts.count(b"model") != 1:
        return None
    start, end = leading.span(1)
    try:
        return ModelName(body[start + 1 : end - 1].decode(), start, end)
    except UnicodeDecodeError:
        return None
