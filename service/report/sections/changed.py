"""What changed since the run before of the same model."""

from __future__ import annotations

from collections.abc import Sequence

from service.report import writing
from service.report.blocks import Block, Folded, Paragraph, Section, Table, TableRow, rows
from service.report.changes import Change, FigureChange, decision_changes, figure_changes, manifest_changes
from service.report.document import Report
from service.report.shared import decided
from service.report.words import Words

_TONES = {Change.BETTER: "good", Change.WORSE: "bad"}


def changed(report: Report, say: Words) -> Section:
    """Decisions, figures with the judgement of their limits, and what was asked or installed differently."""
    title = say("changed.title")
    earlier = report.earlier
    if earlier is None:
        return Section(anchor="changed", title=title, blocks=(Paragraph(text=say("changed.first")),))
    blocks: list[Block] = [
        Paragraph(text=say("changed.against", run=earlier.id, when=writing.moment(earlier.ended_at)))
    ]
    decisions = decision_changes(report, earlier)
    if decisions:
        blocks.append(
            Table(
                caption=say("changed.decisions"),
                head=(say("glance.tier"), say("changed.before"), say("changed.now")),
                rows=rows(
                    *(
                        (
                            tier,
                            *(writing.NONE if each is None else decided(say, each) for each in (before, now)),
                        )
                        for tier, before, now in decisions
                    )
                ),
            )
        )
    else:
        blocks.append(Paragraph(text=say("changed.same_decisions")))
    figures = figure_changes(report, earlier)
    shown = [each for each in figures if each.change in _TONES]
    if shown:
        blocks.append(_table(report, say("changed.figures"), shown, say))
    elif figures:
        blocks.append(Paragraph(text=say("changed.same_figures")))
    rest = [each for each in figures if each.change not in _TONES]
    if rest:
        table = _table(report, say("changed.rest"), rest, say)
        blocks.append(Folded(title=say("changed.rest"), blocks=(table,)))
    if figures:
        blocks.append(Paragraph(text=say("changed.rule")))
    places = manifest_changes(earlier.manifest, report.manifest)
    if places:
        table = Table(
            caption=say("changed.manifest"),
            head=(say("changed.place"), say("changed.before"), say("changed.now")),
            rows=rows(*places),
        )
        blocks.append(Folded(title=say("changed.manifest_count", count=len(places)), blocks=(table,)))
    else:
        blocks.append(Paragraph(text=say("changed.same_manifest")))
    return Section(anchor="changed", title=title, blocks=tuple(blocks))


def _table(report: Report, caption: str, changes: Sequence[FigureChange], say: Words) -> Table:
    return Table(
        caption=caption,
        head=tuple(say(f"changed.{name}") for name in ("tier", "figure", "before", "now", "change")),
        rows=tuple(
            TableRow(
                cells=(
                    each.tier,
                    say(f"figure.{each.figure}"),
                    writing.limits(each.before, writer_of(report.currency, each.figure)),
                    writing.limits(each.now, writer_of(report.currency, each.figure)),
                    say(f"change.{each.change}"),
                ),
                tone=_TONES.get(each.change, ""),
            )
            for each in changes
        ),
    )


def writer_of(currency: str, figure: str) -> writing.Write:
    """How a key figure is written."""
    if figure in ("unit_cost", "net_benefit"):
        return writing.money(currency)
    if figure in ("ttft_p95", "tpot_p95"):
        return writing.time
    if figure == "failure_rise":
        return writing.points
    return writing.speed if figure == "goodput" else writing.per_cent
