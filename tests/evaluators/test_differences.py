"""Where two JSON values differ."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.differences import MOST_FIELDS, MOST_POINTERS, Agreement, TooManyFields, agreement


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ({"a": 1, "b": [True, None]}, {"b": [True, None], "a": 1.0}, Agreement(fields=3)),
        ({"a": 1}, {"a": 2}, Agreement(fields=1, values=("/a",), differing=1)),
        ({"a": 1}, {"a": "1"}, Agreement(fields=1, types=("/a",), differing=1)),
        ({"a": 1}, {"a": True}, Agreement(fields=1, types=("/a",), differing=1)),
        ({"a": None}, {}, Agreement(fields=1, missing=("/a",), differing=1)),
        ({}, {"a": {"b": 1, "c": 2}}, Agreement(fields=2, missing=("/a",), differing=2)),
        ({"a": {"b": 1, "c": 2}}, {"a": []}, Agreement(fields=2, types=("/a",), differing=2)),
        ([1, 2, 3], [1, 3], Agreement(fields=3, missing=("/2",), values=("/1",), differing=2)),
        ([], [], Agreement(fields=1)),
        ({"a": {}}, {"a": {}}, Agreement(fields=1)),
        ("x", "y", Agreement(fields=1, values=("",), differing=1)),
        ({"a/b": {"~": 1}}, {"a/b": {"~": 2}}, Agreement(fields=1, values=("/a~1b/~0",), differing=1)),
        (
            {"a": 1, "b": "x", "c": 0, "d": 4},
            {"a": 2, "b": 5, "e": 0, "d": 4},
            Agreement(fields=5, missing=("/c", "/e"), types=("/b",), values=("/a",), differing=4),
        ),
    ],
)
def test_each_difference_is_of_one_kind_and_has_its_pointer(one: Any, other: Any, found: Agreement) -> None:
    assert replace(agreement(one, other), same=()) == found
    assert replace(agreement(other, one), same=()) == found


def test_leaves_that_agree_are_named_too() -> None:
    assert agreement({"a": 1, "b": [1, {}], "c": 2}, {"a": 1, "b": [1, {}], "c": 3}).same == (
        "/a",
        "/b/0",
        "/b/1",
    )


def test_the_share_is_that_of_the_fields_of_either() -> None:
    assert agreement({"a": 1, "b": 2, "c": 3, "d": 4}, {"a": 1, "b": 2, "c": 3, "d": 5}).share == 0.75
    assert agreement({}, {}).share == 1.0


def test_all_differences_count_and_so_many_are_named() -> None:
    found = agreement(list(range(1000)), list(range(1, 1001)))
    assert (found.fields, found.differing, len(found.values)) == (1000, 1000, MOST_POINTERS)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([0] * (MOST_FIELDS + 2), [0] * (MOST_FIELDS + 2)),
        ([0] * (MOST_FIELDS + 2), []),
        ([[0] * (MOST_FIELDS + 2)], [{"a": 1}]),
        ([[[0]] * (MOST_FIELDS + 2)], [0]),
    ],
)
def test_what_has_too_many_fields_is_not_compared(one: Any, other: Any) -> None:
    with pytest.raises(TooManyFields):
        agreement(one, other)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab~/", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab~/", max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(values, values)
def test_values_agree_wholly_just_when_they_are_equal(one: Any, other: Any) -> None:
    found = agreement(one, other)
    named = bool(found.missing or found.types or found.values)
    assert named is (found.differing > 0)
    assert 0 <= found.differing <= found.fields
    if found.differing == 0:
        assert agreement(one, copy.deepcopy(other)).share == 1.0
    assert found == agreement(other, one)


@given(values)
def test_a_value_agrees_with_its_copy(value: Any) -> None:
    found = agreement(value, copy.deepcopy(value))
    assert (found.differing, found.share) == (0, 1.0)
    assert found.fields >= 1
