"""The mirror ledger: where every request went, as a flow that adds up, and what became of the pairs."""

from __future__ import annotations

from collections.abc import Mapping

from service.charts.chart import Chart, chart
from service.charts.flow import Amount, flow
from service.report import writing
from service.report.blocks import Block, Drawing, Folded, Formula, Paragraph, Section, Table, rows
from service.report.document import Ledger, PairLine, Report
from service.report.shared import criterion, reason, reasons_of
from service.report.words import Words

_MOST_REASONS = 5
"""More ways of being skipped are drawn as one."""


def account(report: Report, say: Words) -> Section | None:
    """None when the report has no ledger."""
    ledger = report.ledger
    if ledger is None:
        return None
    blocks: list[Block] = [
        Paragraph(text=say("ledger.about")),
        Drawing(chart=ledger_chart(ledger, say), numbers_title=say("page.numbers")),
        Formula(
            text="seen = skipped + sampled\nsampled = shipped + dropped\n"
            "shipped = processed + expired + lost + waiting",
            where=say("ledger.formula"),
        ),
        Paragraph(
            text=say("ledger.balanced") if ledger.balanced else say("ledger.unbalanced"),
            tone="good" if ledger.balanced else "bad",
        ),
    ]
    if ledger.problems:
        blocks.append(reasons_of(say, ledger.problems))
    if ledger.pairs:
        blocks.append(Folded(title=say("ledger.pairs"), blocks=(_pairs(ledger, say),)))
        blocks.append(
            Formula(
                text="due = scored + unscored + not applicable + over budget",
                where=say("ledger.pair_formula"),
            )
        )
    return Section(anchor="ledger", title=say("ledger.title"), blocks=tuple(blocks))


def ledger_chart(ledger: Ledger, say: Words) -> Chart:
    """The flow, with every number that it is drawn from."""
    return chart(
        flow(flow_of(ledger, say), nothing=say("ledger.nothing")),
        name="ledger",
        title=say("ledger.chart"),
        text=_in_words(ledger, say),
        head=[say("ledger.what"), say("ledger.requests")],
        rows=[(label, writing.count(count)) for label, count in _counts(ledger, say)],
        data=[("what", "requests"), *_counts(ledger, say)],
    )


def flow_of(ledger: Ledger, say: Words) -> Amount:
    """The account as a tree. Counters of running proxies lag, so each level holds its parts or more."""
    shipped = _amount(
        say("ledger.shipped"),
        ledger.shipped,
        (
            _amount(say("ledger.processed"), ledger.processed, tone="good"),
            _amount(say("ledger.waiting"), ledger.waiting, tone="wait"),
            _amount(say("ledger.expired"), ledger.expired, tone="bad"),
            _amount(say("ledger.lost"), ledger.lost, tone="bad"),
        ),
    )
    dropped = _split(say("ledger.dropped"), ledger.dropped, "bad", say)
    sampled = _open(say("ledger.sampled"), ledger.sampled, (shipped, dropped), ledger, say)
    skipped = _split(say("ledger.skipped"), ledger.skipped, "aside", say)
    return _open(say("ledger.seen"), ledger.seen, (sampled, skipped), ledger, say)


def _open(label: str, count: int, parts: tuple[Amount, ...], ledger: Ledger, say: Words) -> Amount:
    """With what proxies have begun and not settled; of silent ones nobody will."""
    rest = count - sum(part.count for part in parts)
    if rest > 0:
        tone = "bad" if ledger.unaccounted else "wait"
        parts = (*parts, _amount(say("ledger.open"), rest, tone=tone))
    return _amount(label, count, parts)


def _split(label: str, counts: Mapping[str, int], tone: str, say: Words) -> Amount:
    listed = sorted(counts.items(), key=lambda each: -each[1])
    shown, rest = listed[:_MOST_REASONS], listed[_MOST_REASONS:]
    parts = [_amount(reason(say, name), count, tone=tone) for name, count in shown]
    if rest:
        parts.append(_amount(say("ledger.other"), sum(count for _, count in rest), tone=tone))
    return _amount(label, sum(max(0, count) for count in counts.values()), tuple(parts), tone)


def _amount(label: str, count: int, parts: tuple[Amount, ...] = (), tone: str = "through") -> Amount:
    whole = max(0, count, sum(part.count for part in parts))
    return Amount(label=label, count=whole, text=writing.count(max(0, count)), parts=parts, tone=tone)


def _in_words(ledger: Ledger, say: Words) -> str:
    return say(
        "ledger.in_words",
        seen=writing.count(ledger.seen),
        skipped=writing.count(sum(ledger.skipped.values())),
        sampled=writing.count(ledger.sampled),
        dropped=writing.count(sum(ledger.dropped.values())),
        processed=writing.count(ledger.processed),
        expired=writing.count(ledger.expired),
        lost=writing.count(ledger.lost),
        waiting=writing.count(ledger.waiting),
    )


def _counts(ledger: Ledger, say: Words) -> list[tuple[str, int]]:
    told = [(say("ledger.seen"), ledger.seen)]
    told += [
        (f"{say('ledger.skipped')}: {reason(say, name)}", count) for name, count in ledger.skipped.items()
    ]
    told.append((say("ledger.sampled"), ledger.sampled))
    told += [
        (f"{say('ledger.dropped')}: {reason(say, name)}", count) for name, count in ledger.dropped.items()
    ]
    told += [
        (say(f"ledger.{name}"), getattr(ledger, name))
        for name in ("shipped", "processed", "expired", "lost", "waiting", "in_flight", "unaccounted")
    ]
    return told


def _pairs(ledger: Ledger, say: Words) -> Table:
    head = ("tier", "arm", "criterion", "due", "scored", "unscored", "not_applicable", "over_budget")
    return Table(
        caption=say("ledger.pairs"),
        head=tuple(say(f"ledger.{name}") for name in head),
        rows=rows(*(_pair_cells(each, say) for each in ledger.pairs)),
    )


def _pair_cells(line: PairLine, say: Words) -> tuple[str, ...]:
    return (
        line.tier,
        say.known(f"arm.{line.arm}", line.arm),
        criterion(say, line.evaluator),
        writing.count(line.due),
        writing.count(line.scored),
        say("punctuation.list").join(
            f"{reason(say, why)} {writing.count(many)}" for why, many in line.unscored.items()
        )
        or "0",
        writing.count(line.not_applicable),
        writing.count(line.over_budget),
    )
