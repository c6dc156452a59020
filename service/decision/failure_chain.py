"""What one failed answer costs: a chain of steps, each reached by a share of those at the one before (A9).

    reach_i             = s_1 s_2 ... s_i
    cost of one failure = sum_i reach_i (x_i c_B + p_i) = k c_B + price

s_i is the share of the failures at step i - 1 that go on to step i, x_i what the step costs in requests of
the baseline, p_i what it costs besides, in the currency: a person's minutes, say. By default every failure is
tried again (1x), and half of those go to a bigger model (6x): k = 4.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainStep:
    """One thing that is done about a failed answer."""

    name: str
    share: float = 1.0
    """Of the failures that reached the step before; of all, for the first."""
    multiple: float = 0.0
    """Its cost in requests of the baseline."""
    price: float = 0.0
    """What it costs besides, in the currency."""

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("a step of the failure chain needs a name")
        if not 0 <= self.share <= 1:
            raise ValueError(f"the share of {self.name} must be in [0, 1], got {self.share}")
        if not (0 <= self.multiple < math.inf and 0 <= self.price < math.inf):
            raise ValueError(f"the cost of {self.name} must be finite and at least 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureChain:
    """All that is done about a failed answer, in order."""

    steps: tuple[ChainStep, ...]

    @classmethod
    def of_weight(cls, weight: float) -> FailureChain:
        """A failure that costs so many baseline requests, whatever is done about it."""
        return cls(steps=(ChainStep(name="failure", multiple=weight),))

    @property
    def reached(self) -> Iterator[tuple[ChainStep, float]]:
        """Each step with the share of all failures that reach it."""
        reach = 1.0
        for step in self.steps:
            reach *= step.share
            yield step, reach

    @property
    def weight(self) -> float:
        """k: one failure in baseline requests."""
        return math.fsum(reach * step.multiple for step, reach in self.reached)

    @property
    def price(self) -> float:
        """What one failure costs besides, in the currency."""
        return math.fsum(reach * step.price for step, reach in self.reached)

    def cost(self, request_cost: float) -> float:
        """One failure in the currency, where a request of the baseline costs `request_cost`."""
        return self.weight * request_cost + self.price


RETRY_OR_ESCALATE = FailureChain(
    steps=(
        ChainStep(name="retry", multiple=1.0),
        ChainStep(name="bigger model", share=0.5, multiple=6.0),
    )
)
"""k = 4."""
