"""What the engines told during the run: one chart a number, every tier in it."""

from __future__ import annotations

from collections.abc import Iterator

from service.charts.chart import chart
from service.charts.curve import CurvePoint, Series, curve
from service.report import writing
from service.report.blocks import Block, Bullets, Drawing, Paragraph, Section
from service.report.document import Report, TierReport
from service.report.measured import EngineSeries
from service.report.shared import named, slug, style_of
from service.report.words import Words

SHARES = {"kv_usage", "prefix_hit_rate"}
"""Told as shares, shown in per cent."""


def engines(report: Report, say: Words) -> Section | None:
    """None when no tier of the run has an engine that was asked."""
    asked = [each for each in report.tiers if each.engine or each.engine_not_told]
    if not asked:
        return None
    metrics = list(dict.fromkeys(series.metric for tier in asked for series in tier.engine))
    blocks: list[Block] = [Paragraph(text=say("engines.about"))]
    for metric in metrics:
        blocks.extend(_drawing(report, asked, metric, say))
    missing = tuple(
        say(
            "engines.not_told",
            tier=tier.name,
            metrics=say("punctuation.list").join(
                say.known(f"engine.{name}", name.replace("_", " ")) for name in tier.engine_not_told
            ),
        )
        for tier in asked
        if tier.engine_not_told
    )
    if missing:
        blocks.append(Bullets(items=missing))
    return Section(anchor="engines", title=say("engines.title"), blocks=tuple(blocks))


def _drawing(report: Report, tiers: list[TierReport], metric: str, say: Words) -> Iterator[Block]:
    known = [(tier, series) for tier in tiers for series in tier.engine if series.metric == metric]
    name = say.known(f"engine.{metric}", metric.replace("_", " "))
    scale = 100.0 if metric in SHARES else 1.0
    yield Drawing(
        chart=chart(
            curve(
                [
                    Series(
                        label=named(say, tier),
                        style=style_of(report, tier),
                        points=tuple(
                            CurvePoint(x=at / 60, y=None if number is None else scale * number, marked=False)
                            for at, number in series.points
                        ),
                    )
                    for tier, series in known
                ],
                x_name=say("engines.axis"),
                y_name=f"{name} (%)" if metric in SHARES else name,
                x_from_zero=True,
                height=150,
                nothing=say("engines.nothing"),
            ),
            name=f"engine-{slug(metric)}",
            title=say("engines.chart", metric=name),
            text=say("punctuation.between_sentences").join(
                _in_words(tier, series, metric, say) for tier, series in known
            ),
            head=[
                say("glance.tier"),
                *(say(f"engines.{part}") for part in ("looks", "least", "mean", "most", "last")),
            ],
            rows=[_cells(tier, series, metric, say) for tier, series in known],
        ),
        numbers_title=say("page.numbers"),
    )


def _known(series: EngineSeries) -> list[float]:
    return [number for _, number in series.points if number is not None]


def _write(metric: str) -> writing.Write:
    return writing.per_cent if metric in SHARES else lambda number: f"{number:,.4g}"


def _in_words(tier: TierReport, series: EngineSeries, metric: str, say: Words) -> str:
    known, write = _known(series), _write(metric)
    if not known:
        return say("engines.none_in_words", tier=tier.name)
    mean = sum(known) / len(known)
    return say(
        "engines.in_words", tier=tier.name, least=write(min(known)), mean=write(mean), most=write(max(known))
    )


def _cells(tier: TierReport, series: EngineSeries, metric: str, say: Words) -> tuple[str, ...]:
    known, write = _known(series), _write(metric)
    if not known:
        return (named(say, tier), "0", *(writing.NONE for _ in range(4)))
    numbers = (min(known), sum(known) / len(known), max(known), known[-1])
    return (named(say, tier), writing.count(len(known)), *(write(number) for number in numbers))
