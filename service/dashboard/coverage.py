"""Which strata of the real traffic each tier's evidence covers, the least covered first; gaps by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from service.charts.chart import Chart, chart
from service.charts.heat import Cell, heat
from service.dashboard.formats import NONE, count, percent
from service.decision.covering import Covered, covering
from service.report.words import Words
from service.store.verdicts.standing import Standing

DATA = (
    *("stratum", "tier", "traffic_requests", "traffic_share", "evidence_requests", "evidence_share"),
    "gap",
)
MOST_DRAWN = 24
"""Strata beyond stand in the table and in the download alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TierCoverage:
    """One tier's evidence beside the traffic."""

    tier: str
    strata: tuple[Covered, ...]
    """In the order of the traffic."""

    @property
    def gaps(self) -> tuple[Covered, ...]:
        """The least covered first."""
        return tuple(sorted((each for each in self.strata if each.gap), key=_lack))

    def of(self, stratum: str) -> Covered | None:
        return next((each for each in self.strata if each.stratum == stratum), None)


def coverage_of(standing: Standing) -> tuple[TierCoverage, ...]:
    """Of every candidate, along the ladder."""
    return tuple(
        TierCoverage(tier=rung.tier.name, strata=covering(rung.evidence.coverage))
        for rung in standing.rungs
        if rung.evidence is not None and rung.evidence.coverage is not None
    )


def coverage_chart(tiers: Sequence[TierCoverage], say: Words) -> Chart:
    """Shares of the evidence in colours, beside the share of the traffic; every stratum is in its rows."""
    strata = _worst_first(tiers)
    drawn = [
        (each.stratum, [Cell(text=percent(each.traffic_share)), *_cells(each, tiers, say)])
        for each in strata[:MOST_DRAWN]
    ]
    names = [each.tier for each in tiers]
    return chart(
        heat(
            drawn,
            [say("ledger.traffic"), *names],
            legend=[(0.0, say("ledger.shade_covered")), (1.0, say("ledger.shade_gap"))],
            again=1,
            nothing=say("ledger.no_traffic"),
        ),
        name="coverage",
        title=say("ledger.coverage_chart"),
        text=_in_words(tiers, strata, say),
        head=(
            say("ledger.stratum"),
            say("ledger.traffic_requests"),
            say("ledger.traffic_share"),
            *(
                say(f"ledger.{what}", tier=tier)
                for tier in names
                for what in ("evidence_of", "share_of_tier")
            ),
        ),
        rows=[_row(each, tiers, say) for each in strata],
        data=[
            DATA,
            *(
                (
                    *(found.stratum, tier.tier, found.traffic, found.traffic_share),
                    *(found.evidence, found.evidence_share, "yes" if found.gap else "no"),
                )
                for each in strata
                for tier in tiers
                if (found := tier.of(each.stratum)) is not None
            ),
        ],
    )


def _worst_first(tiers: Sequence[TierCoverage]) -> list[Covered]:
    """Each stratum once, as the tier has it that covers it least; those too rare to matter last."""
    least: dict[str, Covered] = {}
    for tier in tiers:
        for each in tier.strata:
            known = least.get(each.stratum)
            if known is None or _lack(each) < _lack(known):
                least[each.stratum] = each
    return sorted(least.values(), key=lambda each: (not each.worth_covering, _lack(each), -each.traffic))


def _lack(each: Covered) -> float:
    """Its share of the evidence by its share of the traffic: 0 is no evidence at all, 1 as much as is due."""
    return each.evidence_share / each.traffic_share if each.traffic_share else 1.0


def _cells(stratum: Covered, tiers: Sequence[TierCoverage], say: Words) -> list[Cell | None]:
    return [_cell(tier, tier.of(stratum.stratum), say) for tier in tiers]


def _cell(tier: TierCoverage, each: Covered | None, say: Words) -> Cell | None:
    if each is None:
        return None
    tip = say(
        "ledger.cell",
        tier=tier.tier,
        stratum=each.stratum,
        evidence=count(each.evidence),
        share=percent(each.evidence_share),
        traffic=percent(each.traffic_share),
    )
    harm = max(0.0, 1.0 - _lack(each)) if each.worth_covering else 0.0
    # Colour alone tells nobody who sees none: a gap has a mark as well.
    mark = "! " if each.gap else ""
    return Cell(text=f"{mark}{percent(each.evidence_share)}", share=harm, tip=tip)


def _row(stratum: Covered, tiers: Sequence[TierCoverage], say: Words) -> list[str]:
    cells = [stratum.stratum, count(stratum.traffic), percent(stratum.traffic_share, 2)]
    for tier in tiers:
        each = tier.of(stratum.stratum)
        cells += [NONE, NONE] if each is None else [count(each.evidence), percent(each.evidence_share, 2)]
    return cells


def _in_words(tiers: Sequence[TierCoverage], strata: Sequence[Covered], say: Words) -> str:
    gaps = [each for tier in tiers for each in tier.gaps]
    if not strata:
        return say("ledger.no_traffic")
    if not gaps:
        return say("ledger.coverage_whole", strata=count(len(strata)))
    worst = min(gaps, key=_lack)
    return say(
        "ledger.coverage_gaps",
        gaps=count(len({each.stratum for each in gaps})),
        strata=count(len(strata)),
        worst=worst.stratum,
        share=percent(worst.evidence_share),
        traffic=percent(worst.traffic_share),
    )
