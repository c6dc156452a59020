"""What a tier would cost and save, from numbers that somebody gives: points, not the limits of a run (A9).

request of a tier    c = C x tokens / 1e6,  C = price x 1e6 / (tok/s x 3600)
net benefit          c_B - c_Q - (k c_B + p) dF - operations
break-even           dF = (c_B - c_Q - operations) / (k c_B + p)
times cheaper        c_B / (c_Q + (k c_B + p) dF + operations)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from service.decision.economics import effective_cost, request_cost, unit_cost
from service.decision.failure_chain import RETRY_OR_ESCALATE, FailureChain


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One arm, as somebody tells of it."""

    price_per_hour: float
    """Of the backends whose tokens are counted."""
    tokens_per_second: float
    """Output tokens that met the SLO, at the arm's own best rate."""
    output_tokens: float
    """Of one request, in the mean."""
    failures: float
    """Share of requests with any failure."""

    def __post_init__(self) -> None:
        if not (0 <= self.price_per_hour < math.inf and 0 < self.tokens_per_second < math.inf):
            raise ValueError("price must be at least 0 and SLO-qualified tokens per second above 0")
        if not 0 < self.output_tokens < math.inf:
            raise ValueError(f"output tokens of a request must be above 0, got {self.output_tokens}")
        if not 0 <= self.failures <= 1:
            raise ValueError(f"the share of failures must be in [0, 1], got {self.failures}")

    @property
    def unit_cost(self) -> float:
        """Of a million tokens."""
        return unit_cost(price_per_hour=self.price_per_hour, tokens_per_second=self.tokens_per_second)

    @property
    def request_cost(self) -> float:
        return request_cost(self.unit_cost, mean_output_tokens=self.output_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Costing:
    """Two arms, and what a failure and running one more tier cost."""

    baseline: Offer
    candidate: Offer
    failure: FailureChain = RETRY_OR_ESCALATE
    operations: float = 0.0
    """Per request."""

    def __post_init__(self) -> None:
        if not 0 <= self.operations < math.inf:
            raise ValueError(f"operations must be at least 0, got {self.operations}")

    @property
    def failure_rise(self) -> float:
        """dF."""
        return self.candidate.failures - self.baseline.failures

    @property
    def failure_cost(self) -> float:
        """Of one failure: k c_B + p."""
        return self.failure.cost(self.baseline.request_cost)

    @property
    def net_benefit(self) -> float:
        """Per request."""
        saved = self.baseline.request_cost - self.candidate.request_cost
        return saved - self.failure_cost * self.failure_rise - self.operations

    @property
    def net_benefit_per_million(self) -> float:
        """Per million output tokens of the baseline: of as much traffic as it has now."""
        return self.net_benefit * 1e6 / self.baseline.output_tokens

    @property
    def break_even(self) -> float | None:
        """The rise of failures that eats up what is saved; None when a failure costs nothing."""
        saved = self.baseline.request_cost - self.candidate.request_cost - self.operations
        return saved / self.failure_cost if self.failure_cost else None

    @property
    def times_cheaper(self) -> float:
        """What a request costs now over what it would cost, failures paid for; infinite at no cost at all."""
        then = self.candidate.request_cost + self.failure_cost * self.failure_rise + self.operations
        return self.baseline.request_cost / then if then > 0 else math.inf

    def effective_cost(self, offer: Offer) -> float | None:
        """Of a million tokens of an arm with the retries of its failures paid for; shown, never added.

        The first step of the failure chain is the retry. None when every answer is tried again.
        """
        retried = offer.failures * (self.failure.steps[0].share if self.failure.steps else 0.0)
        return effective_cost(offer.unit_cost, retry_rate=retried) if retried < 1 else None
