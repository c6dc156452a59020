from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.settings.nearest import distance, nearest


@pytest.mark.parametrize(
    ("one", "other", "changes"),
    [
        ("", "", 0),
        ("ladder", "ladder", 0),
        ("lader", "ladder", 1),  # one left out
        ("laddeer", "ladder", 1),  # one too many
        ("larder", "ladder", 1),  # one other
        ("ladedr", "ladder", 1),  # two swapped
        ("kitten", "sitting", 3),  # the textbook's
        ("ca", "abc", 3),  # where optimal string alignment and full Damerau-Levenshtein (2) part
    ],
)
def test_distance_counts_single_letter_changes(one: str, other: str, changes: int) -> None:
    assert distance(one, other) == changes


@given(st.text(max_size=12), st.text(max_size=12))
def test_distance_is_symmetric_and_zero_only_for_equals(one: str, other: str) -> None:
    assert distance(one, other) == distance(other, one)
    assert (distance(one, other) == 0) == (one == other)


def test_the_nearest_ignores_case_and_is_the_first_by_name_among_equals() -> None:
    assert nearest("Modles", ["proxy", "models", "money"]) == "models"
    assert nearest("x", ["b", "a"]) == "a"
