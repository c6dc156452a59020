"""The money gate: from the blocks of one load run and the failures of the pairs to a finding (statistics A9).

Costs come from fresh blocks, each arm at its own best rate; a sweep's own blocks were selected for being good
and do not count. The failures are of any criterion, one pair a request. All limits have level 1 - 2 alpha:
Student's t over blocks, Tango's for the failures (over conversations, with their design effect), combined by
MOVER (`economics.net_benefit`). Passed if the lower limit is above 0, failed if the upper is below it: each
errs about alpha of the time, at one look per load run. The j-th run of an epoch is to be held to alpha_j, as
epochs are (A5, `multiplicity.attempt_alpha`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from service.decision import tango
from service.decision.clusters import design_effect
from service.decision.economics import (
    Estimate,
    failure_weight,
    mean_of_blocks,
    money_shown,
    net_benefit,
    request_cost,
    unit_cost,
)
from service.decision.evidence import Measured, Shown
from service.decision.tally import Tally

LEAST_BLOCKS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """What one arm costs and did in a load run at its own best rate."""

    price_per_hour: float
    """Of the backends whose tokens are counted."""
    tokens_per_second: Sequence[float]
    """Output tokens that met the SLO, one figure for each fresh block."""
    mean_output_tokens: float
    """Of one request."""

    def __post_init__(self) -> None:
        if not all(math.isfinite(rate) and rate >= 0 for rate in self.tokens_per_second):
            raise ValueError("tokens per second must be finite and at least 0 in every block")

    def costs(self, level: float) -> Estimate:
        """Cost of one request with limits; every block must have served some."""
        return mean_of_blocks(
            [
                request_cost(
                    unit_cost(price_per_hour=self.price_per_hour, tokens_per_second=rate),
                    mean_output_tokens=self.mean_output_tokens,
                )
                for rate in self.tokens_per_second
            ],
            level=level,
        )


def failure_rise(failures: Tally, *, level: float) -> Estimate:
    """dF with Tango's limits; ValueError without pairs."""
    if not failures.n:
        raise ValueError("without pairs there is no rise of the failures")
    lower, upper = tango.interval(
        failures.harm, failures.benefit, failures.n, level, design_effect=design_effect(failures)
    )
    return Estimate(value=(failures.harm - failures.benefit) / failures.n, lower=lower, upper=upper)


def money_gate(
    baseline: Arm,
    candidate: Arm,
    failures: Tally,
    *,
    alpha: float,
    weight: float | None = None,
    operations: float = 0.0,
) -> Measured:
    """What one load run shows. `weight`: k, one failure in baseline requests; 4 unless given.

    `alpha`, in (0, .5), is what this run is held to. `operations` is what running the tier costs besides, per
    request.
    """
    if not 0 < alpha < 0.5:
        raise ValueError(f"alpha must be in (0, .5), got {alpha}")
    for name, arm in (("baseline", baseline), ("candidate", candidate)):
        blocks = len(arm.tokens_per_second)
        if blocks < LEAST_BLOCKS:
            return _undecided(f"blocks of the {name} ({blocks}) < {LEAST_BLOCKS}")
        if not all(arm.tokens_per_second):
            return _undecided(f"a block of the {name} served no token within the SLO: its cost has no limit")
    if not failures.n:
        return _undecided("no pair of answers tells what failures cost")
    level = 1 - 2 * alpha
    return money_shown(
        net_benefit(
            baseline=baseline.costs(level),
            candidate=candidate.costs(level),
            failure_rise=failure_rise(failures, level=level),
            weight=failure_weight() if weight is None else weight,
            operations=operations,
        )
    )


def _undecided(reason: str) -> Measured:
    return Measured(shown=Shown.UNDECIDED, reason=reason)
