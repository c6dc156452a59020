"""Money: what a request costs on each tier, and what is left of the saving once failures are paid for."""

from __future__ import annotations

from collections.abc import Iterator

from service.charts.chart import chart
from service.charts.waterfall import Step, waterfall
from service.report import writing
from service.report.blocks import Block, Drawing, Folded, Formula, Paragraph, Section, Table, beside
from service.report.document import Report, TierReport
from service.report.measured import Money
from service.report.shared import named, reasons_of, tier_anchor
from service.report.words import Words

HEAD = (
    "price",
    "goodput",
    "length",
    "unit_cost",
    "retry_rate",
    "effective_cost",
    "request_cost",
    "failure_rise",
    "net",
    "net_million",
)


def costs(report: Report, say: Words) -> Section:
    """Every tier's costs and each candidate's waterfall; without a cost part, what is missing."""
    title = say("costs.title")
    priced = [(each, each.money) for each in report.tiers if each.money is not None]
    if not priced:
        return Section(
            anchor="costs", title=title, blocks=(Paragraph(text=say("costs.nothing"), tone="wait"),)
        )
    baseline = report.baseline
    base = None if baseline is None else baseline.money
    blocks: list[Block] = [Paragraph(text=say("costs.about"))]
    for tier, money in priced:
        if not tier.baseline and base is not None:
            blocks.extend(_waterfall(report, tier, base, money, say))
    blocks.append(_table(report, priced, say))
    blocks.extend(_formulas(report, priced, base, say))
    sentences = tuple((tier.name, money.shown) for tier, money in priced if money.shown)
    if sentences:
        blocks.append(Folded(title=say("costs.gate"), blocks=(reasons_of(say, sentences),)))
    return Section(anchor="costs", title=title, blocks=tuple(blocks))


def steps_of(base: Money, money: Money, currency: str, say: Words) -> list[Step]:
    """From the baseline's request cost down to the net benefit; empty while a part of it is unknown."""
    if base.request_cost is None or money.request_cost is None or money.net_benefit is None:
        return []
    write = writing.money(currency)
    saved = base.request_cost.value - money.request_cost.value
    failures = money.failure_rise.value if money.failure_rise is not None else 0.0
    charge = ((money.failure_weight or 0.0) * base.request_cost.value + money.failure_price) * failures
    benefit = money.net_benefit
    return [
        Step(
            label=say("costs.baseline_request"),
            amount=base.request_cost.value,
            total=True,
            numbers=write(base.request_cost.value),
        ),
        Step(
            label=say("costs.tier_request"),
            amount=-money.request_cost.value,
            tone="sum",
            numbers=write(-money.request_cost.value),
        ),
        Step(label=say("costs.saved"), amount=saved, total=True, numbers=write(saved)),
        Step(label=say("costs.failures"), amount=-charge, numbers=write(-charge)),
        Step(label=say("costs.operations"), amount=-money.operations, numbers=write(-money.operations)),
        Step(
            label=say("costs.net"),
            amount=benefit.value,
            total=True,
            lower=benefit.lower,
            upper=benefit.upper,
            tone="good" if (benefit.lower or 0) > 0 else "bad" if (benefit.upper or 0) < 0 else "wait",
            numbers=writing.limits(benefit, write),
        ),
    ]


def _waterfall(report: Report, tier: TierReport, base: Money, money: Money, say: Words) -> Iterator[Block]:
    steps = steps_of(base, money, report.currency, say)
    if not steps:
        yield Paragraph(text=say("costs.incomplete", tier=tier.name), tone="wait")
        return
    yield Drawing(
        chart=chart(
            waterfall(steps, x_name=say("costs.axis", currency=report.currency)),
            name=f"waterfall-{tier_anchor(report, tier)}",
            title=say("costs.chart", tier=tier.name),
            text=say("punctuation.list").join(f"{step.label}: {step.numbers}" for step in steps),
            head=[say("costs.step"), say("costs.amount")],
            rows=[(step.label, step.numbers) for step in steps],
        ),
        numbers_title=say("page.numbers"),
    )


def _table(report: Report, priced: list[tuple[TierReport, Money]], say: Words) -> Table:
    money, million = writing.money(report.currency), writing.money(report.currency, "/ 1M tok")
    hourly = writing.money(report.currency, "/ h")
    blocks = say("costs.blocks")

    def cells(told: Money) -> tuple[str, ...]:
        return (
            writing.or_none(told.price_per_hour, hourly),
            writing.figure(told.tokens_per_second, writing.speed, of=blocks),
            writing.or_none(told.mean_output_tokens, lambda tokens: f"{tokens:,.1f} tok"),
            writing.figure(told.unit_cost, million, of=blocks),
            writing.figure(told.retry_rate, writing.per_cent),
            writing.figure(told.effective_cost, million),
            writing.figure(told.request_cost, money),
            writing.figure(told.failure_rise, writing.points, of=say("costs.pairs")),
            writing.figure(told.net_benefit, money),
            writing.figure(told.net_benefit_per_million, million),
        )

    columns = [cells(told) for _, told in priced]
    return beside(
        say("costs.caption"),
        say("costs.figure"),
        tuple(named(say, tier) for tier, _ in priced),
        [(say(f"costs.{name}"), [column[line] for column in columns]) for line, name in enumerate(HEAD)],
    )


def _formulas(
    report: Report, priced: list[tuple[TierReport, Money]], base: Money | None, say: Words
) -> Iterator[Block]:
    money, million = writing.money(report.currency), writing.money(report.currency, "/ 1M tok")
    yield Formula(
        text="unit cost = price × 10⁶ / (goodput × 3600)\neffective cost = unit cost / (1 − r)",
        where=say("costs.unit_formula"),
        worked=tuple(
            f"{tier.name}: {told.price_per_hour:g} × 10⁶ / ({told.tokens_per_second.value:,.1f} × 3600) "
            f"≈ {million(told.unit_cost.value)}"
            for tier, told in priced
            if told.price_per_hour is not None
            and told.tokens_per_second is not None
            and told.unit_cost is not None
        ),
    )
    yield Formula(
        text="net benefit = c_B − c_Q − (k × c_B + p) × dF − operations",
        where=say("costs.net_formula"),
        worked=tuple(
            f"{tier.name}: {_plain(base.request_cost.value)} − {_plain(told.request_cost.value)} − "
            f"({told.failure_weight:g} × {_plain(base.request_cost.value)} + {_plain(told.failure_price)}) × "
            f"{_plain(told.failure_rise.value)} − {_plain(told.operations)} ≈ {money(told.net_benefit.value)}"
            for tier, told in priced
            if base is not None
            and base.request_cost is not None
            and told.request_cost is not None
            and told.failure_rise is not None
            and told.failure_weight is not None
            and told.net_benefit is not None
        ),
    )


def _plain(number: float) -> str:
    return f"({number:.4g})" if number < 0 else f"{number:.4g}"
