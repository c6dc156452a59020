"""Requests that prove themselves by an HMAC over their raw bytes: nothing of them is read before."""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from service.approval.errors import Problem

_HEX = re.compile(r"[0-9a-fA-F]{64}")


def signed_object(raw: bytes, *, secret: str, signature: str | None, header: str) -> Mapping[str, Any]:
    """The JSON object in bytes that `secret` signed; 401 for a signature that is none, 400 for no object.

    Compared in constant time, over the bytes as they came: JSON read and written again may be other bytes.
    """
    if signature is None or not _HEX.fullmatch(signature):
        raise _unsigned(header)
    expected = hmac.new(secret.encode(), raw, sha256).hexdigest()
    if not hmac.compare_digest(expected.encode(), signature.lower().encode()):
        raise _unsigned(header)
    try:
        found = json.loads(raw, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise Problem(400, "invalid_json", "the body is not JSON in UTF-8") from error
    if not isinstance(found, dict):
        raise Problem(400, "invalid_json", "the body is no JSON object")
    return found


def _unsigned(header: str) -> Problem:
    return Problem(
        401,
        "bad_signature",
        f"{header} is missing, or not made with the secret that is configured",
        hint="the same secret must stand in the sender's settings and in the file that `pipelines` names",
    )


def _no_number(literal: str) -> float:
    raise ValueError(f"{literal} is not JSON")


class Reader:
    """Takes what is needed out of a payload; 422 naming the place for what is missing or of another form."""

    def __init__(self, payload: Mapping[str, Any]) -> None:
        self._payload = payload

    def text(self, *path: str, longest: int = 255) -> str:
        """A text that is not empty."""
        found = self._at(path)
        if not isinstance(found, str) or not 0 < len(found) <= longest or not found.isprintable():
            raise _missing(path, "a text in one line")
        return found

    def number(self, *path: str) -> int:
        """An id: a whole number above nothing."""
        found = self._at(path)
        if not isinstance(found, int) or isinstance(found, bool) or not 0 < found < 2**63:
            raise _missing(path, "a whole number")
        return found

    def _at(self, path: tuple[str, ...]) -> object:
        here: object = self._payload
        for name in path:
            here = here.get(name) if isinstance(here, dict) else None
        return here


def _missing(path: tuple[str, ...], what: str) -> Problem:
    return Problem(422, "invalid_request", f"{'.'.join(path)}: {what} is expected")
