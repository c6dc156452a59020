"""Whether a probe's answer holds the fact of the context that was asked for.

The truth is the needle that the probe carries. A hit is the value as a token of its own, in whatever form
numbers and dates are written (`values`); where several are asked for, all of them. Thinking does not count,
nor does what repeats the question, nor an answer that refuses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from evaluators.exchange import Answer, Fault, Request
from evaluators.refusal_rules import Stance, read_stance
from evaluators.score import Score, excerpt, failed
from evaluators.values import normal, occurrences

MAX_CHARS = 100_000
"""Characters of an answer that are searched; a fact that comes later is no answer to a question."""


@dataclass(frozen=True, slots=True)
class LongContextRecall:
    """Judges recall probes, and nothing else."""

    name: ClassVar[str] = "long_context_recall"
    version: ClassVar[str] = "3"

    def applies(self, request: Request) -> bool:
        """Only requests that carry a needle have a known answer."""
        return request.needle is not None

    def score(self, request: Request, answer: Answer) -> Score:
        """One of `hit`, `miss`, `refused`, `truncated` and `empty`; `hit` passes."""
        if request.needle is None:
            raise ValueError("recall needs a request with a needle")
        expected = " and ".join((request.needle.value, *request.needle.others))
        written = answer.text[:MAX_CHARS]
        if answer.refusal:
            return failed("refused", f"expected {expected!r}, found a refusal", answer.refusal)
        if not written.strip():
            label = "truncated" if answer.finish_reason == "length" else "empty"
            return failed(label, f"expected {expected!r}, found no answer", answer.reasoning[-200:])
        reading = read_stance(written)
        if reading.stance is Stance.FULL:
            return failed("refused", f"expected {expected!r}, found a refusal", reading.span)
        # what repeats the question has not answered it
        said = normal(written).replace(normal(request.needle.question), " ")
        if all(occurrences(normal(value), said) for value in (request.needle.value, *request.needle.others)):
            return Score(passed=True, label="hit", evidence=excerpt(written))
        label = "truncated" if answer.finish_reason == "length" else "miss"
        return failed(label, f"expected {expected!r}, found another answer", written)

    def score_fault(self, request: Request, fault: Fault) -> Score:
        """No answer recalls nothing."""
        return failed("fault", str(fault))
