"""Pairs that differ, as people look through them: newest first, filtered, page by page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from service.store.kept.kept_answers import KeptAnswers, keep_within
from service.store.labels.adjudication import item_id
from service.store.scored import pair_listing
from service.store.scored.pair_listing import ListedPair, Wanted, beside, find_pair, list_pairs
from service.store.scored.pairs import record
from service.store.scored.units import Unit
from service.store.sql.database import Database
from tests.adjudicating import Queueing

UnitOf = Callable[..., Unit]
NOW = 1500.0
ALL = Wanted(model="m", tier="w8a8", epoch="e1", evaluators=("structured_output", "refusal"))


def add(db: Database, *units: Unit) -> None:
    for unit in units:
        assert record(db, capture_id=unit.capture_id, owner="w", units=[unit], at=unit.at)


def page(db: Database, number: int = 1, size: int = 50, **chosen: Any) -> list[str]:
    return names(listed(db, number, size, **chosen).pairs)


def listed(db: Database, number: int = 1, size: int = 50, **chosen: Any) -> pair_listing.Listing:
    wanted = Wanted(**{**{name: getattr(ALL, name) for name in ALL.__slots__}, **chosen})
    return list_pairs(db, wanted, page=number, size=size, now=NOW)


def names(pairs: Sequence[ListedPair]) -> list[str]:
    return [each.capture_id for each in pairs]


def test_pairs_that_differ_are_listed_newest_first_and_no_others(database: Database, unit_of: UnitOf) -> None:
    add(
        database,
        unit_of("old", "pf", at=1.0),
        unit_of("new", "fp", at=3.0),
        unit_of("middle", "pf", at=2.0, counted=False),
        unit_of("alike", "pp"),
        unit_of("both", "ff"),
        unit_of("unscored", "u"),
        unit_of("control", "pf", arm="control", tier="bf16"),
        unit_of("noise", "pf", arm="control"),
        unit_of("tier", "pf", tier="w4a16"),
        unit_of("model", "pf", model="other"),
        unit_of("epoch", "pf", epoch="e0"),
        unit_of("shown", "pf", evaluator="side_by_side"),
    )
    found = listed(database)
    assert names(found.pairs) == ["new", "middle", "old"]
    assert found.amount == 3
    assert [each.way.value for each in found.pairs] == ["benefit", "harm", "harm"]
    assert [each.counted for each in found.pairs] == [True, False, True]
    assert not found.is_cut
    assert page(database, evaluators=("side_by_side",)) == ["shown"]
    assert "shown" in page(database, evaluators=())


def test_of_a_unit_with_several_pairs_those_that_differ_are_listed(
    database: Database, unit_of: UnitOf
) -> None:
    add(database, unit_of("c", ["pp", "pf", "fp"], evaluator="refusal"))
    assert [(each.pair.item, each.way.value) for each in listed(database).pairs] == [
        (1, "harm"),
        (2, "benefit"),
    ]


def test_each_filter_leaves_what_has_its_word_and_counts_the_others_words(
    database: Database, unit_of: UnitOf
) -> None:
    add(
        database,
        unit_of("a", "pf", at=4.0),
        unit_of("b", "fp", at=3.0, stratum="long"),
        unit_of("c", "pf", at=2.0, evaluator="refusal", stratum="long"),
        unit_of("d", "pf", at=1.0, evaluator="refusal"),
    )
    assert page(database, evaluator="refusal") == ["c", "d"]
    assert page(database, stratum="long") == ["b", "c"]
    assert page(database, way="benefit") == ["b"]
    assert page(database, label="not_json") == ["a", "b", "c", "d"]
    assert page(database, label="ok") == [], "the class is that of the answer that failed"
    assert page(database, evaluator="refusal", stratum="short") == ["d"]
    found = listed(database, stratum="long")
    assert found.strata == {"long": 2, "short": 2}, "a filter's own words are all there to choose"
    assert found.evaluators == {"refusal": 1, "structured_output": 1}
    assert found.ways == {"benefit": 1, "harm": 1}
    assert found.labels == {"not_json": 2}


def test_pages_follow_one_another_without_gap_or_repetition(database: Database, unit_of: UnitOf) -> None:
    add(database, *(unit_of(f"c{number}", "pf", at=float(number // 3)) for number in range(10)))
    pages = [page(database, number, size=4) for number in (1, 2, 3, 4)]
    assert [len(each) for each in pages] == [4, 4, 2, 0]
    together = [name for each in pages for name in each]
    assert sorted(together) == sorted(f"c{number}" for number in range(10))
    assert page(database, 1, size=10) == together


def test_a_page_that_cannot_be_is_refused(database: Database) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        list_pairs(database, ALL, page=0, size=1, now=NOW)


def test_only_the_latest_are_counted_and_listed_and_that_is_said(
    database: Database, unit_of: UnitOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_listing, "MOST_LISTED", 3)
    add(database, *(unit_of(f"c{number}", "pf", at=float(number)) for number in range(5)))
    found = listed(database)
    assert (names(found.pairs), found.amount, found.is_cut) == (["c4", "c3", "c2"], 3, True)


def test_a_pair_is_found_by_the_name_of_its_page(database: Database, unit_of: UnitOf) -> None:
    add(database, unit_of("c", ["pp", "pf"]), unit_of("noise", "pf", arm="control"), unit_of("u", "u"))
    (pair,) = listed(database).pairs
    unit, _, item = pair.id.partition(".")
    assert find_pair(database, unit, int(item), now=NOW) == pair
    alike = find_pair(database, unit, 0, now=NOW)
    assert alike is not None
    assert alike.pair.outcome == "scored"
    assert find_pair(database, unit, 7, now=NOW) is None
    assert find_pair(database, "0" * 32, 0, now=NOW) is None
    for other in ("noise", "u"):
        unit_id = unit_of(
            other, "u" if other == "u" else "pf", arm="control" if other == "noise" else "candidate"
        ).id
        assert find_pair(database, unit_id, 0, now=NOW) is None


def test_neighbours_are_the_pairs_before_and_after_in_the_same_list(
    database: Database, unit_of: UnitOf
) -> None:
    add(
        database,
        unit_of("a", ["pf", "pf"], at=3.0),
        unit_of("b", "pf", at=2.0, stratum="long"),
        unit_of("c", "pf", at=2.0),
        unit_of("d", "pf", at=1.0),
    )
    for chosen in ({}, {"stratum": "short"}):
        wanted = Wanted(**{**{name: getattr(ALL, name) for name in ALL.__slots__}, **chosen})
        pairs = list_pairs(database, wanted, page=1, size=50, now=NOW).pairs
        ids = [None, *(each.id for each in pairs), None]
        for place, pair in enumerate(pairs):
            assert beside(database, wanted, pair) == (ids[place], ids[place + 2])


def test_a_pair_says_until_when_its_text_is_kept_wherever_it_lies(
    database: Database, unit_of: UnitOf
) -> None:
    queueing = Queueing(db=database, evaluator="refusal", keep_seconds=1000.0)
    (queued,) = queueing.add("pf")
    add(database, unit_of("kept", "pf"), unit_of("gone", "pf"), unit_of("never", "pf"))
    with database.write() as connection:
        for name, until in (("kept", 1800.0), ("gone", 1200.0)):
            told = KeptAnswers(capture_id=name, model="m", tenant="t", scored="", expires_at=until, blob=b"x")
            keep_within(database, connection, told, max_bytes=100)
    ends = {each.capture_id: each.kept_until for each in listed(database).pairs}
    assert (ends.pop("kept"), ends.pop("gone"), ends.pop("never")) == (1800.0, None, None)
    assert list(ends.values()) == [2000.0]
    (pair,) = (each for each in listed(database).pairs if each.kept_until == 2000.0)
    assert pair.item_id == queued == item_id(pair.unit_id, 0)
    assert queued not in pair.id
