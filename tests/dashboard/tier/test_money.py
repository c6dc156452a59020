"""What adds up to the net benefit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from service.dashboard.sentences import sentences
from service.dashboard.tier.load import LoadRun
from service.dashboard.tier.money import money_chart, steps_of
from service.report.measured import Figure, Money
from service.report.words import Language, words
from tests.report.sample import sample

SAY, REPORT = sentences(Language.EN), words(Language.EN)
BASE = Money(price_per_hour=60.0, request_cost=Figure(value=0.004))
TIER = Money(
    price_per_hour=30.0,
    request_cost=Figure(value=0.0015),
    failure_rise=Figure(value=0.002),
    failure_weight=4.0,
    failure_price=0.01,
    operations=0.0001,
    net_benefit=Figure(value=0.002348, lower=0.0019, upper=0.0028, level=0.9),
)


def test_price_slo_failures_and_operations_add_up_to_the_net_benefit() -> None:
    steps = steps_of(BASE, TIER, "CNY", SAY, REPORT)
    amounts = {step.label: step.amount for step in steps}
    assert amounts["price"] == pytest.approx(0.002)  # half the price for the same tokens
    assert amounts["SLO"] == pytest.approx(0.0005)  # and more tokens an hour
    assert amounts["failures"] == pytest.approx(-(4 * 0.004 + 0.01) * 0.002)
    assert amounts["operations"] == pytest.approx(-0.0001)
    *parts, net = steps
    assert sum(step.amount for step in parts) == pytest.approx(net.amount)
    assert (net.total, net.lower, net.upper, net.tone) == (True, 0.0019, 0.0028, "good")


@pytest.mark.parametrize(
    ("lower", "upper", "tone"), [(-0.001, 0.003, "wait"), (-0.003, -0.001, "bad"), (None, None, "wait")]
)
def test_the_tone_is_that_of_the_limits(lower: float | None, upper: float | None, tone: str) -> None:
    value = 0.0 if lower is None or upper is None else (lower + upper) / 2
    money = replace(TIER, net_benefit=Figure(value=value, lower=lower, upper=upper))
    assert steps_of(BASE, money, "CNY", SAY, REPORT)[-1].tone == tone


@pytest.mark.parametrize(
    "missing", ["request_cost", "failure_rise", "failure_weight", "net_benefit", "price_per_hour"]
)
def test_while_a_part_is_unknown_there_is_no_sum(missing: str) -> None:
    unknown: dict[str, Any] = {missing: None}
    assert steps_of(BASE, replace(TIER, **unknown), "CNY", SAY, REPORT) == []
    assert steps_of(replace(BASE, request_cost=None), TIER, "CNY", SAY, REPORT) == []
    assert steps_of(replace(BASE, price_per_hour=None), TIER, "CNY", SAY, REPORT) == []


def test_a_run_that_measured_no_cost_has_no_chart() -> None:
    report = sample()
    first, second, _ = report.tiers
    whole = LoadRun(report=replace(report, tiers=(first, second)))
    drawn = money_chart(whole, SAY, REPORT)
    assert drawn is not None
    assert [row[0] for row in drawn.rows] == [
        "price",
        "SLO",
        "failures",
        "operations",
        "net benefit per request",
    ]
    assert "[" in drawn.rows[-1][1], "the net benefit has its limits"
    assert (
        money_chart(LoadRun(report=replace(report, tiers=(first, replace(second, money=None)))), SAY, REPORT)
        is None
    )
