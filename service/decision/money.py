"""The money gate: from the blocks of one load run and the failures of the pairs to a finding (statistics A9).

Costs come from fresh blocks, each arm at its own best rate; a sweep's own blocks were selected for being good
and do not count. The failures are of any criterion, one pair a request. All limits have level 1 - 2 alpha:
Student's t over blocks, Tango's for the failures (over conversations, with their design effect), combined by
MOVER (`economics.net_benefit`). Passed if the lower limit is above 0, failed if the upper is below it: each
errs about alpha of the time, at one look per load run. The j-th run of an epoch is held to alpha_j, as epochs
are (A5). Who runs one asks `held_to` of `service.store.verdicts.measurements` for j and alpha_j, takes the
failures from `service.store.scored.failures`, and keeps what the gate says by `put_measurement`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from service.decision import tango
from service.decision.clusters import design_effect
from service.decision.economics import (
    Estimate,
    mean_of_blocks,
    money_shown,
    net_benefit,
    request_cost,
    unit_cost,
)
from service.decision.evidence import Measured, Shown
from service.decision.failure_chain import FailureChain
from service.decision.slo import NO_ALPHA
from service.decision.tally import Tally
from service.decision.terms import DEFAULT_TERMS, Terms


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

    def unit_costs(self, level: float) -> Estimate:
        """Cost of a million tokens with limits; every block must have served some."""
        return mean_of_blocks(
            [
                unit_cost(price_per_hour=self.price_per_hour, tokens_per_second=rate)
                for rate in self.tokens_per_second
            ],
            level=level,
        )

    def costs(self, level: float) -> Estimate:
        """Cost of one request with limits."""
        found = self.unit_costs(level)
        each = [
            request_cost(cost, mean_output_tokens=self.mean_output_tokens)
            for cost in (found.value, max(0.0, found.lower), found.upper)
        ]
        return Estimate(value=each[0], lower=each[1], upper=each[2])


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
    terms: Terms = DEFAULT_TERMS,
    operations: float = 0.0,
) -> Measured:
    """What one load run shows.

    `alpha`, in [0, .5), is what this run is held to; at 0 nothing can be shown. `operations` is what running
    the tier costs besides, per request. The figures are in `numbers`, so that another price of a failure can
    be put to them (`at_terms`).
    """
    if not 0 <= alpha < 0.5:
        raise ValueError(f"alpha must be in [0, .5), got {alpha}")
    if not alpha:
        return NO_ALPHA
    for name, arm in (("baseline", baseline), ("candidate", candidate)):
        blocks = len(arm.tokens_per_second)
        if blocks < terms.least_blocks:
            return _undecided(f"blocks of the {name} ({blocks}) < {terms.least_blocks}")
        if not all(arm.tokens_per_second):
            return _undecided(f"a block of the {name} served no token within the SLO: its cost has no limit")
    if not failures.n:
        return _undecided("no pair of answers tells what failures cost")
    level = 1 - 2 * alpha
    figures = {
        "baseline request": baseline.costs(level),
        "candidate request": candidate.costs(level),
        "rise of failures": failure_rise(failures, level=level),
    }
    numbers: dict[str, float | int | str] = {
        "alpha": alpha,
        "baseline per 1M tokens": baseline.unit_costs(level).value,
        "candidate per 1M tokens": candidate.unit_costs(level).value,
        **{name: value for of, found in figures.items() for name, value in _numbered(of, found).items()},
        "operations": operations,
        "price per hour, baseline": baseline.price_per_hour,
        "price per hour, candidate": candidate.price_per_hour,
        "tok/s by block, baseline": _listed(baseline.tokens_per_second),
        "tok/s by block, candidate": _listed(candidate.tokens_per_second),
        "failures (n, b, c)": f"({failures.n}, {failures.harm}, {failures.benefit})",
        "failures, design effect": design_effect(failures),
        "output tokens of a request, baseline": baseline.mean_output_tokens,
        "output tokens of a request, candidate": candidate.mean_output_tokens,
    }
    return _weighed(numbers, terms.failure)


def at_terms(measured: Measured, terms: Terms) -> Measured:
    """The same run where a failure costs what these terms say; as it is where nothing was measured."""
    if "baseline request" not in measured.numbers:
        return measured
    found = _weighed(measured.numbers, terms.failure)
    return replace(measured, shown=found.shown, reason=found.reason, numbers=found.numbers)


def benefit_of(numbers: Mapping[str, float | int | str], failure: FailureChain) -> Estimate:
    """Net benefit per request of a run's figures at this cost of a failure."""
    return net_benefit(
        baseline=_read(numbers, "baseline request"),
        candidate=_read(numbers, "candidate request"),
        failure_rise=_read(numbers, "rise of failures"),
        weight=failure.weight,
        price=failure.price,
        operations=float(numbers["operations"]),
    )


def _weighed(numbers: Mapping[str, float | int | str], failure: FailureChain) -> Measured:
    benefit = benefit_of(numbers, failure)
    told = {
        **numbers,
        "k: failure in baseline requests": failure.weight,
        "failure besides": failure.price,
        **_numbered("net benefit per request", benefit),
    }
    # Of as much traffic as the baseline has now: a tier that says less of the same is not dearer for it.
    if tokens := float(numbers["output tokens of a request, baseline"]):
        each = benefit.value, benefit.lower, benefit.upper
        per_million = [value * 1e6 / tokens for value in each]
        found = Estimate(value=per_million[0], lower=per_million[1], upper=per_million[2])
        told |= _numbered("net benefit per 1M tokens", found)
    return replace(money_shown(benefit), numbers=told)


def _listed(rates: Sequence[float]) -> str:
    return ", ".join(f"{rate:.10g}" for rate in rates)


def _numbered(name: str, found: Estimate) -> dict[str, float | int | str]:
    return {name: found.value, f"{name}, lower": found.lower, f"{name}, upper": found.upper}


def _read(numbers: Mapping[str, float | int | str], name: str) -> Estimate:
    value, lower, upper = (float(numbers[each]) for each in (name, f"{name}, lower", f"{name}, upper"))
    return Estimate(value=value, lower=lower, upper=upper)


def _undecided(reason: str) -> Measured:
    return Measured(shown=Shown.UNDECIDED, reason=reason)
