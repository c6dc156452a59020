"""Units: what a capture says about a tier, and what it adds to the counts."""

from __future__ import annotations

import dataclasses

import pytest

from service.store.units import PairRow, ledger_rows, tally_rows


def counts(unit, counted=True):
    return {
        (row.kind, row.reason, row.pairs, row.harm, row.benefit): n
        for row, n in tally_rows(unit, counted=counted).items()
    }


@pytest.mark.parametrize(
    ("judged", "triple", "both_failed"),
    [
        ("pp", (1, 0, 0), 0),
        ("pf", (1, 1, 0), 0),
        ("fp", (1, 0, 1), 0),
        ("ff", (1, 0, 0), 1),
        (["pp", "pf", "pf", "fp", "ff"], (5, 2, 1), 1),
    ],
)
def test_a_counted_unit_is_one_conversation_with_its_triple(unit_of, judged, triple, both_failed):
    expected = {("unit", "", *triple): 1}
    if both_failed:
        expected["both_failed", "", 0, 0, 0] = both_failed
    assert counts(unit_of("c", judged)) == expected


def test_pairs_that_are_not_scored_leave_the_triple(unit_of):
    # three needles: one harm, one unscored, one over budget
    unit = unit_of("c", ["pf", "u", "o"])
    assert counts(unit) == {("unit", "", 1, 1, 0): 1, ("unscored", "shadow", 0, 0, 0): 1}


def test_a_unit_that_does_not_count_is_shown_and_its_failures_are_not(unit_of):
    unit = unit_of("c", ["pf", "ff", "u"])
    assert counts(unit, counted=False) == {
        ("not_counted", "", 0, 0, 0): 2,
        ("unscored", "shadow", 0, 0, 0): 1,
    }


def test_a_unit_with_nothing_scored_adds_no_conversation(unit_of):
    assert counts(unit_of("c", "n")) == {}
    assert counts(unit_of("c", "u")) == {("unscored", "shadow", 0, 0, 0): 1}


def test_the_pair_ledger_gets_every_pair_twice_as_due_and_as_what_became_of_it(unit_of):
    rows = ledger_rows(unit_of("c", ["pf", "pp", "u", "n", "o"]))
    assert {(row.outcome, row.reason): n for row, n in rows.items()} == {
        ("due", ""): 5,
        ("scored", ""): 2,
        ("unscored", "shadow"): 1,
        ("not_applicable", ""): 1,
        ("over_budget", ""): 1,
    }


@pytest.mark.parametrize(
    "fields",
    [
        {"outcome": "guessed"},
        {"outcome": "scored"},
        {"outcome": "scored", "baseline_passed": True},
        {"outcome": "unscored"},
        {"outcome": "unscored", "unscored_reason": "bug", "baseline_passed": True, "candidate_passed": True},
        {"outcome": "not_applicable", "unscored_reason": "bug"},
        {"outcome": "not_applicable", "origin": "dream"},
    ],
)
def test_a_pair_that_contradicts_itself_is_refused(fields):
    with pytest.raises(ValueError, match=r"a pair has|not a valid|origin is"):
        PairRow(**fields)


def test_a_unit_without_pairs_with_an_item_twice_or_with_an_unknown_arm_is_refused(unit_of):
    unit = unit_of("c", "pp")
    with pytest.raises(ValueError, match="without pairs"):
        dataclasses.replace(unit, rows=())
    with pytest.raises(ValueError, match="an item twice"):
        dataclasses.replace(unit, rows=(unit.rows[0], unit.rows[0]))
    with pytest.raises(ValueError, match="not a valid Arm"):
        dataclasses.replace(unit, arm="experiment")


def test_what_a_unit_must_hold_depends_on_everything_it_is_about(unit_of):
    unit = unit_of("c", "pp")
    for changes in (
        {"tier": "other"},
        {"arm": "control"},
        {"epoch": "other"},
        {"evaluator": "other"},
        {"version": "other"},
    ):
        other = dataclasses.replace(unit, **changes)
        assert not set(other.claim.keys) & set(unit.claim.keys)
        assert other.id != unit.id
    assert len(dataclasses.replace(unit, digest="").claim.keys) == 1
