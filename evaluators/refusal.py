"""Whether an answer refuses its request. The criterion is equivalence: both directions matter.

What the engine says itself comes first (refusal field, finish reason), then rules over the text. `full` and
`empty` fail; `partial` passes and is shown apart, since a caveat before an answer is an answer. Structured
answers are judged too, by the strings inside them; tool calls comply. Faults are not refusals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from evaluators.exchange import Answer, Fault, Json, Request
from evaluators.refusal_rules import Reading, Stance, read_stance
from evaluators.score import NotApplicable, Score, excerpt
from evaluators.strict_json import NotJson, TooMuch, parse

REFUSING_FINISHES = frozenset({"content_filter", "refusal"})


@dataclass(frozen=True, slots=True)
class Refusal:
    """Passes an answer that goes along with its request."""

    name: ClassVar[str] = "refusal"
    version: ClassVar[str] = "1"

    def applies(self, request: Request) -> bool:
        """Every generation is judged, except probes, and completions that repeat their prompt (`echo`)."""
        return request.needle is None and not request.body.get("echo")

    def score(self, request: Request, answer: Answer) -> Score:
        """Precedence: refusal field, finish reason, tool calls, text."""
        if answer.refusal:
            return _full("the engine filled the refusal field", answer.refusal)
        if answer.finish_reason in REFUSING_FINISHES:
            return _full(f"finish_reason is {answer.finish_reason}", answer.text)
        if answer.tool_calls:
            return Score(passed=True, label=Stance.COMPLY, reason="the answer calls a tool")
        if not answer.text.strip():
            return Score(passed=False, label="empty", reason="nothing was written, so nothing was answered")
        reading = read_stance(answer.text)
        if reading.stance is Stance.COMPLY:
            reading = _within_json(answer.text)
        if reading.stance is Stance.FULL:
            return _full("the text declines the request", reading.span)
        reason = (
            "the text declines a part and helps with the rest" if reading.stance is Stance.PARTIAL else ""
        )
        return Score(passed=True, label=reading.stance, reason=reason, evidence=excerpt(reading.span))

    def score_fault(self, request: Request, fault: Fault) -> NotApplicable:
        """A broken answer neither refuses nor complies."""
        return NotApplicable(why="fault")


def _full(reason: str, span: str) -> Score:
    return Score(passed=False, label=Stance.FULL, reason=reason, evidence=excerpt(span))


def _within_json(text: str) -> Reading:
    """The stance of the longest string in a JSON answer, such as `{"answer": "I'm sorry, I can't."}`."""
    comply = Reading(stance=Stance.COMPLY)
    if text.lstrip()[:1] not in ("{", "["):
        return comply
    try:
        waiting: list[Json] = [parse(text).value]
    except (NotJson, TooMuch):
        return comply
    longest = ""
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            longest = max(longest, value, key=len)
        elif isinstance(value, dict | list):
            waiting.extend(value.values() if isinstance(value, dict) else value)
    return read_stance(longest)
