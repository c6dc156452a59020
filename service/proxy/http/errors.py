"""Answers of the proxy's own making, in the shape that OpenAI clients expect."""

from __future__ import annotations

import json
from dataclasses import dataclass
from http import HTTPStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a request is not answered by a backend; `code` is what `x-tiergate-error` says."""

    status: HTTPStatus
    code: str
    message: str
    kind: str = "invalid_request_error"
    param: str | None = None
    retry_after: int | None = None
    """Seconds."""
    model: str | None = None
    """Whose limits turn it away, if a model's do."""


def malformed(reason: str) -> Refusal:
    """A request that is not HTTP/1.1 as RFC 9112 has it: where it ends is anybody's guess."""
    return Refusal(
        status=HTTPStatus.BAD_REQUEST, code="bad_request", message=f"Malformed HTTP request: {reason}."
    )


def too_large(limit: int) -> Refusal:
    """A request body above the limit."""
    return Refusal(
        status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        code="request_too_large",
        message=f"The request body has more than {limit} bytes.",
    )


def head_too_large(limit: int) -> Refusal:
    """Request line and headers above the limit, or chunk extensions and trailers."""
    return Refusal(
        status=HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
        code="headers_too_large",
        message=f"The request line and headers, or what frames the body, have more than {limit} bytes.",
    )


def not_implemented(message: str) -> Refusal:
    """HTTP that is not spoken here."""
    return Refusal(status=HTTPStatus.NOT_IMPLEMENTED, code="not_implemented", message=message)


def request_timeout() -> Refusal:
    """The client did not finish its request."""
    return Refusal(
        status=HTTPStatus.REQUEST_TIMEOUT,
        code="request_timeout",
        message="The request did not arrive in time.",
    )


def unavailable(code: str, message: str, *, retry_after: int = 1) -> Refusal:
    """No backend can take it now."""
    return Refusal(
        status=HTTPStatus.SERVICE_UNAVAILABLE,
        code=code,
        message=message,
        kind="server_error",
        retry_after=retry_after,
    )


def internal_error() -> Refusal:
    """A defect of ours, which the log has in full."""
    return Refusal(
        status=HTTPStatus.INTERNAL_SERVER_ERROR,
        code="internal_error",
        message="The proxy failed; its log says how.",
        kind="server_error",
    )


def too_many_requests(message: str) -> Refusal:
    """More than a limit allows at once; clients of OpenAI and of Anthropic know it as a rate limit."""
    return Refusal(
        status=HTTPStatus.TOO_MANY_REQUESTS,
        code="too_many_requests",
        message=message,
        kind="rate_limit_error",
        retry_after=1,
    )


def bad_gateway(code: str, message: str) -> Refusal:
    """A backend was there and gave no usable answer."""
    return Refusal(status=HTTPStatus.BAD_GATEWAY, code=code, message=message, kind="server_error")


def gateway_timeout(code: str, message: str) -> Refusal:
    """A backend did not answer in time."""
    return Refusal(status=HTTPStatus.GATEWAY_TIMEOUT, code=code, message=message, kind="server_error")


def error_body(refusal: Refusal) -> bytes:
    """The JSON that `openai.APIError` reads."""
    return json.dumps(
        {
            "error": {
                "message": refusal.message,
                "type": refusal.kind,
                "param": refusal.param,
                "code": refusal.code,
            }
        },
        ensure_ascii=False,
        separators=(",", ":"),
    ).encode("utf-8", "replace")


def refusal_bytes(
    refusal: Refusal, *, keep_alive: bool, http10: bool = False, body: bool = True, request_id: bytes = b""
) -> bytes:
    """The whole HTTP answer; `body=False` for HEAD, which still tells the length."""
    content = error_body(refusal)
    extra = [b"x-tiergate-error: " + refusal.code.encode()]
    if refusal.retry_after is not None:
        extra.append(b"retry-after: %d" % refusal.retry_after)
    return own_answer(
        refusal.status,
        content,
        extra=extra,
        keep_alive=keep_alive,
        http10=http10,
        body=body,
        request_id=request_id,
    )


def own_answer(
    status: HTTPStatus,
    content: bytes,
    *,
    keep_alive: bool,
    http10: bool = False,
    body: bool = True,
    request_id: bytes = b"",
    extra: list[bytes] | None = None,
) -> bytes:
    """An answer with a JSON body that no backend gave."""
    lines = [
        b"HTTP/1.1 %d %b" % (status, status.phrase.encode()),
        b"content-type: application/json",
        b"content-length: %d" % len(content),
        *(extra or ()),
    ]
    if request_id:
        lines.append(b"x-request-id: " + request_id)
    if not keep_alive:
        lines.append(b"connection: close")
    elif http10:
        lines.append(b"connection: keep-alive")
    head = b"\r\n".join(lines) + b"\r\n\r\n"
    return head + content if body else head
