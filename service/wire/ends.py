"""What every dialect's reader gives: an answer, and whether it was seen to end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from evaluators.exchange import Answer, Fault, FaultKind, Json
from evaluators.score import excerpt
from service.wire import shapes


class AnswerReader(Protocol):
    """One answer of one dialect, whole or in events. Raises `WrongShape` when it is not of its dialect."""

    def add_body(self, body: Mapping[str, Json]) -> None:
        """The body of an unstreamed answer."""

    def add_event(self, event: Mapping[str, Json]) -> None:
        """One event of a streamed answer."""

    @property
    def ended(self) -> bool:
        """Whether the model was seen to finish; without it a stream was cut off."""

    @property
    def failure(self) -> str | None:
        """Why the engine gave up, when the answer says so in its own fields."""

    def answer(self) -> Answer:
        """What was written so far."""


def error_message(body: Json) -> str | None:
    """What an error body of any dialect says, or None when the body reports no error."""
    if not isinstance(body, dict):
        return None
    error = body.get("error")
    if error:
        return told(error)
    if body.get("object") == "error" or body.get("type") == "error":
        return told(body)
    return None


def told(error: Json) -> str:
    """The message of something that is known to be an error, or all of it where it has none."""
    message = error.get("message") if isinstance(error, dict) else error
    return excerpt(message if isinstance(message, str) and message else shapes.write_json(error))


def fault_by_finish(finish_reason: str | None) -> Fault | None:
    """Finish reasons that engines give when they did not finish."""
    if finish_reason == "error":
        return Fault(kind=FaultKind.STREAM_ERROR, status=200, detail="finish_reason error")
    if finish_reason == "abort":
        return Fault(kind=FaultKind.CUT_OFF, status=200, detail="finish_reason abort")
    return None
