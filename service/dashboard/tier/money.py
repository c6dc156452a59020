"""What a request saves on a tier, and what is left of it: price, SLO, failures, operations, net benefit.

With c_B and c_Q what a request costs on baseline and tier, P their prices an hour and dF the rise of the
failure rate, each of which costs k requests of the baseline and p besides (statistics A9):

    price       c_B - c_B P_Q / P_B            the same tokens for another price
    SLO         c_B P_Q / P_B - c_Q            more, or fewer, tokens an hour that met the SLO
    failures    -(k c_B + p) dF
    operations  -operations

which add up to the net benefit.
"""

from __future__ import annotations

from service.charts.chart import Chart, chart
from service.charts.waterfall import Step, waterfall
from service.dashboard.tier.load import LoadRun
from service.report import writing
from service.report.measured import Money
from service.report.words import Words


def money_chart(run: LoadRun, say: Words, report: Words) -> Chart | None:
    """None while a part of the sum is unknown."""
    base = run.report.baseline
    money = run.tier.money
    if base is None or base.money is None or money is None:
        return None
    steps = steps_of(base.money, money, run.report.currency, say, report)
    if not steps:
        return None
    *parts, net = steps
    # Beside the bar there is no room for the level of the limits.
    whole = writing.figure(money.net_benefit, writing.money(run.report.currency))
    rows = [*((step.label, step.numbers) for step in parts), (net.label, whole)]
    return chart(
        waterfall(steps, x_name=report("costs.axis", currency=run.report.currency)),
        name="money",
        title=say("tier_money.chart", tier=run.tier.name),
        text=report("punctuation.list").join(f"{label}: {numbers}" for label, numbers in rows),
        head=[report("costs.step"), report("costs.amount")],
        rows=rows,
        data=[
            ("step", "amount", "lower", "upper", "level", "currency"),
            *(
                (step.label, step.amount, step.lower, step.upper, level, run.report.currency)
                for step in steps
                for level in [money.net_benefit.level if step.total and money.net_benefit else None]
            ),
        ],
    )


def steps_of(base: Money, money: Money, currency: str, say: Words, report: Words) -> list[Step]:
    """From the price to the net benefit; empty while a part of it is unknown."""
    before, after, benefit = base.request_cost, money.request_cost, money.net_benefit
    rise, weight = money.failure_rise, money.failure_weight
    if before is None or after is None or benefit is None or rise is None or weight is None:
        return []
    if not base.price_per_hour or money.price_per_hour is None:
        return []
    repriced = before.value * money.price_per_hour / base.price_per_hour
    amounts = {
        say("tier_money.price"): before.value - repriced,
        say("tier_money.slo"): repriced - after.value,
        report("costs.failures"): -(weight * before.value + money.failure_price) * rise.value,
        report("costs.operations"): -money.operations,
    }
    write = writing.money(currency)
    lower, upper = benefit.lower, benefit.upper
    return [
        *(Step(label=label, amount=amount, numbers=write(amount)) for label, amount in amounts.items()),
        Step(
            label=report("costs.net"),
            amount=benefit.value,
            total=True,
            lower=lower,
            upper=upper,
            tone="good" if (lower or 0) > 0 else "bad" if (upper or 0) < 0 else "wait",
            numbers=writing.limits(benefit, write),
        ),
    ]
