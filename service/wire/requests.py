"""A captured request body, read."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from evaluators.exchange import Endpoint, Json, Request
from evaluators.strict_json import NotJson, TooMuch, parse
from service.wire import chat, completions, messages, responses
from service.wire.content_encoding import MAX_DECODED, Undecodable, decode
from service.wire.shapes import NotARequest, WrongShape, kind

_READERS: Mapping[Endpoint, Callable[[Mapping[str, Json]], Request]] = {
    Endpoint.CHAT_COMPLETIONS: chat.read_request,
    Endpoint.COMPLETIONS: completions.read_request,
    Endpoint.RESPONSES: responses.read_request,
    Endpoint.MESSAGES: messages.read_request,
}


def endpoint_of(path: str) -> Endpoint | None:
    """The generating endpoint behind a request target (query and trailing slash set aside), or None."""
    bare = path.partition("?")[0].rstrip("/")
    return Endpoint(bare) if bare in set(Endpoint) else None


def parse_request(path: str, body: bytes, *, content_encoding: str = "") -> Request:
    """The request that a client sent to `path`. Raises `NotARequest` with the reason."""
    endpoint = endpoint_of(path)
    if endpoint is None:
        raise NotARequest(f"{path} generates nothing")
    try:
        decoded = decode(body, content_encoding)
        value = parse(decoded, max_chars=MAX_DECODED).value
    except (Undecodable, NotJson, TooMuch) as error:
        raise NotARequest(f"body: {error}") from None
    if not isinstance(value, dict):
        raise NotARequest(f"body is {kind(value)}, not an object")
    return read_body(endpoint, value)


def read_body(endpoint: Endpoint, body: Mapping[str, Json]) -> Request:
    """The request in a parsed body. Raises `NotARequest` with the reason."""
    try:
        request = _READERS[endpoint](body)
    except WrongShape as error:
        raise NotARequest(str(error)) from None
    if not request.model:
        raise NotARequest("model is missing")
    return request
