"""The tiers at a glance: one row each, with what decides."""

from __future__ import annotations

from service.decision.policy import Role
from service.report import writing
from service.report.blocks import Block, Paragraph, Section, beside
from service.report.changes import KEY_FIGURES
from service.report.document import Report, TierReport
from service.report.measured import Figure
from service.report.shared import decided, named, reasons_of
from service.report.words import Words

HEAD = ("decision", "worst", "pass_rate", "ttft", "tpot", "goodput", "unit_cost", "net")


def glance(report: Report, say: Words) -> Section:
    """What every reader wants first."""
    money = writing.money(report.currency)
    blocks: list[Block] = []
    if report.tiers:
        columns = [_cells(each, say, money) for each in report.tiers]
        blocks.append(
            beside(
                say("glance.caption"),
                say("costs.figure"),
                tuple(named(say, each) for each in report.tiers),
                [
                    (say(f"glance.{name}"), [column[line] for column in columns])
                    for line, name in enumerate(HEAD)
                ],
            )
        )
        blocks.append(Paragraph(text=say("glance.limits")))
    else:
        blocks.append(Paragraph(text=say("glance.nothing"), tone="wait"))
    if report.run.why:
        blocks.append(
            Paragraph(
                text=say(
                    "glance.ended_early", state=say.known(f"state.{report.run.state}", report.run.state)
                ),
                tone="bad",
            )
        )
        blocks.append(reasons_of(say, (report.run.why,)))
    if report.run.remarks:
        blocks.append(Paragraph(text=say("glance.remarks"), tone="wait"))
        blocks.append(reasons_of(say, report.run.remarks))
    return Section(anchor="glance", title=say("glance.title"), blocks=tuple(blocks))


def _cells(tier: TierReport, say: Words, money: writing.Write) -> tuple[str, ...]:
    figures = {name: read(tier) for name, read in KEY_FIGURES.items()}
    verdict = tier.verdict
    return (
        writing.NONE if verdict is None else decided(say, verdict.decision),
        _worst(tier),
        writing.limits(figures["pass_rate"], writing.per_cent),
        writing.limits(figures["ttft_p95"], writing.time),
        writing.limits(figures["tpot_p95"], writing.time),
        writing.limits(figures["goodput"], writing.speed),
        writing.limits(figures["unit_cost"], money),
        writing.limits(figures["net_benefit"], money),
    )


def _worst(tier: TierReport) -> str:
    findings = [] if tier.verdict is None else tier.verdict.findings
    known = [each for each in findings if each.role is Role.DECISIVE and each.estimate is not None]
    if not known:
        return writing.NONE
    worst = max(known, key=lambda each: each.upper - each.margin)
    assert worst.estimate is not None
    return writing.limits(Figure(value=worst.estimate, lower=worst.lower, upper=worst.upper), writing.points)
