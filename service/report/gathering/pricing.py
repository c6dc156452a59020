"""What tiers cost and save, from a job's findings: fresh blocks, and the money gate's numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from service.decision.economics import Estimate, effective_cost, mean_of_blocks
from service.decision.money import Arm
from service.decision.retries import RetryRate
from service.report.measured import Figure, Money

Json = Mapping[str, Any]
LEVEL = 0.9
"""Where no gate says otherwise: twice the usual alpha is left."""


def prices(findings: Json, retries: Mapping[str, RetryRate]) -> dict[str, Money]:
    """By tier; empty before the cost part is over."""
    arms: Sequence[Json] = findings.get("cost") or ()
    gates: dict[str, Json] = {
        each["tier"]: each for each in findings.get("gates", ()) if each["gate"] == "money"
    }
    level = _level(gates)
    return {arm["tier"]: _money(arm, gates.get(arm["tier"]), retries.get(arm["tier"]), level) for arm in arms}


def _level(gates: Mapping[str, Json]) -> float:
    """That of the gates' own limits, so that the parts of a sum have the level of the sum."""
    alphas = [float(each["numbers"]["alpha"]) for each in gates.values() if each["numbers"].get("alpha")]
    return 1 - 2 * max(alphas) if alphas and max(alphas) < 0.5 else LEVEL


def _money(arm: Json, gate: Json | None, retry: RetryRate | None, level: float) -> Money:
    price, goodputs, tokens = arm["price_per_hour"], list(arm["goodputs"]), arm["mean_output_tokens"]
    numbers: Json = {} if gate is None else gate["numbers"]
    if numbers.get("alpha"):
        level = 1 - 2 * float(numbers["alpha"])
    unit = request = speed = None
    if len(goodputs) >= 2:
        speed = _figure(mean_of_blocks(goodputs, level=level), level, len(goodputs))
    if price is not None and tokens is not None and len(goodputs) >= 2 and all(goodputs):
        own = Arm(price_per_hour=price, tokens_per_second=goodputs, mean_output_tokens=tokens)
        unit = _figure(own.unit_costs(level), level, len(goodputs))
        request = _figure(own.costs(level), level, len(goodputs))
    rate = None if retry is None else Figure(
        value=retry.value, lower=retry.lower, upper=retry.upper, level=None if retry.lower is None else 0.95
    )  # fmt: skip
    paid = None
    if unit is not None and retry is not None and retry.value < 1:
        paid = unit.times(effective_cost(1.0, retry_rate=retry.value))
    return Money(
        price_per_hour=price,
        tokens_per_second=speed,
        mean_output_tokens=tokens,
        unit_cost=unit,
        retry_rate=rate,
        effective_cost=paid,
        request_cost=request,
        failure_rise=_read(numbers, "rise of failures", level),
        failure_weight=_number(numbers, "k: failure in baseline requests"),
        failure_price=_number(numbers, "failure besides") or 0.0,
        operations=_number(numbers, "operations") or 0.0,
        net_benefit=_read(numbers, "net benefit per request", level),
        net_benefit_per_million=_read(numbers, "net benefit per 1M tokens", level),
        shown="" if gate is None else str(gate["reason"]),
    )


def _figure(found: Estimate, level: float, n: int) -> Figure:
    return Figure(value=found.value, lower=found.lower, upper=found.upper, level=level, n=n)


def _number(numbers: Json, name: str) -> float | None:
    found = numbers.get(name)
    return None if found is None else float(found)


def _read(numbers: Json, name: str, level: float) -> Figure | None:
    if name not in numbers:
        return None
    lower, upper = (float(numbers[f"{name}, {side}"]) for side in ("lower", "upper"))
    return Figure(value=float(numbers[name]), lower=lower, upper=upper, level=level)
