"""What a report shows of one look: limits, p, exact p and the design effect, beside what decides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.decision.tally import Tally, Triple
from service.report import writing
from service.report.blocks import Table
from service.report.gathering.judged import single_look
from service.report.sections.quality import quality
from service.report.words import Language, words
from tests.report.sample import sample


def test_without_pairs_there_is_nothing_to_look_at() -> None:
    assert single_look(Tally(), 0.01, both_ways=False) is None


@pytest.mark.parametrize(
    ("n", "tango", "exact"), [(267, False, False), (268, True, False), (299, True, True)]
)
def test_without_a_discordant_pair_tango_passes_at_268_and_the_exact_p_at_299(
    n: int, tango: bool, exact: bool
) -> None:
    """.99^n <= .05 from n = 299 on; Tango is a little liberal there (statistics A8)."""
    looked = single_look(Tally.of_pairs(n=n, harm=0, benefit=0), 0.01, both_ways=False)
    assert looked is not None
    assert looked.exact_p == pytest.approx(0.99**n, rel=1e-6)
    assert (looked.p_value <= 0.05, looked.exact_p <= 0.05) == (tango, exact)
    assert looked.design_effect == 1


def test_conversations_that_fail_together_cost_pairs_and_p_but_not_the_exact_p() -> None:
    alone = single_look(Tally.of_pairs(n=400, harm=4, benefit=4), 0.05, both_ways=False)
    together = single_look(
        Tally(units={Triple(4, 4, 0): 1, Triple(4, 0, 4): 1, Triple(4, 0, 0): 98}), 0.05, both_ways=False
    )
    assert alone is not None
    assert together is not None
    # Every discordant conversation fails as one: four pairs are worth one, times K/(K-1) and (n-1)/n.
    assert together.design_effect == pytest.approx(4 * (100 / 99) * (399 / 400))
    assert together.p_value > alone.p_value
    assert together.exact_p == alone.exact_p
    assert together.difference.upper is not None
    assert alone.difference.upper is not None
    assert together.difference.upper > alone.difference.upper


def test_an_equivalence_is_shown_both_ways() -> None:
    fall = Tally.of_pairs(n=400, harm=0, benefit=40)
    one_way, both = (single_look(fall, 0.05, both_ways=each) for each in (False, True))
    assert one_way is not None
    assert both is not None
    assert one_way.exact_p is not None
    assert both.exact_p is not None
    assert one_way.p_value < 0.001
    assert one_way.exact_p < 0.001
    assert both.p_value > 0.99
    assert both.exact_p > 0.99


def test_where_enumeration_takes_long_there_is_no_exact_p() -> None:
    looked = single_look(Tally.of_pairs(n=6000, harm=60, benefit=60), 0.01, both_ways=False)
    assert looked is not None
    assert looked.exact_p is None


@pytest.mark.parametrize("language", Language)
def test_the_report_shows_it_in_a_table_of_its_own(language: Language) -> None:
    say = words(language)
    section = quality(sample(), say)
    assert section is not None
    caption = say("quality.single_look", tier="w8a8")
    (table,) = [each for each in section.blocks if isinstance(each, Table) and each.caption == caption]
    assert table.head[-3:] == tuple(
        say(f"quality.{name}") for name in ("p_value", "exact_p", "design_effect")
    )
    assert all(row.cells[-3:] == ("0.013", "0.014", "1.27") for row in table.rows)
    assert table.rows


def test_what_nobody_looked_at_is_a_dash() -> None:
    report = sample()
    tier = report.candidates[0]
    assert tier.verdict is not None
    bare = replace(
        tier.verdict, findings=tuple(replace(each, single_look=None) for each in tier.verdict.findings)
    )
    section = quality(
        replace(report, tiers=(report.tiers[0], replace(tier, verdict=bare))), words(Language.EN)
    )
    assert section is not None
    table = next(each for each in section.blocks if isinstance(each, Table))
    assert all(row.cells[1:] == (writing.NONE,) * 4 for row in table.rows)
