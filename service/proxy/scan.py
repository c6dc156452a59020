"""What the door has to know of a request body: its top-level `model`, and what the stratum says.

Bodies are megabytes and mostly one long string, so nothing here parses more of them than it must. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from enum import StrEnum
from json.decoder import scanstring  # type: ignore[attr-defined]  # typeshed leaves it out
from typing import NamedTuple

MOST_CONTAINERS = 200_000
"""Objects and arrays in a body that is read to its end; each costs the proxy memory."""

_KEY = b'"model"'
_SPELLED = b"\\u006"
"""Every letter of "model" is U+006x: without this no key is `model` in disguise."""
_NAMED = re.compile(rb'"model"[ \t\r\n]*+:[ \t\r\n]*+("(?:[^"\\\x00-\x1f]|\\.)*+")')
_BOUNDARY = re.compile(rb';[ \t]*+boundary=(?:"([^"]{1,200})"|([^\s;,"]{1,200}))', re.IGNORECASE)
_FORM_FIELD = re.compile(
    rb'^Content-Disposition:[ \t]*+form-data;[ \t]*+name="?model"?[ \t]*+\r?$', re.IGNORECASE | re.MULTILINE
)
_PART_HEAD = 2048
"""Bytes of the headers of one part of a form."""
_MOST_PARTS = 1000
_BOM = b"\xef\xbb\xbf"
_TRUE = re.compile(rb"[ \t\r\n]*+:[ \t\r\n]*+true")
_SPACE = " \t\r\n"
# Numbers stay text: a million digits are nobody's int.
_SCANNER = json.JSONDecoder(strict=False, parse_int=str, parse_float=str).scan_once  # type: ignore[attr-defined]


class Trouble(StrEnum):
    """Why a body cannot be routed by its model."""

    DUPLICATE = "duplicate_model"
    TOO_COMPLEX = "too_complex"


class ModelName(NamedTuple):
    """The value of the top-level `model` and where it stands, quotes included."""

    name: str
    start: int
    end: int


def find_model(body: bytes) -> ModelName | Trouble | None:
    """The top-level `model` of a JSON object; None when there is none that is a string, or no JSON object."""
    at = body.find(_KEY)
    if _SPELLED not in body:
        if at < 0:
            return None
        if body.find(_KEY, at + len(_KEY)) >= 0:
            return _first_model(body, only=False)
        named = _NAMED.match(body, at)
        if named is None:
            return None
        if body[:at].removeprefix(_BOM).strip() == b"{":
            return _model(body, named.start(1), named.end(1))
        return _first_model(body, only=True)
    return _first_model(body, only=False)


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


def streams(body: bytes) -> bool:
    """Whether the request asks for a stream; read off the surface, since only a label hangs on it."""
    at = body.find(b'"stream"')
    return at >= 0 and _TRUE.match(body, at + 8) is not None


def wants_structure(body: bytes) -> bool:
    """Whether the request asks for structured output or offers tools; read off the surface."""
    return (
        b'"tools"' in body
        or b'format"' in body  # of `response_format`, and of /v1/responses
        or b'"structured_outputs"' in body
        or b'"guided_' in body
    )


def _first_model(body: bytes, *, only: bool) -> ModelName | Trouble | None:
    """Walk the top-level keys; `only` when the caller knows that no second `model` follows."""
    if body.count(b"{") + body.count(b"[") > MOST_CONTAINERS:
        return Trouble.TOO_COMPLEX
    found: ModelName | None = None
    keys = 0
    try:
        for key, start, end in _top_level(body):
            if key != "model":
                continue
            keys += 1
            if keys > 1:
                return Trouble.DUPLICATE
            found = _model(body, start, end)
            if only:
                return found
    except RecursionError:
        return Trouble.TOO_COMPLEX
    except (StopIteration, ValueError, IndexError):
        pass  # Not JSON: the backend says so better than we can.
    return found


def _top_level(body: bytes) -> Iterator[tuple[str, int, int]]:
    """Key, and start and end of its value, of each member of the outermost object."""
    text = body.decode("latin-1")  # one character a byte, so positions in text are positions in the body
    at = _skip(text, len(_BOM) if body.startswith(_BOM) else 0)
    if text[at] != "{":
        return
    at = _skip(text, at + 1)
    while text[at] == '"':
        key, at = scanstring(text, at + 1, False)
        at = _skip(text, at)
        if text[at] != ":":
            return
        start = _skip(text, at + 1)
        _, at = _value(text, start)
        yield key, start, at
        at = _skip(text, at)
        if text[at] != ",":
            return
        at = _skip(text, at + 1)


def _value(text: str, at: int) -> tuple[object, int]:
    try:
        value: tuple[object, int] = _SCANNER(text, at)
    except StopIteration as error:  # inside a generator it would turn into RuntimeError
        raise ValueError("not a JSON value") from error
    return value


def _skip(text: str, at: int) -> int:
    while text[at] in _SPACE:
        at += 1
    return at


def _model(body: bytes, start: int, end: int) -> ModelName | None:
    raw = body[start:end]
    try:
        name = raw[1:-1].decode() if raw[:1] == b'"' and b"\\" not in raw else json.loads(raw)
    except ValueError:
        return None
    return ModelName(name, start, end) if isinstance(name, str) else None
