"""Where a request body names its model. Pure.

Bodies are megabytes and mostly one long string, so nothing here makes values of what it passes over.
"""

from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import NamedTuple

MOST_ESCAPES = 1_000_000
"""Backslashes in a body that is read, or in the part of it that is passed over."""
MOST_TOKENS = 200_000
"""Strings, objects and arrays that are passed over to find a model; each costs everybody time."""

_KEY = b'"model"'
_SPELLED = b"\\u006"
"""Every letter of "model" is U+006x: without this no key is `model` in disguise."""
_VALUE = re.compile(rb'[ \t\r\n]*+:[ \t\r\n]*+("(?:[^"\\]|\\.)*+")?', re.DOTALL)
"""A colon and what follows it, as far as that is a string."""
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[][{}]', re.DOTALL)
"""A string, whole unless the body ends in it; or what opens or closes a container."""
_KEY_END = re.compile(rb"[ \t\r\n]*+:")
_OPENING, _CLOSING = b"{[", b"}]"
_BACKSLASH = ord("\\")
_LONGEST_KEY = 32
"""Bytes of `model` spelled with escapes only, and its quotes."""
_BOUNDARY = re.compile(rb';[ \t]*+boundary=(?:"([^"]{1,200})"|([^\s;,"]{1,200}))', re.IGNORECASE)
_FORM_FIELD = re.compile(
    rb'^Content-Disposition:[ \t]*+form-data;[ \t]*+name="?model"?[ \t]*+\r?$', re.IGNORECASE | re.MULTILINE
)
_PART_HEAD = 2048
"""Bytes of the headers of one part of a form."""
_MOST_PARTS = 1000
_BOM = b"\xef\xbb\xbf"


class Trouble(StrEnum):
    """Why a body cannot be routed by its model."""

    DUPLICATE = "duplicate_model"
    TOO_COMPLEX = "too_complex"
    NOT_UTF8 = "not_utf8"
    """UTF-16 or UTF-32, which some JSON readers guess: a model would be named where we see none."""


class ModelName(NamedTuple):
    """The value of the top-level `model` and where it stands, quotes included."""

    name: str
    start: int
    end: int


def find_model(body: bytes) -> ModelName | Trouble | None:
    """The top-level `model` of a JSON object; None when there is none that is a string, or no JSON object."""
    at = body.find(_KEY)
    if _SPELLED in body or (at >= 0 and body.find(_KEY, at + len(_KEY)) >= 0):
        return _walk(body)
    end = at + len(_KEY)
    if at < 1 or body[at - 1] == _BACKSLASH or _KEY_END.match(body, end) is None:
        return None
    # The only one there is counts when it stands in the outermost object: look for the nearer way out.
    depth = _climb(body, 0, at) if 2 * at < len(body) else _climb(body, end, len(body))
    if depth is None:
        return Trouble.TOO_COMPLEX
    return _value(body, end) if abs(depth) == 1 else None


def form_model(body: bytes, content_type: bytes) -> ModelName | Trouble | None:
    """The field `model` of a multipart form."""
    named = _BOUNDARY.search(content_type)
    if named is None:
        return None
    delimiter = b"\r\n--" + (named[1] or named[2])
    found: ModelName | None = None
    parts = 0
    # The first delimiter may stand at the very beginning, without the line end before it.
    end = -2 if body.startswith(delimiter[2:]) else body.find(delimiter)
    while end != -1 and not body.startswith(b"--", start := end + len(delimiter)):
        parts += 1
        if parts > _MOST_PARTS:
            return Trouble.TOO_COMPLEX
        head = body.find(b"\r\n\r\n", start, start + _PART_HEAD)
        end = body.find(delimiter, start if head < 0 else head + 4)
        if head >= 0 and end >= 0 and _FORM_FIELD.search(body[start:head]):
            if found is not None:
                return Trouble.DUPLICATE
            found = ModelName(body[head + 4 : end].decode("utf-8", "replace"), head + 4, end)
    return found if found is not None and found.name else None


def renamed(body: bytes, found: ModelName, name: str) -> bytes:
    """The body with another model name in its place, every other byte the same."""
    quoted = body[found.start : found.start + 1] == b'"'
    spelled = json.dumps(name, ensure_ascii=False).encode() if quoted else name.encode()
    return b"%b%b%b" % (body[: found.start], spelled, body[found.end :])


def _climb(body: bytes, start: int, end: int) -> int | None:
    """How many more containers open than close between two places outside of strings; None if too many."""
    if body.count(b"\\", start, end) > MOST_ESCAPES:
        return None
    depth = 0
    for tokens, token in enumerate(_TOKEN.finditer(body, start, end)):
        if tokens > MOST_TOKENS:
            return None
        first = body[token.start()]
        if first in _OPENING:
            depth += 1
        elif first in _CLOSING:
            depth -= 1
    return depth


def _walk(body: bytes) -> ModelName | Trouble | None:
    """Look at every key of the outermost object: more than one may be `model`, or spell it with escapes."""
    if body.count(b"\\") > MOST_ESCAPES:
        return Trouble.TOO_COMPLEX
    found: ModelName | None = None
    depth = keys = 0
    for tokens, token in enumerate(_TOKEN.finditer(body)):
        if tokens > MOST_TOKENS:
            return Trouble.TOO_COMPLEX
        first = body[token.start()]
        if first in _OPENING:
            depth += 1
        elif first in _CLOSING:
            depth -= 1
        elif depth == 1 and _is_model(token[0]) and _KEY_END.match(body, token.end()) is not None:
            keys += 1
            if keys > 1:
                return Trouble.DUPLICATE
            found = _value(body, token.end())
    return found


def _is_model(quoted: bytes) -> bool:
    return quoted == _KEY or (len(quoted) <= _LONGEST_KEY and b"\\" in quoted and _text(quoted) == "model")


def _value(body: bytes, at: int) -> ModelName | None:
    """The string behind the colon at `at`; None when what is there is no string."""
    value = _VALUE.match(body, at)
    name = None if value is None or value[1] is None else _text(value[1])
    return None if value is None or name is None else ModelName(name, *value.span(1))


def _text(quoted: bytes) -> str | None:
    """What a JSON string says; None when it says nothing."""
    try:
        text: str = json.loads(quoted, strict=False) if b"\\" in quoted else quoted[1:-1].decode()
    except ValueError:
        return None
    return text
