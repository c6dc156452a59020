"""Units: what a capture says about a tier."""

from __future__ import annotations

import dataclasses

import pytest

from service.store.scored.units import LATE, PairRow


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


def test_a_unit_that_waits_claims_its_request_and_not_its_conversation(unit_of):
    unit = unit_of("c", "pp", conversation="talk", digest="d")
    waiting = dataclasses.replace(unit, counted=False, waits=True)
    assert len(waiting.claim.keys) == 1
    assert set(waiting.claim.keys) < set(unit.claim.keys)
    assert dataclasses.replace(waiting, digest="").claim.keys == ()
    with pytest.raises(ValueError, match="does not count yet"):
        dataclasses.replace(unit, waits=True)


@pytest.mark.parametrize("name", ["zh", "language=zh en"])
def test_a_marginal_stratum_is_named_by_its_dimension(unit_of, name):
    with pytest.raises(ValueError, match="dimension=bucket"):
        unit_of("c", "pp", marginals=(name,))


def test_a_late_unit_has_neither_scores_nor_lost_ones_and_keeps_what_was_never_due(unit_of):
    late = unit_of("c", ["pf", "u", "n", "o"]).when_late()
    assert [(row.outcome, row.unscored_reason) for row in late.rows] == [
        ("unscored", LATE),
        ("unscored", LATE),
        ("not_applicable", ""),
        ("over_budget", ""),
    ]
    assert (late.counted, late.waits) == (False, False)
