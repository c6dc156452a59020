"""The pairs that speak against a tier, on both databases."""

from __future__ import annotations

import pytest

from service.store.scored.pairs import record
from service.store.scored.worst import MOST_STRATA, worst_pairs

LONG, SHORT = "32k-128k/free/whole", "under-2k/free/whole"


def put(database, *units, at=1.0):
    for unit in units:
        assert record(database, capture_id=unit.capture_id, owner="w", units=[unit], at=at)


def worst(database, **changes):
    asked = {"model": "m", "tier": "w8a8", "epoch": "e1", "evaluator": "structured_output"}
    return worst_pairs(database, **{**asked, **changes})


def test_only_counted_harms_of_the_epoch_speak_against_a_tier(database, unit_of):
    put(
        database,
        unit_of("harm", "pf"),
        unit_of("benefit", "fp"),
        unit_of("both", "ff"),
        unit_of("clean", "pp"),
        unit_of("unscored", "u"),
        unit_of("later", "pf", counted=False, conversation="talk of harm"),
        unit_of("old", "pf", epoch="e0"),
        unit_of("control", "pf", arm="control"),
        unit_of("other", "pf", evaluator="refusal"),
    )
    found = worst(database)
    assert (found.pairs, [each.capture_id for each in found.examples]) == (1, ["harm"])
    assert found.labels == {("ok", "not_json"): 1}
    assert found.examples[0].pair.candidate_reason == "expected JSON, found prose"
    both = worst(database, both_ways=True)
    assert (both.pairs, {each.capture_id for each in both.examples}) == (2, {"harm", "benefit"})
    assert both.labels == {("not_json", "ok"): 1, ("ok", "not_json"): 1}


def test_the_worst_strata_come_first_and_share_the_examples(database, unit_of):
    put(database, *(unit_of(f"l{n}", "pf", stratum=LONG, at=float(n)) for n in range(6)))
    put(database, *(unit_of(f"s{n}", "pf", stratum=SHORT, at=float(n)) for n in range(2)))
    found = worst(database, limit=4)
    assert list(found.strata.items()) == [(LONG, 6), (SHORT, 2)]
    assert [each.capture_id for each in found.examples] == ["l5", "l4", "s1", "s0"], "the latest of each"
    many = [unit_of(f"m{n}", "pf", stratum=f"s{n}/free/whole") for n in range(MOST_STRATA + 2)]
    put(database, *many)
    assert len(worst(database, limit=3).examples) == 3


def test_every_needle_of_a_request_is_a_pair(database, unit_of):
    put(database, unit_of("c", ["pf", "pp", "pf"]))
    found = worst(database)
    assert (found.pairs, [each.pair.item for each in found.examples]) == (2, [0, 2])


def test_nothing_recorded_is_nothing_and_no_example_is_no_question(database):
    assert (worst(database).pairs, worst(database).examples) == (0, ())
    with pytest.raises(ValueError, match="at least 1"):
        worst(database, limit=0)
