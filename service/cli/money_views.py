"""What `tiergate money` prints, for a person and as JSON."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from service.decision.costing import Costing, Offer

WEIGHTS = (3.0, 4.0, 5.0)
"""Prices of a failure beside the one that is given, in requests of the baseline."""


def costing_document(costing: Costing, currency: str) -> dict[str, Any]:
    """The JSON of `money`; money is in the currency."""
    return {
        "currency": currency,
        "baseline": _offer_document(costing, costing.baseline),
        "candidate": _offer_document(costing, costing.candidate),
        "failure": {
            "rise": costing.failure_rise,
            "cost": costing.failure_cost,
            "weight": costing.failure.weight,
            "price": costing.failure.price,
            "steps": [
                {"name": step.name, "reached": reach, "multiple": step.multiple, "price": step.price}
                for step, reach in costing.failure.reached
            ],
        },
        "operations": costing.operations,
        "net_benefit": {
            "per_request": costing.net_benefit,
            "per_million_tokens": costing.net_benefit_per_million,
        },
        "break_even_rise": costing.break_even,
        "times_cheaper": costing.times_cheaper if math.isfinite(costing.times_cheaper) else None,
    }


def _offer_document(costing: Costing, offer: Offer) -> dict[str, float | None]:
    return {
        "price_per_hour": offer.price_per_hour,
        "tokens_per_second": offer.tokens_per_second,
        "output_tokens": offer.output_tokens,
        "failures": offer.failures,
        "unit_cost": offer.unit_cost,
        "effective_cost": costing.effective_cost(offer),
        "request_cost": offer.request_cost,
    }


def print_costing(costing: Costing, currency: str) -> None:
    """Costs of both, what a failure costs, what is left, and what would be at other prices of a failure."""
    console = Console(file=sys.stdout, highlight=False, soft_wrap=True)
    console.print(_costs(costing, currency))
    for line in _failure(costing, currency):
        console.print(Text(line))
    console.print(Text("\nwhat is left", style="bold"))
    console.print(_left(costing, currency))
    console.print(Text(_conclusion(costing, currency)))


def _table(*columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column(columns[0], no_wrap=True)
    for column in columns[1:]:
        table.add_column(column, justify="right")
    return table


def _costs(costing: Costing, currency: str) -> Table:
    table = _table(f"in {currency}", "baseline", "candidate", "ratio")
    baseline, candidate = costing.baseline, costing.candidate
    rows = (
        ("per hour", baseline.price_per_hour, candidate.price_per_hour),
        ("per 1M tokens within the SLO", baseline.unit_cost, candidate.unit_cost),
        (
            "  with retries paid for (shown)",
            costing.effective_cost(baseline),
            costing.effective_cost(candidate),
        ),
        ("per request", baseline.request_cost, candidate.request_cost),
    )
    for name, first, second in rows:
        ratio = f"{second / first:.3f}" if first and second is not None else "-"
        table.add_row(name, _amount(first), _amount(second), ratio)
    table.add_row(
        "requests that fail",
        f"{baseline.failures:.2%}",
        f"{candidate.failures:.2%}",
        f"{100 * costing.failure_rise:+.2f} pp",
    )
    return table


def _failure(costing: Costing, currency: str) -> Iterator[str]:
    chain = costing.failure
    steps = ", then ".join(
        f"{step.name} ({reach:.3g} of all, at {_cost(step.multiple, step.price, currency)})"
        for step, reach in chain.reached
    )
    yield f"\na failure: {steps or 'costs nothing'}"
    weight = f"k = {chain.weight:.4g} requests of the baseline"
    besides = f", and {_amount(chain.price)} {currency}" if chain.price else ""
    yield f"  {weight}{besides}: {_amount(costing.failure_cost)} {currency}"


def _cost(multiple: float, price: float, currency: str) -> str:
    told = [f"{multiple:g}x"] if multiple or not price else []
    return " + ".join([*told, *([f"{price:g} {currency}"] if price else [])])


def _left(costing: Costing, currency: str) -> Table:
    from service.decision.failure_chain import FailureChain

    table = _table("one failure costs", "per request", "per 1M tokens", "times cheaper")
    table.add_row("as given", *_numbers(costing), style="bold")
    for weight in WEIGHTS:
        other = replace(costing, failure=FailureChain.of_weight(weight))
        table.add_row(f"k = {weight:g}", *_numbers(other))
    return table


def _numbers(costing: Costing) -> tuple[str, str, str]:
    times = costing.times_cheaper
    return (
        _amount(costing.net_benefit),
        _amount(costing.net_benefit_per_million),
        f"{times:.2f}x" if math.isfinite(times) else "free",
    )


def _conclusion(costing: Costing, currency: str) -> str:
    verb = "saves" if costing.net_benefit > 0 else "costs"
    told = f"The candidate {verb} {_amount(abs(costing.net_benefit_per_million))} {currency} per 1M tokens"
    if costing.break_even is None:
        return f"{told}; a failure costs nothing, so none is charged."
    if costing.break_even <= 0:
        return f"{told}; it is no cheaper to run, so no failure rate makes it pay."
    return (
        f"{told}. It pays as long as failures rise by less than {100 * costing.break_even:.2f} pp; "
        f"they rise by {100 * costing.failure_rise:.2f} pp."
    )


def _amount(value: float | None) -> str:
    """Four significant digits, as people write money."""
    if value is None:
        return "-"
    digits = 2 if value == 0 or abs(value) >= 100 else max(2, 3 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"
