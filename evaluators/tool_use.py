"""Whether an answer calls a tool at all, where tools are offered and calling is left to the model.

Neither is right in itself, so this judges no answer: a tier that calls more often or less often than its
baseline has changed, which is what the hypothesis `equivalent` looks for. Whether a call is right is
`structured_output`'s to say. Several calls where the request forbids more than one are wrong in any case.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from evaluators.call_marks import call_in
from evaluators.exchange import Answer, Fault, Request
from evaluators.score import BROKEN, NotApplicable, Score, excerpt, failed


@dataclass(frozen=True, slots=True)
class ToolUse:
    """Applies where tools are offered with `auto`, or with any choice and one call at most; an answer passes
    by calling one."""

    name: ClassVar[str] = "tool_use"
    version: ClassVar[str] = "2"

    def applies(self, request: Request) -> bool:
        offered = request.needle is None and request.offers_tools
        return offered and (request.tool_choice == "auto" or not request.parallel_calls)

    def score(self, request: Request, answer: Answer) -> Score:
        """`called`, `too_many_calls` (of a request that allows one), `call_in_text` (meant as a call, and no
        engine could read it) or `no_call`."""
        if answer.tool_calls:
            names = ", ".join(sorted({call.name for call in answer.tool_calls}))
            if len(answer.tool_calls) > 1 and not request.parallel_calls:
                reason = f"expected at most one call, found {len(answer.tool_calls)}: {names}"
                return failed("too_many_calls", reason)
            return Score(passed=True, label="called", reason=excerpt(f"called {names}"), neutral=True)
        if meant := call_in(answer.text):
            reason = "a call stands in the text, where the engine could not read it"
            return failed("call_in_text", reason, meant)
        left = request.tool_choice == "auto"
        return Score(passed=False, label="no_call", reason="no tool was called", neutral=left)

    def score_fault(self, request: Request, fault: Fault) -> NotApplicable:
        """An answer that broke says nothing about how often tools are called."""
        return BROKEN
