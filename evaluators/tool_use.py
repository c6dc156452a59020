"""Whether an answer calls a tool at all, where tools are offered and calling is left to the model.

Neither is right in itself, so this judges no answer: a tier that calls more often or less often than its
baseline has changed, which is what the hypothesis `equivalent` looks for. Whether a call is right is
`structured_output`'s to say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from evaluators.call_marks import call_in
from evaluators.exchange import Answer, Fault, Request
from evaluators.score import NotApplicable, Score, excerpt


@dataclass(frozen=True, slots=True)
class ToolUse:
    """Applies where tools are offered with `auto`; an answer passes by calling one."""

    name: ClassVar[str] = "tool_use"
    version: ClassVar[str] = "1"

    def applies(self, request: Request) -> bool:
        return request.needle is None and bool(request.tools) and request.tool_choice == "auto"

    def score(self, request: Request, answer: Answer) -> Score:
        """`called`, `call_in_text` (meant as a call, and no engine could read it) or `no_call`."""
        if answer.tool_calls:
            names = ", ".join(sorted({call.name for call in answer.tool_calls}))
            return Score(passed=True, label="called", reason=excerpt(f"called {names}"))
        if meant := call_in(answer.text):
            reason = "a call stands in the text, where the engine could not read it"
            return Score(passed=False, label="call_in_text", reason=reason, evidence=excerpt(meant))
        return Score(passed=False, label="no_call", reason="no tool was called")

    def score_fault(self, request: Request, fault: Fault) -> NotApplicable:
        """An answer that broke says nothing about how often tools are called."""
        return NotApplicable(why="fault")
