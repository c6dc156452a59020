"""Coverage beside traffic: the least covered stratum first, gaps with a mark and in words."""

from __future__ import annotations

from service.dashboard.coverage import MOST_DRAWN, TierCoverage, coverage_chart
from service.dashboard.sentences import sentences
from service.decision.covering import covering
from service.decision.evidence import Coverage
from service.report.words import Language

SAY = sentences(Language.EN)
TRAFFIC = {"short": 600, "long": 390, "rare": 10}


def tier(name: str, **evidence: int) -> TierCoverage:
    return TierCoverage(tier=name, strata=covering(Coverage(traffic=TRAFFIC, evidence=evidence)))


def test_gaps_are_named_and_the_worst_comes_first() -> None:
    found = TierCoverage(
        tier="w8a8",
        strata=covering(Coverage(traffic={"a": 50, "b": 30, "c": 20}, evidence={"a": 90, "b": 10})),
    )
    assert [gap.stratum for gap in found.gaps] == ["c", "b"]


def test_the_chart_has_every_stratum_with_the_least_covered_first_and_rare_ones_last() -> None:
    drawn = coverage_chart([tier("w8a8", short=50, long=50), tier("w4a16", short=100)], SAY)
    assert [row[0] for row in drawn.rows] == ["long", "short", "rare"]
    assert drawn.head == (
        "stratum",
        "traffic, requests",
        "share of traffic",
        "w8a8: evidence, requests",
        "w8a8: share of evidence",
        "w4a16: evidence, requests",
        "w4a16: share of evidence",
    )
    assert drawn.rows[0] == ("long", "390", "39.00 %", "50", "50.00 %", "0", "0.00 %")
    assert drawn.text == (
        "1 of 3 strata has a gap. The worst is long: 0.0 % of the evidence, 39.0 % of the traffic."
    )


def test_a_gap_is_marked_by_more_than_its_colour() -> None:
    drawn = coverage_chart([tier("w4a16", short=100)], SAY)
    assert "! 0.0 %" in drawn.wide
    assert "! 0.0 %" in drawn.narrow


def test_without_gaps_it_says_so_and_without_traffic_too() -> None:
    assert coverage_chart([tier("w8a8", short=60, long=40)], SAY).text == (
        "All 3 strata of the traffic that are worth covering are covered."
    )
    nothing = coverage_chart([TierCoverage(tier="w8a8", strata=())], SAY)
    assert nothing.text == "No stratum of the traffic is known yet."
    assert nothing.rows == ()


def test_more_strata_than_can_be_drawn_are_still_rows() -> None:
    traffic = {f"stratum {number}": 10 for number in range(MOST_DRAWN + 5)}
    drawn = coverage_chart([TierCoverage(tier="w8a8", strata=covering(Coverage(traffic=traffic)))], SAY)
    assert len(drawn.rows) == MOST_DRAWN + 5
    assert drawn.wide.count("c-cell") == 2 * MOST_DRAWN
