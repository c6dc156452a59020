"""OpenAI's batch files: one request a line, with `custom_id`, `method`, `url` and `body`; in and out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from evaluators.exchange import Endpoint, Json, Request
from evaluators.strict_json import NotJson, TooMuch, parse
from service.traces import NOT_UTF8, BadLine
from service.wire.content_encoding import MAX_DECODED
from service.wire.conversation import has_remote_media, is_stateful
from service.wire.requests import endpoint_of, read_body
from service.wire.shapes import NotARequest, kind

MOST_ID = 512
"""Characters of a `custom_id`."""
_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""An escape of half a character; two halves in order are one."""
_HUGE = re.compile(r"[0-9][eE]\+?0*[0-9]{3}|[0-9]{308}")
"""What may be a number beyond the range of a double."""
_MOST_BITS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLine:
    """One request of a batch file."""

    line: int
    """From 1."""
    custom_id: str
    request: Request


def read_batch(lines: Iterable[str]) -> Iterator[BatchLine | BadLine]:
    """Every line that is not blank, as a request or with the reason why it is none.

    A request that leans on what only its own server holds, or on media elsewhere, is none: it could not be
    repeated on another tier.
    """
    taken: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            name, request = _read(line)
            if name in taken:
                raise NotARequest(f"custom_id {name!r} is that of line {taken[name]} as well")
        except NotARequest as error:
            yield BadLine(line=number, reason=str(error))
            continue
        taken[name] = number
        yield BatchLine(line=number, custom_id=name, request=request)


def _read(line: str) -> tuple[str, Request]:
    if NOT_UTF8.search(line):
        raise NotARequest("this is not UTF-8")
    try:
        value = parse(line, max_chars=MAX_DECODED).value
    except (NotJson, TooMuch) as error:
        raise NotARequest(f"this is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise NotARequest(f"this is {kind(value)}, not an object")
    if _HALF.search(line) and _holds(value, _is_broken):
        raise NotARequest("a text holds half a character (a lone surrogate), which no engine can read")
    if _HUGE.search(line) and _holds(value, _is_huge):
        raise NotARequest("a number is beyond 1.8e308, which no engine can read")
    name = value.get("custom_id")
    if not isinstance(name, str) or not 0 < len(name) <= MOST_ID or not name.isprintable():
        raise NotARequest(f"custom_id must be a string of 1 to {MOST_ID} printable characters")
    method = value.get("method")
    if method != "POST":
        raise NotARequest(f"method must be POST, got {method!r}")
    return name, _request(value.get("url"), value.get("body"))


def _request(url: Json, body: Json) -> Request:
    endpoint = endpoint_of(url) if isinstance(url, str) else None
    if endpoint is None:
        raise NotARequest(f"url must be one of {', '.join(Endpoint)}, got {url!r}")
    if not isinstance(body, dict):
        raise NotARequest(f"body is {kind(body)}, not an object")
    for name in _LIMITS:
        told = body.get(name)
        if told is not None and (type(told) not in (int, float) or told < 0 or told % 1):
            raise NotARequest(f"{name} must be a whole number of at least 0, got {told!r}")
    request = read_body(endpoint, body)
    if is_stateful(request):
        raise NotARequest("it leans on what only its own server holds")
    if has_remote_media(request):
        raise NotARequest("it refers to media elsewhere")
    return request


def _holds(value: Json, wrong: Callable[[Json], bool]) -> bool:
    """Whether there is something wrong in a value, names of members included; as deep as JSON is read."""
    if isinstance(value, dict):
        return any(wrong(key) or _holds(each, wrong) for key, each in value.items())
    if isinstance(value, list):
        return any(_holds(each, wrong) for each in value)
    return wrong(value)


def _is_broken(value: Json) -> bool:
    return isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value)


def _is_huge(value: Json) -> bool:
    return isinstance(value, int) and value.bit_length() > _MOST_BITS


def write_batch_line(*, custom_id: str, url: str, body: Mapping[str, Json]) -> str:
    """One line, without its end; ASCII, so that lone surrogates survive."""
    line = {"custom_id": custom_id, "method": "POST", "url": url, "body": body}
    return json.dumps(line, separators=(",", ":"), allow_nan=False)
