"""How large a drill is, and what it may cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

from service.drill.defects import ASKED_BY, Defect
from service.drill.prompts import prompts_of, tokens_of
from service.drill.questions import MOST
from service.settings.values import ProbePlan

SHARE = 0.5
"""Of the answers of a damaged arm."""
PER_ROUND = 8
"""Requests of each kind between two looks."""
MOST_PAIRS = MOST


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillPlan:
    """What one drill plants and how long it may go on."""

    defects: tuple[Defect, ...] = tuple(Defect)
    pairs: int = 120
    """Most requests of each kind."""
    seconds: float = 900.0
    """Of asking; starting and stopping come on top."""
    share: float = SHARE
    seed: int = 1

    def __post_init__(self) -> None:
        if not self.defects:
            raise ValueError("a drill without a defect shows nothing")
        if not 1 <= self.pairs <= MOST_PAIRS:
            raise ValueError(f"pairs must be 1 to {MOST_PAIRS}, got {self.pairs}")
        if not 0 < self.seconds < math.inf:
            raise ValueError(f"the longest time must be more than 0 s, got {self.seconds:g} s")
        if not 0 < self.share <= 1:
            raise ValueError(f"the damaged share must be in (0, 1], got {self.share}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """The most that a drill can ask of the baseline's backends."""

    requests: int
    tokens: int


def bill(plan: DrillPlan, probe: ProbePlan) -> Bill:
    """Two answers to every question, recall questions included, and every one as long as it may be."""
    requests = tokens = 0
    for defect in plan.defects:
        prompts = prompts_of(
            ASKED_BY[defect],
            seed=plan.seed,
            min_context_chars=probe.min_context_chars,
            facts=probe.per_capture,
        )
        prompt = next(prompts)
        recall = probe.per_capture if defect is Defect.RECALL else 0
        requests += plan.pairs * 2 * (1 + recall)
        answer = max(prompt.max_tokens, probe.max_tokens)
        each = tokens_of(prompt) - prompt.max_tokens + answer
        tokens += plan.pairs * 2 * (1 + recall) * each
    return Bill(requests=requests, tokens=tokens)
