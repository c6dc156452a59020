"""Tallies add in any order, and refuse what cannot be counted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.decision.tally import Tally, Triple


@st.composite
def tallies(draw: st.DrawFn) -> Tally:
    """Any valid tally."""
    units = {}
    for _ in range(draw(st.integers(0, 5))):
        pairs = draw(st.integers(1, 6))
        harm = draw(st.integers(0, pairs))
        units[Triple(pairs, harm, draw(st.integers(0, pairs - harm)))] = draw(st.integers(1, 10**6))
    concordant = sum((t.pairs - t.harm - t.benefit) * count for t, count in units.items())
    return Tally(
        units=units,
        both_failed=draw(st.integers(0, concordant)),
        unscored=draw(st.dictionaries(st.sampled_from(["shadow", "bug", "late"]), st.integers(1, 50))),
        not_counted=draw(st.integers(0, 1000)),
    )


@given(tallies(), tallies())
def test_the_order_of_two_tallies_does_not_matter(first: Tally, second: Tally) -> None:
    assert first + second == second + first


@given(tallies(), tallies())
def test_tallies_that_are_equal_are_found_by_the_same_hash(first: Tally, second: Tally) -> None:
    assert hash(first + second) == hash(second + first)
    assert {first + second: "here"}[second + first] == "here"


@given(tallies(), tallies(), tallies())
def test_the_grouping_of_tallies_does_not_matter(first: Tally, second: Tally, third: Tally) -> None:
    assert (first + second) + third == first + (second + third)


@given(tallies())
def test_an_empty_tally_changes_nothing(tally: Tally) -> None:
    assert tally + Tally() == tally == Tally() + tally


@given(tallies(), tallies())
def test_every_count_of_a_sum_is_the_sum_of_the_counts(first: Tally, second: Tally) -> None:
    both = first + second
    for count in (
        "n",
        "conversations",
        "harm",
        "benefit",
        "both_failed",
        "baseline_failures",
        "candidate_failures",
        "not_counted",
        "due",
    ):
        assert getattr(both, count) == getattr(first, count) + getattr(second, count)


def test_pairs_of_their_own_are_conversations_of_one() -> None:
    tally = Tally.of_pairs(n=10, harm=3, benefit=2)
    assert tally.units == {Triple(1, 1, 0): 3, Triple(1, 0, 1): 2, Triple(1, 0, 0): 5}
    assert (tally.n, tally.conversations, tally.harm, tally.benefit) == (10, 10, 3, 2)


def test_one_more_conversation_is_added_by_its_triple() -> None:
    tally = Tally().add(pairs=3, harm=1, both_failed=2).add(pairs=3, harm=1)
    assert tally.units == {Triple(3, 1, 0): 2}
    assert (tally.both_failed, tally.baseline_failures, tally.candidate_failures) == (2, 2, 4)


def test_what_was_due_includes_what_was_not_scored_and_not_counted() -> None:
    tally = Tally(units={Triple(1, 0, 0): 5}, unscored={"shadow": 2}, not_counted=4)
    assert tally.due == 11


@pytest.mark.parametrize(
    "wrong",
    [
        {"units": {Triple(1, 1, 1): 1}},
        {"units": {Triple(0, 0, 0): 1}},
        {"units": {Triple(1, -1, 0): 1}},
        {"units": {Triple(1, 0, 0): -1}},
        {"units": {Triple(1, 0, 0): 1}, "both_failed": 2},
        {"both_failed": -1},
        {"not_counted": -1},
        {"unscored": {"shadow": -1}},
    ],
)
def test_what_cannot_be_counted_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"conversation|discordant|concordant|negative"):
        Tally(**wrong)  # type: ignore[arg-type]
