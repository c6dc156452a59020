"""The OpenAPI 3.1 document: FastAPI's, and what it does not know of this API.

Problems have their own media type, every body and answer an example that fits its schema, every write takes
an `Idempotency-Key`, every verdict an `If-None-Match`, and the answers of the door stand at every operation.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

from fastapi import FastAPI

from service.approval.documents import example_of
from service.approval.errors import MEDIA_TYPE
from service.approval.problem_codes import title_of
from service.approval.schemas import ProblemOut

Node = MutableMapping[str, Any]
"""A part of the document, changed in place."""

WRITES = frozenset({"post", "put", "patch", "delete"})

REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": ProblemOut, "description": description}
    for status, description in {
        400: "The request is not one: its Host, its JSON, a header.",
        401: "No token, or one that is unknown, revoked or expired.",
        403: "The token, Host or Origin may not do this.",
        404: "Unknown model or tier; the hint names the nearest.",
        409: "Something stands in the way: the verdict, a dead backend.",
        422: "A field or parameter is not what it should be.",
        429: "Too many wrong tokens came from this address.",
        500: "The API met an error of its own.",
        503: "The database, or the issuer of a JSON Web Token, does not answer.",
    }.items()
}
OF_BODIES = {
    "408": "The body took too long.",
    "413": "The body is too large.",
    "415": "The body is not declared as JSON.",
}
LIKELY = {
    "400": "invalid_json",
    "401": "unauthorized",
    "403": "insufficient_scope",
    "404": "unknown_tier",
    "408": "body_too_slow",
    "409": "verdict_not_accept",
    "413": "body_too_large",
    "415": "not_json",
    "422": "invalid_request",
    "429": "too_many_failures",
    "500": "internal_error",
    "503": "store_down",
}
"""The code that the example of a status shows."""

KEY_PARAMETER = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "1 to 255 visible ASCII characters. The same request with the same key is done once.",
    "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
    "example": "0b8a1d5e-5f43-4d0e-8d0f-0c1f6a0f4f0e",
}
REPLAYED = {
    "description": "`true` where this is the answer of the first request with the key.",
    "schema": {"type": "string", "enum": ["true"]},
}


def describing(app: FastAPI, *, paths: str) -> None:
    """Make `app.openapi()` give the whole document; operations below `paths` take keys."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        known = app.openapi_schema
        if known is not None:
            return known
        document = plain()
        for path, method, operation in _operations(document):
            if method in WRITES and path.startswith(paths):
                _take_keys(operation)
            _spell_problems(operation)
            _give_examples(operation, document)
        return document

    app.openapi = openapi  # type: ignore[method-assign]


def _operations(document: Node) -> Iterator[tuple[str, str, Node]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def _take_keys(operation: Node) -> None:
    operation.setdefault("parameters", []).append(KEY_PARAMETER)
    for status, answer in operation["responses"].items():
        if status.startswith("2"):
            answer.setdefault("headers", {})["Idempotency-Replayed"] = REPLAYED


def _spell_problems(operation: Node) -> None:
    """Refusals are problems; those of bodies stand where there may be one."""
    responses = operation["responses"]
    schema = {"$ref": "#/components/schemas/ProblemOut"}
    if "requestBody" in operation:
        for status, description in OF_BODIES.items():
            plain = {"application/json": {"schema": schema}}
            responses.setdefault(status, {"description": description, "content": plain})
    for status, answer in responses.items():
        content = answer.get("content", {})
        for kind in [kind for kind, media in content.items() if media.get("schema") == schema]:
            del content[kind]
            if kind != "application/json":  # a tool that reads one line; only the door speaks JSON to it
                content[kind] = {"schema": {"type": "string"}, "example": LIKELY[status]}
            content[MEDIA_TYPE] = {"schema": schema, "example": _problem(status)}


def _problem(status: str) -> dict[str, Any]:
    code = LIKELY[status]
    return {
        "type": f"/docs#problem-{code}",
        "title": title_of(code),
        "status": int(status),
        "detail": "what is wrong this time",
        "code": code,
        "hint": "what to do about it",
    }


def _give_examples(operation: Node, document: Node) -> None:
    for holder in [*operation["responses"].values(), operation.get("requestBody", {})]:
        media = holder.get("content", {}).get("application/json")
        if media is not None and media.get("schema"):
            media.setdefault("example", example_of(media["schema"], document))
