"""Kinds of requests, the worst first, each beside what the baseline shows there against itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from service.approval.breakdowns import strata_out
from service.charts.chart import Chart, Datum, chart
from service.charts.heat import Cell, heat
from service.dashboard.tier.reading import TierReading
from service.decision.energy import noise_of
from service.decision.policy import Criterion, Hypothesis
from service.decision.tally import Tally
from service.report import writing
from service.report.shared import criterion
from service.report.words import Words
from service.store.scored.breakdown import StratumStanding

MOST_DRAWN = 12
"""Strata of the drawing; the table has them all."""
LEAST_PAIRS = 30
"""A stratum with fewer has no colour: one pair would make it the worst of all."""
FULL_MARGINS = 2.0
"""Margins at which a cell is as dark as it gets."""
_ARMS = ("candidate", "control")
"""A column each, of every criterion."""
_SHADES = {"better": -0.5, "alike": 0.0, "worse": 0.5, "worst": 1.0}
"""Of the legend, by the name of its words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """One kind of request under every criterion that decides."""

    name: str
    found: Mapping[str, StratumStanding]
    """By criterion; without pairs, there is none."""
    control: Mapping[str, StratumStanding]
    log_e_harm: float
    """The strongest evidence of harm in it, 0 where nothing speaks of any."""
    excess: float
    """Units of harm beyond the margin, the most of any criterion; below 0 where all are within."""


def strata_of(seen: TierReading) -> list[Stratum]:
    """By evidence of harm, then by how far their sums are beyond the margin: the worst first."""
    criteria = {each.evaluator: each for each in seen.policy.decisive}
    harms: dict[str, float] = {}
    for told in strata_out(seen.policy, seen.evidence, seen.strata):
        if told.evaluator in criteria and told.log_e_harm is not None:
            harms[told.stratum] = max(harms.get(told.stratum, 0.0), told.log_e_harm)
    found = _by_stratum(seen.strata, criteria)
    control = _by_stratum(seen.control_strata, criteria)
    strata = [
        Stratum(
            name=name,
            found=standings,
            control=control.get(name, {}),
            log_e_harm=harms.get(name, 0.0),
            excess=max(_excess(criteria[each], standing) for each, standing in standings.items()),
        )
        for name, standings in found.items()
    ]
    return sorted(strata, key=lambda each: (-each.log_e_harm, -each.excess, each.name))


def strata_chart(seen: TierReading, strata: Sequence[Stratum], say: Words, report: Words) -> Chart:
    """Two columns a criterion: the tier against the baseline, and the baseline against itself."""
    criteria = seen.policy.decisive
    columns = [
        name
        for each in criteria
        for short in [say.known(f"tier_short.{each.evaluator}", criterion(report, each.evaluator))]
        for name in (short, say("tier_strata.control"))
    ]
    return chart(
        heat(
            [(each.name, _cells(each, criteria, say)) for each in strata[:MOST_DRAWN]],
            columns,
            legend=[(share, say(f"tier_strata.{name}")) for name, share in _SHADES.items()],
            together=len(_ARMS),
            nothing=say("tier_strata.nothing"),
        ),
        name="strata",
        title=say("tier_strata.chart", tier=seen.tier),
        text=_in_words(seen, strata, say, report),
        head=[
            say("tier_strata.stratum"),
            *(
                say(f"tier_strata.{column}", criterion=criterion(report, each.evaluator))
                for each in criteria
                for column in ("difference_of", "pairs_of", "control_of")
            ),
        ],
        rows=[_row(each, criteria) for each in strata],
        data=[
            ("stratum", "criterion", "arm", "difference_pp", "pairs", "margin_pp"),
            *(row for each in strata for row in _data(each, criteria)),
        ],
    )


def noise_rows(seen: TierReading, report: Words) -> list[tuple[str, ...]]:
    """How often the arms differ, and how often the baseline differs from itself, by criterion."""
    rows: list[tuple[str, ...]] = []
    for finding in seen.verdict.findings:
        own = (seen.evidence.control or {}).get(finding.criterion, Tally())
        tally = seen.evidence.tallies.get(finding.criterion, Tally())
        noise = noise_of(own, tally, seen.evidence.energy.get(finding.criterion))
        name = criterion(report, finding.criterion)
        if noise is None:
            share = (tally.harm + tally.benefit) / tally.n if tally.n else None
            rows.append((name, writing.or_none(share, writing.per_cent), *(writing.NONE,) * 4))
            continue
        energy = None if noise.energy is None else noise.energy.value
        rows.append(
            (
                name,
                writing.per_cent(noise.candidate),
                writing.per_cent(noise.control),
                writing.count(own.n),
                writing.or_none(noise.share, writing.per_cent),
                writing.or_none(energy, writing.per_cent),
            )
        )
    return rows


NOISE_HEAD = ("criterion", "candidate", "control", "control_pairs", "share", "energy")
"""Of `noise_rows`, as the words name them."""


def _by_stratum(
    standings: Sequence[StratumStanding], criteria: Mapping[str, Criterion]
) -> dict[str, dict[str, StratumStanding]]:
    found: dict[str, dict[str, StratumStanding]] = {}
    for each in standings:
        if each.evaluator in criteria and each.estimate is not None:
            found.setdefault(each.stratum, {})[each.evaluator] = each
    return found


def _harm(asked: Criterion, standing: StratumStanding) -> float:
    """The mean difference as far as it is harm: either way, where the hypothesis looks both ways."""
    estimate = standing.estimate or 0.0
    return abs(estimate) if asked.hypothesis is Hypothesis.EQUIVALENT else estimate


def _excess(asked: Criterion, standing: StratumStanding) -> float:
    return (_harm(asked, standing) - asked.margin) * standing.sums.units


def _cells(stratum: Stratum, criteria: Sequence[Criterion], say: Words) -> list[Cell | None]:
    return [
        _cell(asked, arm.get(asked.evaluator), say)
        for asked in criteria
        for arm in (stratum.found, stratum.control)
    ]


def _cell(asked: Criterion, standing: StratumStanding | None, say: Words) -> Cell | None:
    if standing is None or standing.estimate is None:
        return None
    share = _harm(asked, standing) / (FULL_MARGINS * asked.margin)
    return Cell(
        text=f"{100 * standing.estimate:+.1f}".replace("-", "−"),
        share=max(-1.0, min(1.0, share)) if standing.sums.pairs >= LEAST_PAIRS else 0.0,
        tip=say(
            "tier_strata.tip",
            difference=writing.points(standing.estimate),
            pairs=writing.count(standing.sums.pairs),
        ),
    )


def _row(stratum: Stratum, criteria: Sequence[Criterion]) -> tuple[str, ...]:
    cells = [stratum.name]
    for asked in criteria:
        found, control = (arm.get(asked.evaluator) for arm in (stratum.found, stratum.control))
        cells += [
            writing.NONE if found is None else writing.or_none(found.estimate, writing.points),
            writing.NONE if found is None else writing.count(found.sums.pairs),
            writing.NONE if control is None else writing.or_none(control.estimate, writing.points),
        ]
    return tuple(cells)


def _data(stratum: Stratum, criteria: Sequence[Criterion]) -> Iterator[Sequence[Datum]]:
    for asked in criteria:
        for arm, standings in zip(_ARMS, (stratum.found, stratum.control), strict=True):
            found = standings.get(asked.evaluator)
            if found is not None and found.estimate is not None:
                told = 100 * found.estimate, found.sums.pairs, 100 * asked.margin
                yield stratum.name, asked.evaluator, arm, *told


def _in_words(seen: TierReading, strata: Sequence[Stratum], say: Words, report: Words) -> str:
    if not strata:
        return say("tier_strata.nothing")
    worst = strata[0]
    asked = max(
        (each for each in seen.policy.decisive if each.evaluator in worst.found),
        key=lambda each: _excess(each, worst.found[each.evaluator]),
    )
    standing = worst.found[asked.evaluator]
    control = worst.control.get(asked.evaluator)
    return say(
        "tier_strata.in_words",
        stratum=worst.name,
        criterion=criterion(report, asked.evaluator),
        difference=writing.or_none(standing.estimate, writing.points),
        pairs=writing.count(standing.sums.pairs),
        margin=writing.margin(asked.margin),
        control=writing.NONE if control is None else writing.or_none(control.estimate, writing.points),
        strata=writing.count(len(strata)),
        least=LEAST_PAIRS,
    )
