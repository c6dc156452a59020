"""The noun of the demo's workload: one prompt, ready to become the body of a chat completion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """What a prompt exercises."""

    EXTRACTION = "extraction"
    """Fields out of a sentence, as JSON of a given schema."""
    NOTES = "notes"
    """A longer text that holds facts, with a question or a small task about it."""
    QUESTION = "question"
    """A short question, harmless or borderline, that a model may answer or refuse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message of a prompt."""

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What one client asks."""

    kind: Kind
    turns: tuple[Turn, ...]
    max_tokens: int
    stream: bool = False
    schema: Mapping[str, Any] | None = None
    """JSON Schema that the answer has to satisfy."""

    def body(self, model: str) -> dict[str, Any]:
        """The chat completion request, greedy, so that only the tier can make answers differ."""
        body: dict[str, Any] = {
            "model": model,
            "messages": [{"role": turn.role, "content": turn.content} for turn in self.turns],
            "max_tokens": self.max_tokens,
            "temperature": 0,
            "stream": self.stream,
        }
        if self.stream:
            body["stream_options"] = {"include_usage": True}
        if self.schema is not None:
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "record", "schema": dict(self.schema), "strict": True},
            }
        return body
