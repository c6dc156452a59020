"""Whether the candidate's answer repeats the facts of the context that the baseline's answer used.

No question is asked: the captured answers themselves are read. A fact is a number with its sign, a date, an
address or a code of the baseline's answer that stands in the prompt, and not in its closing question. The
baseline is the reference and always passes; the candidate passes where it names all of them. Two good answers
may choose different facts, and sampling makes them differ, so the share means nothing beside zero and
everything beside the control's, the baseline against itself: that is its floor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from evaluators.exchange import Answer, Fault, Request
from evaluators.needle_values import is_value
from evaluators.needles import outside_question
from evaluators.score import ALONE, BROKEN, REFERENCE, NotApplicable, Score, failed
from evaluators.values import normal, tokens

MIN_CHARS = 2000
"""Characters of a prompt that is long enough to recall something from."""
MAX_PROMPT, MAX_ANSWER = 400_000, 50_000
"""Characters that are read; a fact beyond them is none."""


@dataclass(frozen=True, slots=True)
class PassiveRecall:
    """Applies to long prompts, whatever is asked; probes have a known answer and are judged by that."""

    name: ClassVar[str] = "passive_recall"
    version: ClassVar[str] = "3"

    def applies(self, request: Request) -> bool:
        written = sum(len(message.text) for message in request.messages)
        return request.needle is None and written >= MIN_CHARS

    def score(self, request: Request, answer: Answer) -> NotApplicable:
        """One answer alone repeats nothing."""
        return ALONE

    def score_fault(self, request: Request, fault: Fault) -> NotApplicable:
        return BROKEN

    def compare(self, request: Request, baseline: Answer, candidate: Answer) -> tuple[Score, Score]:
        """`repeats` all facts, `omits` some, or `no_facts`, which passes: the baseline used none."""
        facts = {said for said in _said(baseline) if is_value(said.removeprefix("-"))}
        if facts:
            facts &= set(tokens(normal(outside_question(request)[:MAX_PROMPT])))
        if not facts:
            return REFERENCE, Score(passed=True, label="no_facts", reason="the reference names no fact")
        missing = sorted(facts - _said(candidate))
        told = f"repeats {len(facts) - len(missing)} of {len(facts)} facts"
        if not missing:
            return REFERENCE, Score(passed=True, label="repeats", reason=told)
        return REFERENCE, failed("omits", f"{told}; not {', '.join(missing)}", candidate.text)


def _said(answer: Answer) -> set[str]:
    """What stands in text and calls as a token of its own."""
    written = "\n".join((answer.text, *(call.arguments for call in answer.tool_calls)))[:MAX_ANSWER]
    return set(tokens(normal(written)))
