"""Kinds of requests by how much speaks of harm, over a real store."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from service.approval.config import ApiConfig
from service.approval.desk import Desk
from service.charts.heat import STEPS
from service.dashboard.sentences import sentences
from service.dashboard.tier.load import Runs
from service.dashboard.tier.reading import TierReading, read_tier
from service.dashboard.tier.strata import LEAST_PAIRS, noise_rows, strata_chart, strata_of
from service.fleet import Backend, Ladder, Tier
from service.report.words import Language, words
from service.store.redis.captures import Captures
from service.store.sql.database import Database
from tests.approval.live import CRITERIA, MODEL, TIERS, WIDE, add_pairs

NOW = 1_800_000_000.0
SAY, REPORT = sentences(Language.EN), words(Language.EN)
SHORT, LONG, TINY = "under-2k/free/whole", "32k-128k/free/stream", "2k-8k/structured/stream"


def reading(db: Database, captures: Captures) -> TierReading:
    """Of w8a8."""
    backend = (Backend(url="http://127.0.0.1:9"),)
    ladder = Ladder(
        model=MODEL,
        tiers=tuple(Tier(name=name, model="m", backends=backend, shadow=backend) for name in TIERS),
    )
    config = ApiConfig(
        ladders={MODEL: ladder},
        policy=WIDE,
        epoch_of=lambda model, tier: f"epoch of {tier}",
        evaluators=dict.fromkeys(CRITERIA, "1"),
    )
    desk = Desk(config=config, db=db, captures=captures, now=lambda: NOW)
    found = read_tier(desk, Runs(desk), MODEL, "w8a8", now=NOW)
    assert isinstance(found, TierReading)
    return found


def pairs(db: Database, stratum: str, tier: str = "w8a8", **kinds: Any) -> None:
    arm = "control" if tier == "bf16" else "candidate"
    add_pairs(db, tier, epoch=f"epoch of {tier}", arm=arm, stratum=stratum, **kinds)


def test_the_worst_stratum_is_the_one_in_which_most_speaks_of_harm(
    sqlite_database: Database, captures: Captures
) -> None:
    pairs(sqlite_database, SHORT, clean=300)
    pairs(sqlite_database, LONG, harm=60, clean=60)
    pairs(sqlite_database, TINY, harm=1)
    found = strata_of(reading(sqlite_database, captures))
    assert [each.name for each in found] == [LONG, TINY, SHORT]
    assert found[0].log_e_harm > 0
    assert found[0].excess > found[1].excess > 0 > found[2].excess


def test_each_cell_stands_beside_what_the_baseline_shows_against_itself(
    sqlite_database: Database, captures: Captures
) -> None:
    pairs(sqlite_database, LONG, harm=30, clean=70)
    pairs(sqlite_database, LONG, tier="bf16", harm=4, benefit=1, clean=95)
    seen = reading(sqlite_database, captures)
    drawn = strata_chart(seen, strata_of(seen), SAY, REPORT)
    assert drawn.head[:4] == (
        "stratum",
        "structured output: difference",
        "structured output: pairs",
        "structured output: A/A difference",
    )
    assert drawn.rows[0][:4] == (LONG, "+30.00 pp", "100", "+3.00 pp")
    assert f"the worst is {LONG}" in drawn.text
    assert "the baseline against itself there: +3.00 pp" in drawn.text
    for layout in (drawn.wide, drawn.narrow):
        assert ">+30.0<" in layout
        assert ">+3.0<" in layout


def test_a_few_pairs_are_told_and_not_coloured(sqlite_database: Database, captures: Captures) -> None:
    pairs(sqlite_database, TINY, harm=LEAST_PAIRS - 1)
    seen = reading(sqlite_database, captures)
    assert f"c-cell c-hot{STEPS}" not in strata_chart(seen, strata_of(seen), SAY, REPORT).wide
    pairs(sqlite_database, LONG, harm=LEAST_PAIRS)
    seen = reading(sqlite_database, captures)
    assert f"c-cell c-hot{STEPS}" in strata_chart(seen, strata_of(seen), SAY, REPORT).wide


def test_a_fall_is_harm_only_where_the_hypothesis_looks_both_ways(
    sqlite_database: Database, captures: Captures
) -> None:
    """Refusals are held to an equivalence: as many fewer are as bad as as many more."""
    pairs(sqlite_database, LONG, benefit=60, clean=40)
    (found,) = strata_of(reading(sqlite_database, captures))
    assert found.excess > 0
    structured_only = replace(
        reading(sqlite_database, captures), policy=replace(WIDE, criteria=WIDE.criteria[:1])
    )
    (found,) = strata_of(structured_only)
    assert found.excess < 0


def test_without_pairs_the_chart_says_so(sqlite_database: Database, captures: Captures) -> None:
    seen = reading(sqlite_database, captures)
    assert strata_of(seen) == []
    drawn = strata_chart(seen, [], SAY, REPORT)
    assert drawn.text == "No stratum holds a counted pair."
    assert drawn.rows == ()


def test_noise_is_told_by_criterion_with_what_the_baseline_has_itself(
    sqlite_database: Database, captures: Captures
) -> None:
    pairs(sqlite_database, LONG, harm=8, benefit=2, clean=90)
    assert noise_rows(reading(sqlite_database, captures), REPORT)[0] == (
        "structured output",
        "10.00 %",
        *("–",) * 4,
    )
    pairs(sqlite_database, LONG, tier="bf16", harm=3, benefit=2, clean=95)
    assert noise_rows(reading(sqlite_database, captures), REPORT)[0] == (
        "structured output",
        "10.00 %",
        "5.00 %",
        "100",
        "50.00 %",
        "–",
    )
