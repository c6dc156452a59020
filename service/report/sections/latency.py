"""Latency and SLO under equal load: distributions of TTFT and TPOT, their quantiles, who met the SLO."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from service.charts.chart import Datum, chart
from service.charts.distribution import Spread, distribution
from service.report import writing
from service.report.blocks import Block, Drawing, Folded, Formula, Paragraph, Section, Table, beside
from service.report.document import Report, TierReport
from service.report.measured import Latency, Load, Metric
from service.report.shared import named, reason, reasons_of, style_of
from service.report.words import Words

SHOWN_SHARES = ("0.5", "0.95", "0.99")
DATA = ("tier", "share_done", "ms", "lower_ms", "upper_ms", "level", "requests", "never_done")


def latency(report: Report, say: Words) -> Section:
    """Every tier side by side; without an SLO part, the section says what is missing."""
    measured = [(each, each.load) for each in report.tiers if each.load is not None]
    title = say("latency.title")
    if not measured:
        return Section(
            anchor="latency", title=title, blocks=(Paragraph(text=say("latency.nothing"), tone="wait"),)
        )
    blocks: list[Block] = [Paragraph(text=say("latency.about"))]
    for metric in Metric:
        blocks.extend(_drawing(report, metric, say))
    blocks.append(
        Formula(
            text="TTFT = t(first token) − t(scheduled)\nTPOT = (t(last) − t(first)) / (n − 1)\n"
            "E2E = TTFT + TPOT × (n − 1)",
            where=say("latency.formula"),
        )
    )
    blocks.append(_slo_table(measured, say))
    blocks.append(Formula(text="pass rate = passed / offered", where=say("latency.pass_formula")))
    sentences = tuple((tier.name, load.shown) for tier, load in measured if load.shown)
    if sentences:
        blocks.append(Folded(title=say("latency.gate"), blocks=(reasons_of(say, sentences),)))
    blocks.append(_generator_table(measured, say))
    invalid = tuple((tier.name, why) for tier, load in measured for why in load.invalid)
    if invalid:
        blocks.append(Paragraph(text=say("latency.invalid", count=len(invalid)), tone="bad"))
        blocks.append(reasons_of(say, invalid))
    return Section(anchor="latency", title=title, blocks=tuple(blocks))


def _drawing(report: Report, metric: Metric, say: Words) -> Iterator[Block]:
    known = [
        (tier, found)
        for tier in report.tiers
        if tier.load is not None
        for found in [tier.load.latency(metric)]
        if found is not None
    ]
    if not known:
        return
    goal = next((found.limit_seconds for _, found in known if found.limit_seconds is not None), None)
    name = say(f"metric.{metric}")
    yield Drawing(
        chart=chart(
            distribution(
                [
                    Spread(
                        label=named(say, tier),
                        style=style_of(report, tier),
                        points=tuple((share, 1000 * seconds) for share, seconds in found.distribution),
                    )
                    for tier, found in known
                ],
                x_name=say("latency.axis", metric=name),
                y_name=say("latency.share"),
                goal=None if goal is None else 1000 * goal,
                goal_label="" if goal is None else f"SLO {writing.time(goal)}",
                nothing=say("latency.no_requests"),
            ),
            name=f"latency-{metric}",
            title=say("latency.chart", metric=name),
            text=_in_words(known, name, goal, say),
            head=[
                say("glance.tier"),
                say("latency.requests"),
                say("latency.never"),
                *(f"P{100 * float(share):g}" for share in SHOWN_SHARES),
                say("latency.difference"),
            ],
            rows=[_cells(tier, found, say) for tier, found in known],
            data=[DATA, *(row for tier, found in known for row in _data(tier, found))],
        ),
        numbers_title=say("latency.quantiles", metric=name),
        open=metric is not Metric.E2E,
    )


def _in_words(known: list[tuple[TierReport, Latency]], name: str, goal: float | None, say: Words) -> str:
    told = [
        say(
            "latency.in_words",
            tier=tier.name,
            p50=writing.limits(found.quantiles.get("0.5"), writing.time),
            p95=writing.limits(found.quantiles.get("0.95"), writing.time),
        )
        for tier, found in known
    ]
    if goal is not None:
        told.append(say("latency.goal_in_words", metric=name, goal=writing.time(goal)))
    return say("punctuation.between_sentences").join(told)


def _cells(tier: TierReport, found: Latency, say: Words) -> tuple[str, ...]:
    return (
        named(say, tier),
        writing.count(found.n),
        writing.count(found.never),
        *(writing.figure(found.quantiles.get(share), writing.time) for share in SHOWN_SHARES),
        writing.figure(found.p95_difference, writing.time_difference),
    )


def _data(tier: TierReport, found: Latency) -> Iterator[Sequence[Datum]]:
    """Every point of the line, with limits where there are some."""
    limits = {float(share): figure for share, figure in found.quantiles.items()}
    for share, seconds in found.distribution:
        told = limits.get(share)
        ends = (None, None) if told is None else (told.lower, told.upper)
        times = (None if each is None else 1e3 * each for each in (seconds, *ends))
        yield tier.name, share, *times, None if told is None else told.level, found.n, found.never


def _slo_table(measured: list[tuple[TierReport, Load]], say: Words) -> Table:
    def cells(load: Load) -> tuple[str, ...]:
        failed = [f"{reason(say, fault)} {writing.count(many)}" for fault, many in load.failed.items()]
        return (
            writing.count(load.offered),
            writing.count(load.passed),
            say("punctuation.list").join(failed) or "0",
            writing.figure(load.pass_rate, writing.per_cent),
            writing.figure(load.rise, writing.points),
            writing.or_none(load.margin, writing.margin),
        )

    head = ("offered", "passed", "failed", "pass_rate", "rise", "margin")
    return _beside("latency.slo", head, measured, cells, say)


def _generator_table(measured: list[tuple[TierReport, Load]], say: Words) -> Table:
    def cells(load: Load) -> tuple[str, ...]:
        return (
            writing.count(load.blocks),
            writing.count(len(load.invalid)),
            say.known(f"arrivals.{load.arrivals}", load.arrivals or writing.NONE),
            writing.or_none(load.asked_rate, writing.rate),
            writing.or_none(load.achieved_rate, writing.rate),
            writing.or_none(load.lag_p99_seconds, writing.time),
            writing.or_none(load.identity_error_seconds, writing.time),
        )

    head = ("blocks", "left_out", "arrivals", "asked", "achieved", "lag", "identity")
    return _beside("latency.generator", head, measured, cells, say)


def _beside(
    caption: str,
    head: tuple[str, ...],
    measured: list[tuple[TierReport, Load]],
    cells: Callable[[Load], tuple[str, ...]],
    say: Words,
) -> Table:
    columns = [cells(load) for _, load in measured]
    return beside(
        say(caption),
        say("costs.figure"),
        tuple(named(say, tier) for tier, _ in measured),
        [(say(f"latency.{name}"), [column[line] for column in columns]) for line, name in enumerate(head)],
    )
