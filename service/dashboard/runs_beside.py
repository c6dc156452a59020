"""`/jobs/beside`: runs of one model side by side: verdicts, key figures with limits, what was different."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from starlette.responses import Response

from service.approval.errors import Problem, echo
from service.approval.jobs import find_job
from service.approval.reports import written_report
from service.charts.chart import Chart, Datum, chart
from service.charts.curve import CurvePoint, Series, curve
from service.dashboard import formats
from service.dashboard.sentences import sentences
from service.dashboard.site import Site
from service.dashboard.visit import Visit
from service.report import writing
from service.report.changes import KEY_FIGURES, Change, judged, key_figures, manifest_changes
from service.report.document import Report, from_json
from service.report.measured import Figure
from service.report.sections.changed import writer_of
from service.report.shared import TONES, decided
from service.report.words import Words, words

LEAST_RUNS, MOST_RUNS = 2, 6
DAY = 86_400.0
CHANGE_TONES = {Change.BETTER: "good", Change.WORSE: "bad", Change.NEW: "", Change.GONE: "wait"}
_SCALES = {
    "pass_rate": (100.0, "%"),
    "failure_rise": (100.0, "pp"),
    "ttft_p95": (1e3, "ms"),
    "tpot_p95": (1e3, "ms"),
}
"""What a figure is drawn in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BesideCell:
    """One figure of one run, and which way it went since the run before."""

    text: str
    change: str = ""
    tone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BesideRow:
    """One figure of one tier in every run."""

    tier: str
    name: str
    cells: tuple[BesideCell, ...]


def beside(site: Site, visit: Visit) -> Response:
    """The page. Runs come as `runs=A,B`, or one by one as ticked boxes send them."""
    ticked = visit.request.query_params.getlist("run")
    if ticked:
        return site.see("/jobs/beside", runs=",".join(ticked[: MOST_RUNS + 1]))
    reports = _reports(site, visit)
    say, told = sentences(visit.language), words(visit.language)
    figure = visit.one_of("figure", tuple(KEY_FIGURES), next(iter(KEY_FIGURES)))
    return site.page(
        visit,
        "runs_beside.html",
        charts=[_chart(reports, figure, say, told)],
        reports=reports,
        model_name=reports[0].run.model,
        verdicts=list(_verdicts(reports, told)),
        rows=list(_figures(reports, told)),
        differences=[
            (before.run.id, now.run.id, manifest_changes(before.manifest, now.manifest))
            for before, now in pairwise(reports)
        ],
        states={
            report.run.id: told.known(f"state.{report.run.state}", report.run.state) for report in reports
        },
        figure=figure,
        figures={name: told(f"figure.{name}") for name in KEY_FIGURES},
        runs=",".join(report.run.id for report in reports),
    )


def _reports(site: Site, visit: Visit) -> list[Report]:
    """In the order of their beginnings; Problem for too few, too many, or runs of several models."""
    asked = list(dict.fromkeys(name for name in visit.asked("runs").split(",") if name))
    if not LEAST_RUNS <= len(asked) <= MOST_RUNS:
        raise Problem(
            422,
            "invalid_request",
            f"runs: {len(asked)} of them; {LEAST_RUNS} to {MOST_RUNS} can stand side by side",
            hint="tick them in the list of runs",
        )
    jobs = sorted((find_job(site.desk, name) for name in asked), key=lambda job: (job.created_at, job.job_id))
    for job in jobs:
        if job.model != jobs[0].model:
            raise Problem(
                409,
                "other_model",
                f"{job.job_id} is of {echo(job.model)}, {jobs[0].job_id} of {echo(jobs[0].model)}",
                hint="compare runs of one model",
            )
    return [
        from_json(written_report(site.desk, job.job_id, "json", visit.language.value).text) for job in jobs
    ]


def _tiers(reports: Sequence[Report]) -> list[str]:
    """Along the ladder of the last run; those that only earlier ones had come last."""
    return list(dict.fromkeys(tier.name for report in reversed(reports) for tier in report.tiers))


def _verdicts(reports: Sequence[Report], told: Words) -> Iterator[BesideRow]:
    """Of every tier that any run has a verdict of."""
    for tier in _tiers(reports):
        found = [
            next((each.verdict for each in report.tiers if each.name == tier), None) for report in reports
        ]
        if any(verdict is not None for verdict in found):
            yield BesideRow(
                tier=tier,
                name="",
                cells=tuple(
                    BesideCell(text=writing.NONE)
                    if verdict is None
                    else BesideCell(text=decided(told, verdict.decision), tone=TONES[verdict.decision])
                    for verdict in found
                ),
            )


def _figures(reports: Sequence[Report], told: Words) -> Iterator[BesideRow]:
    """Every key figure that any run has."""
    for tier in _tiers(reports):
        for name in KEY_FIGURES:
            found = _of(reports, tier, name)
            if any(figure is not None for figure in found):
                yield BesideRow(
                    tier=tier, name=told(f"figure.{name}"), cells=tuple(_cells(reports, name, found, told))
                )


def _cells(
    reports: Sequence[Report], name: str, found: Sequence[Figure | None], told: Words
) -> Iterator[BesideCell]:
    """Each beside the one before; of the first nothing can be said."""
    for place, (report, figure) in enumerate(zip(reports, found, strict=True)):
        text = writing.limits(figure, writer_of(report.currency, name))
        if place == 0 or (figure is None and found[place - 1] is None):
            yield BesideCell(text=text)
            continue
        change = judged(name, found[place - 1], figure)
        yield BesideCell(text=text, change=told(f"change.{change}"), tone=CHANGE_TONES.get(change, ""))


def _of(reports: Sequence[Report], tier: str, name: str) -> list[Figure | None]:
    return [
        next((key_figures(each).get(name) for each in report.tiers if each.name == tier), None)
        for report in reports
    ]


def _chart(reports: Sequence[Report], name: str, say: Words, told: Words) -> Chart:
    """One figure over the runs; its rows have every run's number with its limits."""
    scale, unit = _SCALES.get(name, (1.0, {"goodput": "tok/s"}.get(name, reports[-1].currency)))
    tiers = _tiers(reports)
    found = {tier: _of(reports, tier, name) for tier in tiers}
    begun = reports[0].run.began_at
    series = [
        Series(
            label=tier,
            style=style,
            points=tuple(
                _point((report.run.began_at - begun) / DAY, figure, scale)
                for report, figure in zip(reports, found[tier], strict=True)
            ),
        )
        for style, tier in enumerate(tiers)
    ]
    title = say("beside.chart", figure=told(f"figure.{name}"))
    write = [writer_of(report.currency, name) for report in reports]
    rows = [
        (report.run.id, *(writing.limits(found[tier][place], write[place]) for tier in tiers))
        for place, report in enumerate(reports)
    ]
    last = say("ledger.list").join(f"{tier} {text}" for tier, text in zip(tiers, rows[-1][1:], strict=True))
    return chart(
        curve(
            series,
            x_name=say("beside.axis"),
            y_name=say("beside.axis_figure", figure=told(f"figure.{name}"), unit=unit),
            x_from_zero=True,
            y_from_zero=False,
            nothing=say("beside.not_measured"),
        ),
        name="runs",
        title=title,
        text=say("beside.in_words", runs=len(reports), last=last),
        head=(say("jobs.run"), *tiers),
        rows=rows,
        data=[
            ("run", "began_at", "tier", "figure", "value", "lower", "upper", "level", "unit"),
            *(
                (report.run.id, formats.stamp(report.run.began_at), tier, name, *_data(figure, scale), unit)
                for tier in tiers
                for report, figure in zip(reports, found[tier], strict=True)
                if figure is not None
            ),
        ],
    )


def _data(figure: Figure, scale: float) -> Sequence[Datum]:
    told = figure.times(scale)
    return told.value, told.lower, told.upper, told.level


def _point(days: float, figure: Figure | None, scale: float) -> CurvePoint:
    if figure is None:
        return CurvePoint(x=days, y=None)
    return CurvePoint(
        x=days,
        y=scale * figure.value,
        lower=None if figure.lower is None else scale * figure.lower,
        upper=None if figure.upper is None else scale * figure.upper,
    )
