"""The body that puts a captured request to another tier."""

from __future__ import annotations

import json
from collections.abc import Mapping

from evaluators.exchange import Endpoint, Json, Request

PERSONAL = ("user", "metadata", "safety_identifier", "background")
"""Keys about the client or its bookkeeping; they change nothing that is written."""


def replay_body(request: Request, *, model: str) -> bytes:
    """The request as it was, for a tier whose backends call the model `model`, leaving no trace there.

    `store` becomes false where the dialect has it (responses store by default), `background`, `user` and
    `metadata` are dropped, `stream` stays. ASCII JSON, so that lone surrogates survive as they came.
    """
    return write_body({**without_traces(request), "model": model})


def without_traces(request: Request) -> dict[str, Json]:
    """The body without what a replay must not carry; keys keep their order."""
    body = {key: value for key, value in request.body.items() if key not in PERSONAL}
    if request.endpoint is Endpoint.RESPONSES or (
        request.endpoint is Endpoint.CHAT_COMPLETIONS and "store" in body
    ):
        body["store"] = False
    return body


def write_body(body: Mapping[str, Json]) -> bytes:
    """A body on the wire. NaN and infinities cannot occur: requests are parsed strictly."""
    return json.dumps(body, separators=(",", ":"), allow_nan=False).encode("ascii")
