"""What a tier saves and what its failures cost, per request and with an interval (statistics A9).

    unit cost      = price per hour x 1e6 / (SLO-qualified output tok/s x 3600)         per million tokens
    effective cost = unit cost / (1 - retry rate)
    net benefit    = c_B - c_Q - (k c_B + p) dF - operations                            per request

c_B, c_Q are the request costs of baseline and candidate, dF the rise of the share of requests with any
failure, k the cost of one failure in baseline requests, p what it costs besides (`failure_chain`). Retries
are charged once: they are in k, so that the net benefit is made of unit costs, and the effective cost is
shown beside it and never added. Money is in whatever currency the price has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import stdtrit

from service.decision.evidence import Measured, Shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A figure with its limits, of the level and in the unit that its maker names."""

    value: float
    lower: float
    upper: float

    def __post_init__(self) -> None:
        if not self.lower <= self.value <= self.upper:
            raise ValueError(f"limits must enclose the value: {self.lower}, {self.value}, {self.upper}")


def unit_cost(*, price_per_hour: float, tokens_per_second: float) -> float:
    """Cost of a million output tokens that met the SLO. Price and rate cover the same backends."""
    if price_per_hour < 0 or tokens_per_second <= 0:
        raise ValueError("price must be at least 0 and SLO-qualified tokens per second above 0")
    return price_per_hour * 1e6 / (tokens_per_second * 3600)


def effective_cost(cost: float, *, retry_rate: float) -> float:
    """Unit cost when a share of the answers has to be paid for again."""
    if not 0 <= retry_rate < 1:
        raise ValueError(f"retry rate must be in [0, 1), got {retry_rate}")
    return cost / (1 - retry_rate)


def request_cost(cost: float, *, mean_output_tokens: float) -> float:
    """Cost of one request of a tier, from its unit cost and its own mean output length."""
    if mean_output_tokens < 0:
        raise ValueError(f"mean output tokens must be at least 0, got {mean_output_tokens}")
    return cost * mean_output_tokens / 1e6


def advantage(*, throughput_ratio: float, failure_rise: float, weight: float) -> float:
    """How many times cheaper a request is in the end: 1 / (1 / ratio + k dF), at equal price and length.

    2.1 times the throughput and 4.1 points more failures leave 1.67, 1.56 and 1.47 at k = 3, 4 and 5.
    """
    if throughput_ratio <= 0:
        raise ValueError(f"throughput ratio must be above 0, got {throughput_ratio}")
    relative_cost = 1 / throughput_ratio + weight * failure_rise
    return 1 / relative_cost if relative_cost > 0 else math.inf


def mean_of_blocks(costs: Sequence[float], *, level: float) -> Estimate:
    """Mean over fresh blocks of a load run with Student's t limits; at least two, eight to be useful."""
    if len(costs) < 2:
        raise ValueError(f"a t interval needs at least 2 blocks, got {len(costs)}")
    mean = math.fsum(costs) / len(costs)
    variance = math.fsum((cost - mean) ** 2 for cost in costs) / (len(costs) - 1)
    half = _t(len(costs) - 1, level) * math.sqrt(variance / len(costs))
    return Estimate(value=mean, lower=mean - half, upper=mean + half)


def ratio_of_blocks(numerator: Sequence[float], denominator: Sequence[float], *, level: float) -> Estimate:
    """Ratio of two independent means, Fieller 1954 limits (smaller t); ValueError if they are unbounded."""
    over, under = mean_of_blocks(numerator, level=level), mean_of_blocks(denominator, level=level)
    degrees = min(len(numerator), len(denominator)) - 1
    quantile = _t(degrees, level)
    spread_over = _standard_error(numerator) * quantile
    spread_under = _standard_error(denominator) * quantile
    square = under.value**2 - spread_under**2
    if square <= 0:
        raise ValueError("the denominator's mean is not clearly different from 0")
    product = over.value * under.value
    root = math.sqrt(max(product**2 - square * (over.value**2 - spread_over**2), 0))
    ratio = over.value / under.value
    # Without any spread all three are one number, which rounding must not put in another order.
    return Estimate(
        value=ratio,
        lower=min(ratio, (product - root) / square),
        upper=max(ratio, (product + root) / square),
    )


def net_benefit(
    *,
    baseline: Estimate,
    candidate: Estimate,
    failure_rise: Estimate,
    weight: float,
    price: float = 0.0,
    operations: float = 0.0,
) -> Estimate:
    """Net benefit per request with MOVER limits (Zou & Donner 2008, Stat Med 27:1693).

    L = est - sqrt((c_B - l_B)^2 + (u_Q - c_Q)^2 + (k c_B + p)^2 (u_F - dF)^2), U mirrored.
    All limits that enter have one level. `weight` is k, `price` p.
    """
    charge = weight * baseline.value + price
    value = baseline.value - candidate.value - charge * failure_rise.value - operations
    down = math.hypot(
        baseline.value - baseline.lower,
        candidate.upper - candidate.value,
        charge * (failure_rise.upper - failure_rise.value),
    )
    up = math.hypot(
        baseline.upper - baseline.value,
        candidate.value - candidate.lower,
        charge * (failure_rise.value - failure_rise.lower),
    )
    return Estimate(value=value, lower=value - down, upper=value + up)


def money_shown(benefit: Estimate) -> Measured:
    """The money gate: passed if the lower limit is above 0, failed if the upper is below 0 (A4)."""
    limits = f"net benefit per request {benefit.value:.4g} [{benefit.lower:.4g}, {benefit.upper:.4g}]"
    if benefit.lower > 0:
        return Measured(shown=Shown.PASSED, reason=f"{limits}: lower limit > 0")
    if benefit.upper < 0:
        return Measured(shown=Shown.FAILED, reason=f"{limits}: upper limit < 0")
    return Measured(shown=Shown.UNDECIDED, reason=f"{limits}: the limits enclose 0")


def _t(degrees: int, level: float) -> float:
    """Student's two-sided quantile; ValueError unless 0 < level < 1."""
    if not 0 < level < 1:
        raise ValueError(f"level must be in (0, 1), got {level}")
    # From the lower tail: (1 + level) / 2 of a high level would be 1.
    return -float(stdtrit(degrees, (1 - level) / 2))


def _standard_error(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))
