"""What a load run measured of one tier, as a report has it.

Times are seconds, shares between 0 and 1, money in the run's currency, tokens those of output that met the
SLO unless a name says otherwise. What was not measured is None, never 0: absence of evidence is no number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Metric(StrEnum):
    """Of one request."""

    TTFT = "ttft"
    TPOT = "tpot"
    E2E = "e2e"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number with its limits; without limits, it is told as it is."""

    value: float
    lower: float | None = None
    upper: float | None = None
    level: float | None = None
    """Coverage of both limits together, such as .95; None without limits."""
    n: int | None = None
    """What it was computed from: requests, pairs or blocks, as its place says."""

    def __post_init__(self) -> None:
        for limit, right in ((self.lower, -1), (self.upper, 1)):
            # Limits of order statistics and of ratios may touch the value, and rounding may put them past it.
            if limit is not None and right * (limit - self.value) < -1e-9 * max(1.0, abs(self.value)):
                raise ValueError(f"limits must enclose the value: {self.lower}, {self.value}, {self.upper}")
        if self.level is not None and not 0 < self.level < 1:
            raise ValueError(f"a level is in (0, 1), got {self.level}")

    def times(self, factor: float) -> Figure:
        """The same in another unit; the factor is above 0."""
        return Figure(
            value=factor * self.value,
            lower=None if self.lower is None else factor * self.lower,
            upper=None if self.upper is None else factor * self.upper,
            level=self.level,
            n=self.n,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """One time of one tier's requests in the SLO part."""

    metric: Metric
    n: int
    """Requests that have it, or never came so far."""
    never: int = 0
    """Requests that never came so far."""
    limit_seconds: float | None = None
    """What the SLO allows; None where it says nothing of it."""
    quantiles: Mapping[str, Figure] = field(default_factory=dict)
    """By share as text: `0.5`, `0.95`."""
    p95_difference: Figure | None = None
    """Of P95 against the baseline's, by block bootstrap; n is blocks. None for the baseline itself."""
    distribution: tuple[tuple[float, float], ...] = ()
    """(share of n, seconds), rising: what a curve is drawn through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What a tier did in the SLO part, under the same arrivals as the others."""

    blocks: int
    invalid: tuple[str, ...] = ()
    """Why blocks were left out, one sentence each."""
    offered: int = 0
    passed: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)
    """Requests by fault."""
    pass_rate: Figure | None = None
    rise: Figure | None = None
    """Of the share of requests that missed, against the baseline; None for the baseline itself."""
    margin: float | None = None
    """delta_slo."""
    shown: str = ""
    """What the gate said, in the words of the decision."""
    arrivals: str = ""
    asked_rate: float | None = None
    """Requests a second."""
    achieved_rate: float | None = None
    lag_p99_seconds: float | None = None
    """How late the generator sent."""
    identity_error_seconds: float | None = None
    """Largest |E2E - (TTFT + TPOT (n - 1))|."""
    latencies: tuple[Latency, ...] = ()

    def latency(self, metric: Metric) -> Latency | None:
        """The one of that metric."""
        return next((each for each in self.latencies if each.metric is metric), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RatePoint:
    """One block at one rate."""

    rate: float
    """Requests a second, asked for."""
    goodput: float
    """Tokens a second."""
    fresh: bool = False
    """Measured again at the best rate, for the cost; the others were selected among."""
    pass_rate: float | None = None
    ttft_p95_seconds: float | None = None
    tpot_p95_seconds: float | None = None
    invalid: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """The way to a tier's best rate."""

    points: tuple[RatePoint, ...] = ()
    best_rate: float | None = None
    """None when the sweep ended without a maximum."""
    note: str = ""
    """Why there is none, or what else the sweep says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrencyPoint:
    """One block with so many requests at once."""

    concurrency: int
    tpot_p95_seconds: float | None
    throughput: float
    """All output tokens a second."""
    invalid: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Concurrency:
    """The way to the most requests at once that keep TPOT."""

    points: tuple[ConcurrencyPoint, ...] = ()
    limit_seconds: float | None = None
    """80 % of the SLO's TPOT."""
    largest: int | None = None
    """None when it was not found."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    """What a tier costs, and what it saves against the baseline."""

    price_per_hour: float | None = None
    """Of the backends whose tokens are counted; None when nobody told it."""
    tokens_per_second: Figure | None = None
    """At the tier's own best rate; n is blocks."""
    mean_output_tokens: float | None = None
    unit_cost: Figure | None = None
    """Per million tokens."""
    retry_rate: Figure | None = None
    effective_cost: Figure | None = None
    """Per million tokens, retries paid for."""
    request_cost: Figure | None = None
    failure_rise: Figure | None = None
    """Of the share of requests with any failure, against the baseline; n is pairs."""
    failure_weight: float | None = None
    """k: one failure in requests of the baseline."""
    failure_price: float = 0.0
    """What one failure costs besides, such as a person's time."""
    operations: float = 0.0
    """What running the tier costs besides, per request."""
    net_benefit: Figure | None = None
    """Per request; None for the baseline."""
    net_benefit_per_million: Figure | None = None
    """Per million tokens of output of the tier."""
    shown: str = ""
    """What the gate said, in the words of the decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSeries:
    """One number that a tier's engine told during the run."""

    metric: str
    """By our name, such as `kv_usage`."""
    points: tuple[tuple[float, float | None], ...] = ()
    """(seconds from the start of the run, number); None where it was not told."""
