"""Two answers to one request side by side: length, tools, how they ended. Shown for a pair, never judged."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from evaluators.exchange import Answer

_STEPS = (0.25, 0.5, 0.8, 1.25, 2.0, 4.0)
_RANGES = ("under 1/4", "1/4 to 1/2", "1/2 to 4/5", "4/5 to 5/4", "5/4 to 2", "2 to 4", "over 4")


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """How the second answer differs from the first."""

    length_ratio: float | None
    """Characters of text of the second to those of the first; None where either is empty."""
    token_ratio: float | None
    """The same of completion tokens, thinking included; None where an engine did not count them."""
    tool_choice_agrees: bool
    """Both call the same tools equally often, in whatever order, with whatever arguments."""
    finish_reason_agrees: bool
    same_text: bool
    """Character by character."""


def beside(first: Answer, second: Answer) -> Beside:
    """Symmetric but for the ratios, which are the inverse of each other."""
    return Beside(
        length_ratio=_ratio(len(first.text), len(second.text)),
        token_ratio=_ratio(first.completion_tokens or 0, second.completion_tokens or 0),
        tool_choice_agrees=_called(first) == _called(second),
        finish_reason_agrees=first.finish_reason == second.finish_reason,
        same_text=first.text == second.text,
    )


def ratio_range(ratio: float) -> str:
    """The range of a ratio, each from its lower end on: `4/5 to 5/4`."""
    return _RANGES[bisect_right(_STEPS, ratio)]


def _ratio(first: int, second: int) -> float | None:
    return second / first if first and second else None


def _called(answer: Answer) -> list[str]:
    return sorted(call.name for call in answer.tool_calls)
