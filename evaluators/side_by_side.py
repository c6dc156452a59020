"""How the two answers of a pair differ from outside: which tools they call, how they end, how long they are.

The baseline is the reference and always passes. Another good answer may be shorter, so the share means little
by itself and something beside the control's, which is the baseline against itself. Judged are whole answers;
what a field says is `field_agreement`'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from evaluators.beside import Beside, beside
from evaluators.exchange import Answer, Fault, Request
from evaluators.score import ALONE, BROKEN, REFERENCE, NotApplicable, Score

RATIO = 2.0
"""From here on an answer is much longer; from its inverse on, much shorter."""
LEAST = 80
"""Characters that one of the two has at least: below, twice as long is a word more."""


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Applies to every generation but probes, as soon as both arms answered."""

    name: ClassVar[str] = "side_by_side"
    version: ClassVar[str] = "1"

    def applies(self, request: Request) -> bool:
        return request.needle is None and not request.body.get("echo")

    def score(self, request: Request, answer: Answer) -> NotApplicable:
        """One answer alone has nothing beside it."""
        return ALONE

    def score_fault(self, request: Request, fault: Fault) -> NotApplicable:
        return BROKEN

    def compare(self, request: Request, baseline: Answer, candidate: Answer) -> tuple[Score, Score]:
        """`tools_differ`, `end_differs`, `much_shorter`, `much_longer`, or `alike`; the first that fits."""
        found = beside(baseline, candidate)
        label, reason = _class_of(found, baseline, candidate)
        return REFERENCE, Score(passed=label == "alike", label=label, reason=reason)


def _class_of(found: Beside, baseline: Answer, candidate: Answer) -> tuple[str, str]:
    if not found.tool_choice_agrees:
        return "tools_differ", f"{_called(baseline)} by the baseline, {_called(candidate)} by the candidate"
    if not found.finish_reason_agrees:
        return "end_differs", f"finish_reason {baseline.finish_reason} and {candidate.finish_reason}"
    sizes = len(baseline.text), len(candidate.text)
    if max(sizes) >= LEAST:
        told = f"{sizes[0]} characters by the baseline, {sizes[1]} by the candidate"
        if sizes[1] >= RATIO * sizes[0]:
            return "much_longer", told
        if sizes[0] >= RATIO * sizes[1]:
            return "much_shorter", told
    return "alike", ""


def _called(answer: Answer) -> str:
    return f"{len(answer.tool_calls)} calls" if answer.tool_calls else "no call"
