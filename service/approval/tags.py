"""`ETag` and `If-None-Match` (RFC 9110, 13.1.2) of answers that are computed, and stored in no database.

The tag is weak: two answers of one tag say the same, and differ at most in what the clock alone moves.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any

from fastapi import Header
from starlette.responses import Response

from service.approval.schemas import Answer

OF_THE_CLOCK = frozenset({"evaluated_at", "age_seconds"})
"""Fields that move while nothing happens."""
IfNoneMatch = Annotated[
    str | None,
    Header(
        alias="If-None-Match",
        max_length=2000,
        description="Tags of answers that are known: 304 and no body while one of them holds.",
    ),
]
UNCHANGED: dict[int | str, dict[str, Any]] = {
    200: {"headers": {"ETag": {"description": "A weak tag.", "schema": {"type": "string"}}}},
    304: {"description": "The answer is known: one of the tags of If-None-Match is that of now."},
}
_TAG = re.compile(r'(?:W/)?("[^"]*")')


@dataclass(frozen=True, slots=True)
class Tagged:
    """An answer as it goes over the wire, with its tag."""

    content: str
    tag: str

    @classmethod
    def of(cls, answer: Answer) -> Tagged:
        document = answer.model_dump(mode="json")
        content = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return cls(content, f'W/"{_digest(document)}"')

    def response(self, known: str | None) -> Response:
        """All of it, or 304 where the caller has it by `known`, an `If-None-Match`."""
        headers = {"ETag": self.tag, "Cache-Control": "private, no-cache", "Vary": "Authorization"}
        if known is not None and (known.strip() == "*" or self.tag.removeprefix("W/") in _TAG.findall(known)):
            return Response(status_code=304, headers=headers)
        return Response(self.content, headers=headers, media_type="application/json")


def _digest(document: dict[str, Any]) -> str:
    """128 bits of sha256 over all that the clock alone does not move."""
    spelled = json.dumps(_still(document), allow_nan=False, separators=(",", ":"))
    return sha256(spelled.encode()).hexdigest()[:32]


def _still(node: Any) -> Any:
    if isinstance(node, dict):
        return {name: _still(each) for name, each in node.items() if name not in OF_THE_CLOCK}
    return [_still(each) for each in node] if isinstance(node, list) else node
