"""Quality: each candidate's criteria as a forest plot, with every number of the findings, and the gates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from service.charts.chart import Chart, Datum, chart
from service.charts.forest import ForestRow, forest
from service.decision.policy import Role
from service.report import writing
from service.report.blocks import (
    Block,
    Drawing,
    Folded,
    Formula,
    Paragraph,
    Section,
    Table,
    TableRow,
)
from service.report.document import Finding, Report, TierReport, VerdictFigures
from service.report.shared import (
    GATE_TONES,
    TONES,
    criterion,
    decided,
    gate_name,
    gate_state,
    reasons_of,
    tier_anchor,
)
from service.report.words import Words

HEAD = (
    "criterion",
    "decision",
    "estimate",
    "margin",
    "pairs",
    "harm",
    "benefit",
    "control",
)
DATA = (
    *("criterion", "role", "decision", "warning", "difference_pp", "lower_pp", "upper_pp", "level"),
    *("margin_pp", "both_ways", "pairs", "conversations", "only_tier_failed", "only_baseline_failed"),
    "control_discordance",
)
ONE_LOOK = ("criterion", "tango", "p_value", "exact_p", "design_effect")


def quality(report: Report, say: Words) -> Section | None:
    """Every candidate's verdict; None without candidates."""
    judged = [(each, each.verdict) for each in report.candidates if each.verdict is not None]
    if not judged:
        return None
    blocks: list[Block] = [
        Paragraph(text=say("quality.about")),
        Formula(text="theta = P(F_Q) − P(F_B) ≈ (b − c) / n", where=say("quality.formula")),
    ]
    for tier, verdict in judged:
        blocks.extend(_verdict(report, tier, verdict, say))
    return Section(anchor="quality", title=say("quality.title"), blocks=tuple(blocks))


def _verdict(report: Report, tier: TierReport, verdict: VerdictFigures, say: Words) -> Iterator[Block]:
    yield Paragraph(
        text=say(
            "quality.tier",
            tier=tier.name,
            decision=decided(say, verdict.decision),
            attempt=verdict.attempt,
            alpha=f"{verdict.alpha:.3g}",
        ),
        tone=TONES[verdict.decision],
    )
    yield Drawing(
        chart=forest_chart(verdict, say, name=f"forest-{tier_anchor(report, tier)}", tier=tier.name),
        numbers_title=say("quality.findings", tier=tier.name),
        open=True,
    )
    yield single_looks(verdict, say, tier=tier.name)
    yield Table(
        caption=say("quality.gates", tier=tier.name),
        head=(say("quality.gate"), say("quality.state")),
        rows=tuple(
            TableRow(cells=(gate_name(say, gate), gate_state(say, state)), tone=GATE_TONES[state])
            for gate, state in verdict.gates.items()
        ),
    )
    reasons = [*verdict.reasons, *(f"{each.criterion}: {each.reason}" for each in verdict.findings)]
    if reasons:
        yield Folded(title=say("quality.reasons"), blocks=(reasons_of(say, tuple(reasons)),))


def forest_chart(verdict: VerdictFigures, say: Words, *, name: str, tier: str) -> Chart:
    """Every finding with its limits, its margin and the zone in which a difference is a warning."""
    return chart(
        forest(
            [_forest_row(each, say) for each in verdict.findings],
            x_name=say("quality.axis"),
            margin_label=say("quality.margin"),
            zero_label=say("quality.no_difference"),
            nothing=say("quality.nothing"),
        ),
        name=name,
        title=say("quality.chart", tier=tier),
        text=_in_words(verdict, say),
        head=[say(f"quality.{name}") for name in HEAD],
        rows=[_cells(each, say) for each in verdict.findings],
        data=[DATA, *map(_data, verdict.findings)],
    )


def _data(finding: Finding) -> Sequence[Datum]:
    return (
        *(finding.criterion, finding.role.value, finding.decision.value, "yes" if finding.warn else "no"),
        *(None if each is None else 100 * each for each in (finding.estimate, finding.lower, finding.upper)),
        *(finding.level, 100 * finding.margin, "yes" if finding.both_ways else "no"),
        *(finding.n, finding.conversations, finding.harm, finding.benefit),
        None if finding.control is None else finding.control.value,
    )


def single_looks(verdict: VerdictFigures, say: Words, *, tier: str) -> Table:
    """What one look would say of every finding; it decides nothing."""
    return Table(
        caption=say("quality.single_look", tier=tier),
        head=tuple(say(f"quality.{name}") for name in ONE_LOOK),
        rows=tuple(TableRow(cells=_looked_once(each, say)) for each in verdict.findings),
    )


def _labelled(finding: Finding, say: Words) -> str:
    """The criterion, and its role where that is not to decide."""
    name = criterion(say, finding.criterion)
    return name if finding.role is Role.DECISIVE else f"{name} ({say(f'role.{finding.role}')})"


def _forest_row(finding: Finding, say: Words) -> ForestRow:
    return ForestRow(
        label=criterion(say, finding.criterion),
        note=say("quality.note", pairs=writing.count(finding.n), decision=decided(say, finding.decision)),
        numbers=_numbers(finding),
        estimate=finding.estimate,
        lower=finding.lower,
        upper=finding.upper,
        margin=finding.margin,
        both_ways=finding.both_ways,
        tone=TONES[finding.decision],
        faint=finding.role is not Role.DECISIVE,
    )


def _numbers(finding: Finding) -> str:
    told = writing.NONE if finding.estimate is None else f"{100 * finding.estimate:+.2f}".replace("-", "−")
    ends = [f"{100 * limit:+.2f}".replace("-", "−") for limit in (finding.lower, finding.upper)]
    return f"{told} [{ends[0]}, {ends[1]}] pp"


def _in_words(verdict: VerdictFigures, say: Words) -> str:
    told = [
        say(
            "quality.in_words",
            criterion=criterion(say, each.criterion),
            numbers=writing.interval(each.estimate, each.lower, each.upper, writing.points, each.level),
            margin=writing.margin(each.margin),
            decision=decided(say, each.decision),
        )
        for each in verdict.findings
    ]
    return say("punctuation.between_sentences").join(told) or say("quality.nothing")


def _cells(finding: Finding, say: Words) -> tuple[str, ...]:
    return (
        _labelled(finding, say),
        decided(say, finding.decision) + (f" ({say('quality.warn')})" if finding.warn else ""),
        writing.interval(finding.estimate, finding.lower, finding.upper, writing.points, finding.level),
        ("± " if finding.both_ways else "") + writing.margin(finding.margin),
        say(
            "quality.pairs_of",
            pairs=writing.count(finding.n),
            conversations=writing.count(finding.conversations),
        ),
        writing.count(finding.harm),
        writing.count(finding.benefit),
        writing.figure(finding.control, writing.per_cent, of="n"),
    )


def _looked_once(finding: Finding, say: Words) -> tuple[str, ...]:
    looked = finding.single_look
    return (
        _labelled(finding, say),
        writing.figure(None if looked is None else looked.difference, writing.points),
        writing.or_none(None if looked is None else looked.p_value, writing.probability),
        writing.or_none(None if looked is None else looked.exact_p, writing.probability),
        writing.or_none(None if looked is None else looked.design_effect, writing.factor),
    )
