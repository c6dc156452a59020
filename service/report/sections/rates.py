"""How much a tier takes: goodput over the rate asked for, and TPOT over the number of requests at once."""

from __future__ import annotations

from collections.abc import Iterator

from service.charts.chart import chart
from service.charts.curve import CurvePoint, Reference, Series, curve
from service.report import writing
from service.report.blocks import Block, Bullets, Drawing, Formula, Paragraph, Section
from service.report.document import Report
from service.report.measured import RatePoint
from service.report.shared import named, reasons_of, style_of
from service.report.words import Words


def rates(report: Report, say: Words) -> Section | None:
    """None when no tier was swept."""
    blocks = [*_goodput(report, say), *_concurrency(report, say)]
    if not blocks:
        return None
    return Section(anchor="rates", title=say("rates.title"), blocks=tuple(blocks))


def _goodput(report: Report, say: Words) -> Iterator[Block]:
    swept = [(each, each.sweep) for each in report.tiers if each.sweep is not None]
    if not swept:
        return
    yield Paragraph(text=say("rates.about"))
    told = [
        say("rates.best", tier=tier.name, rate=writing.rate(sweep.best_rate))
        if sweep.best_rate is not None
        else say("rates.not_reached", tier=tier.name)
        for tier, sweep in swept
    ]
    yield Drawing(
        chart=chart(
            curve(
                [
                    Series(
                        label=named(say, tier),
                        style=style_of(report, tier),
                        points=tuple(
                            CurvePoint(
                                x=point.rate,
                                y=point.goodput,
                                hollow=bool(point.invalid),
                                tip=f"{tier.name}: {_reached(point)}",
                            )
                            for point in sorted(sweep.points, key=lambda each: each.rate)
                            if not point.fresh
                        ),
                    )
                    for tier, sweep in swept
                ],
                x_name=say("rates.axis"),
                y_name=say("rates.goodput"),
                x_from_zero=True,
                nothing=say("rates.nothing"),
            ),
            name="goodput",
            title=say("rates.chart"),
            text=say("punctuation.between_sentences").join(told),
            head=[say("glance.tier"), *(say(f"rates.{name}") for name in _POINT_HEAD)],
            rows=[
                (named(say, tier), *_point_cells(point, say))
                for tier, sweep in swept
                for point in sweep.points
            ],
        ),
        numbers_title=say("rates.numbers"),
    )
    yield Bullets(items=tuple(told))
    notes = tuple((tier.name, sweep.note) for tier, sweep in swept if sweep.note)
    if notes:
        yield reasons_of(say, notes)
    yield Formula(text="goodput = Σ n(passed) / T", where=say("rates.formula"))


def _reached(point: RatePoint) -> str:
    return f"{writing.rate(point.rate)}, {writing.speed(point.goodput)}"


_POINT_HEAD = ("rate", "purpose", "goodput", "pass_rate", "ttft", "tpot", "usable")


def _point_cells(point: RatePoint, say: Words) -> tuple[str, ...]:
    return (
        writing.rate(point.rate),
        say("rates.fresh") if point.fresh else say("rates.search"),
        writing.speed(point.goodput),
        writing.or_none(point.pass_rate, writing.per_cent),
        writing.or_none(point.ttft_p95_seconds, writing.time),
        writing.or_none(point.tpot_p95_seconds, writing.time),
        say("rates.no") if point.invalid else say("rates.yes"),
    )


def _concurrency(report: Report, say: Words) -> Iterator[Block]:
    tried = [(each, each.concurrency) for each in report.tiers if each.concurrency is not None]
    if not tried:
        return
    limit = next((each.limit_seconds for _, each in tried if each.limit_seconds is not None), None)
    told = [
        say("rates.largest", tier=tier.name, largest=found.largest)
        if found.largest is not None
        else say("rates.no_largest", tier=tier.name)
        for tier, found in tried
    ]
    yield Paragraph(text=say("rates.concurrency_about"))
    yield Drawing(
        chart=chart(
            curve(
                [
                    Series(
                        label=named(say, tier),
                        style=style_of(report, tier),
                        points=tuple(
                            CurvePoint(
                                x=point.concurrency,
                                y=1000 * point.tpot_p95_seconds,
                                hollow=bool(point.invalid),
                                tip=f"{tier.name}: {writing.time(point.tpot_p95_seconds)}",
                            )
                            for point in sorted(found.points, key=lambda each: each.concurrency)
                            if point.tpot_p95_seconds is not None
                        ),
                    )
                    for tier, found in tried
                ],
                x_name=say("rates.concurrency_axis"),
                y_name=say("rates.tpot_axis"),
                references=[]
                if limit is None
                else [Reference(at=1000 * limit, label=say("rates.limit", limit=writing.time(limit)))],
                x_from_zero=True,
                nothing=say("rates.nothing"),
            ),
            name="concurrency",
            title=say("rates.concurrency_chart"),
            text=say("punctuation.between_sentences").join(told),
            head=[
                say("glance.tier"),
                *(say(f"rates.{name}") for name in ("at_once", "tpot", "throughput", "usable")),
            ],
            rows=[
                (
                    named(say, tier),
                    str(point.concurrency),
                    writing.or_none(point.tpot_p95_seconds, writing.time),
                    writing.speed(point.throughput),
                    say("rates.no") if point.invalid else say("rates.yes"),
                )
                for tier, found in tried
                for point in found.points
            ],
        ),
        numbers_title=say("rates.concurrency_numbers"),
    )
    yield Bullets(items=tuple(told))
    notes = tuple((tier.name, found.note) for tier, found in tried if found.note)
    if notes:
        yield reasons_of(say, notes)
