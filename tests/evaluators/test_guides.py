"""Texts against the guide that their request gave the engine."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.exchange import Guide, GuideKind
from evaluators.guides import UnsupportedGuide, check_guide, departure

CHOICE = Guide(kind=GuideKind.CHOICE, choices=("yes", " no\n", ""))


@pytest.mark.parametrize(
    ("text", "keeps"),
    [("yes", True), ("no", True), (" no\n", True), ("", True), ("ye", False), ("yes no", False)],
)
def test_a_choice_is_one_of_the_texts_whatever_space_is_around_it(text: str, keeps: bool) -> None:
    assert (departure(CHOICE, text) is None) is keeps


def test_a_departure_names_what_was_expected() -> None:
    assert departure(CHOICE, "maybe") == "expected one of 3 choices, found another text"
    assert departure(Guide(kind=GuideKind.REGEX, written="a+"), "b") == (
        "expected a match of 'a+', found another text"
    )


@pytest.mark.parametrize("kind", [GuideKind.GRAMMAR, GuideKind.STRUCTURAL_TAG])
def test_what_has_a_notation_of_each_engine_s_own_is_not_judged(kind: GuideKind) -> None:
    for written in ("", 'root ::= "x"'):
        with pytest.raises(UnsupportedGuide, match="not judged"):
            check_guide(Guide(kind=kind, written=written))


@given(st.text("ab1 \n", max_size=8))
def test_a_regular_expression_is_matched_as_a_whole(text: str) -> None:
    guide = Guide(kind=GuideKind.REGEX, written="[ab]+|1{2}")
    fits = re.fullmatch("[ab]+|1{2}", text.strip()) is not None
    assert (departure(guide, text) is None) is fits


@given(st.lists(st.text(max_size=4), min_size=1, max_size=4), st.text(max_size=4))
def test_every_choice_keeps_to_its_choice(choices: list[str], other: str) -> None:
    guide = Guide(kind=GuideKind.CHOICE, choices=tuple(choices))
    assert all(departure(guide, choice) is None for choice in choices)
    assert (departure(guide, other) is None) is (other.strip() in {choice.strip() for choice in choices})
