"""How the limits of each criterion narrowed: one chart each, with the looks and what was decided when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import itemgetter

from service import moments
from service.charts.chart import Chart, Datum, chart
from service.charts.narrowing import LookPoint, Moment, narrowing
from service.dashboard.stated import action
from service.dashboard.tier.reading import TierReading
from service.decision.verdict import Finding
from service.report import writing
from service.report.shared import criterion, decided, slug
from service.report.words import Words
from service.store.decided.decisions import Entry
from service.store.verdicts.looks import LookTaken

MOST_DRAWN = 24
"""Looks of one chart; each has a mark, and every number of it stands in the table."""
MOST_MOMENTS = 5
"""More names of moments would lie upon one another; the table has them all."""
APART = 0.03
"""Of the axis: moments closer than that are one line, with both names."""
DATA = (
    *("at", "what", "actor", "pairs", "conversations", "only_tier_failed", "only_baseline_failed"),
    *("difference_pp", "lower_pp", "upper_pp", "level", "margin_pp", "decision"),
)
MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
_UNITS = ((2 * DAY, DAY, "days"), (2 * HOUR, HOUR, "hours"), (0.0, MINUTE, "minutes"))
"""From which span on an axis is in which unit, seconds."""


def narrowing_charts(seen: TierReading, say: Words, report: Words) -> list[Chart]:
    """Of every criterion that decides and has pairs; `report` has the words that reports use."""
    return [
        _chart(seen, finding, _looks(seen, finding), say, report)
        for finding in seen.verdict.decisive
        if finding.estimate is not None
    ]


def thinned(looks: Sequence[LookTaken], most: int = MOST_DRAWN) -> list[LookTaken]:
    """The first, the last, those at which the decision changed, and others evenly between them."""
    if len(looks) <= most:
        return list(looks)
    changed = [
        place for place in range(1, len(looks)) if looks[place].decision is not looks[place - 1].decision
    ]
    kept = {0, len(looks) - 1, *changed[-(most // 2) :]}
    room = most - len(kept)
    kept |= {round((number + 1) * (len(looks) - 1) / (room + 1)) for number in range(room)}
    return [looks[place] for place in sorted(kept)]


def _looks(seen: TierReading, finding: Finding) -> list[LookTaken]:
    """Those that are kept, and this one."""
    assert finding.estimate is not None, "only criteria with pairs are drawn"
    kept = sorted(
        (each for each in seen.looks if each.criterion == finding.criterion and each.at < seen.now),
        key=lambda each: each.at,
    )
    # To the minute, or the hour: a page that asks for itself again must not differ by the clock alone.
    begin, last = (kept[0].at, kept[-1].at) if kept else (seen.now, 0.0)
    step = HOUR if seen.now - begin >= 2 * DAY else MINUTE
    present = LookTaken(
        criterion=finding.criterion,
        at=max(last, seen.now // step * step),
        pairs=finding.n,
        conversations=finding.conversations,
        harm=finding.harm,
        benefit=finding.benefit,
        estimate=finding.estimate,
        lower=finding.interval.lower,
        upper=finding.interval.upper,
        level=finding.interval.level,
        margin=finding.margin,
        decision=finding.decision,
    )
    return [*kept, present]


def _chart(
    seen: TierReading, finding: Finding, looks: Sequence[LookTaken], say: Words, report: Words
) -> Chart:
    begin, name = looks[0].at, criterion(report, finding.criterion)
    drawn = thinned(looks)
    unit, unit_name = next((seconds, words) for least, seconds, words in _UNITS if seen.now - begin >= least)
    told = [entry for entry in seen.entries if begin <= entry.at <= seen.now]
    return chart(
        narrowing(
            [
                LookPoint(
                    at=(look.at - begin) / unit,
                    estimate=look.estimate,
                    lower=look.lower,
                    upper=look.upper,
                    tip=say(
                        "tier_looks.tip",
                        when=writing.moment(look.at),
                        pairs=writing.count(look.pairs),
                        numbers=_numbers(look),
                    ),
                )
                for look in drawn
            ],
            label=say("tier_looks.series", level=writing.level(looks[-1].level)),
            margin=finding.margin,
            margin_label=report("quality.margin"),
            zero_label=report("quality.no_difference"),
            x_name=say(f"tier_looks.{unit_name}", begin=writing.moment(begin)),
            y_name=say("tier_looks.difference_axis"),
            moments=[
                Moment(at=(at - begin) / unit, label=label)
                for at, label in _apart(
                    sorted([*_changes(looks, report), *_decisions(told, say)]),
                    least=APART * (seen.now - begin),
                )[-MOST_MOMENTS:]
            ],
        ),
        name=f"narrowing-{slug(finding.criterion)}",
        title=say("tier_looks.chart", criterion=name),
        text=say(
            "tier_looks.in_words",
            criterion=name,
            looks=writing.count(len(looks)),
            first=_numbers(looks[0]),
            first_pairs=writing.count(looks[0].pairs),
            last=_numbers(looks[-1]),
            last_pairs=writing.count(looks[-1].pairs),
            margin=writing.margin(finding.margin),
        ),
        head=[
            say("tier_looks.when"),
            say("tier_looks.what"),
            report("quality.pairs"),
            report("quality.estimate"),
            report("quality.decision"),
        ],
        rows=[row for _, row in sorted([*_rows(drawn, say, report), *_told(told, say)])],
        data=[DATA, *sorted([*map(_look_data, looks), *map(_entry_data, told)], key=itemgetter(0))],
    )


def _look_data(look: LookTaken) -> Sequence[Datum]:
    """Of every look, also those for which the drawing has no room."""
    differences = (None if each is None else 100 * each for each in (look.estimate, look.lower, look.upper))
    return (
        *(moments.moment(look.at), "look", "", look.pairs, look.conversations, look.harm, look.benefit),
        *(*differences, look.level, 100 * look.margin, look.decision.value),
    )


def _entry_data(entry: Entry) -> Sequence[Datum]:
    nothing = (None,) * (len(DATA) - 3)
    return moments.moment(entry.at), entry.action, entry.actor, *nothing


def _numbers(look: LookTaken) -> str:
    return writing.interval(look.estimate, look.lower, look.upper, writing.points, look.level)


def _apart(moments: Sequence[tuple[float, str]], *, least: float) -> list[tuple[float, str]]:
    """Those that are close together as one, at the first of them; each name once."""
    found: list[tuple[float, list[str]]] = []
    for at, label in moments:
        if found and at - found[-1][0] < least:
            if label not in found[-1][1]:
                found[-1][1].append(label)
        else:
            found.append((at, [label]))
    return [(at, " · ".join(labels)) for at, labels in found]


def _changes(looks: Sequence[LookTaken], report: Words) -> Iterator[tuple[float, str]]:
    for before, after in pairwise(looks):
        if after.decision is not before.decision:
            yield after.at, decided(report, after.decision)


def _decisions(entries: Sequence[Entry], say: Words) -> Iterator[tuple[float, str]]:
    for entry in entries:
        yield entry.at, action(say, entry.action)


Row = tuple[float, tuple[str, ...]]
"""When, and its cells."""


def _rows(looks: Sequence[LookTaken], say: Words, report: Words) -> Iterator[Row]:
    for look in looks:
        yield (
            look.at,
            (
                writing.moment(look.at),
                say("tier_looks.look"),
                report(
                    "quality.pairs_of",
                    pairs=writing.count(look.pairs),
                    conversations=writing.count(look.conversations),
                ),
                _numbers(look),
                decided(report, look.decision),
            ),
        )


def _told(entries: Sequence[Entry], say: Words) -> Iterator[Row]:
    for entry in entries:
        told = say("tier_looks.by", action=action(say, entry.action), actor=entry.actor)
        yield entry.at, (writing.moment(entry.at), told, writing.NONE, writing.NONE, writing.NONE)
