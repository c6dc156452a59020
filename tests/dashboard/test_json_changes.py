"""Two JSON values side by side where they differ."""

from __future__ import annotations

import json

import pytest

from service.dashboard.json_changes import MOST_ROWS, MOST_VALUE, Difference, json_changes


def rows(one: str, other: str) -> list[tuple[str, str, str, str]]:
    found = json_changes(one, other)
    assert found is not None
    return [(row.pointer, row.difference.value, row.baseline, row.candidate) for row in found.rows]


def test_places_that_differ_are_told_by_pointer_with_what_either_side_has() -> None:
    one = '{"a": 1, "b": {"c/d": "x", "~": [1, 2]}, "gone": true}'
    other = '{"a": "1", "b": {"c/d": "y", "~": [1]}, "new": null}'
    assert rows(one, other) == [
        ("/a", "type", "1", '"1"'),
        ("/b/c~1d", "value", '"x"', '"y"'),
        ("/b/~0/1", "only_baseline", "2", ""),
        ("/gone", "only_baseline", "true", ""),
        ("/new", "only_candidate", "", "null"),
    ]


def test_what_agrees_is_counted_and_not_listed() -> None:
    found = json_changes('{"a": 1, "b": [1, 2.0]}', ' {"b": [1.0, 2], "a": 1}\n')
    assert found is not None
    assert (found.fields, found.differing, found.rows, found.left_out) == (3, 0, (), 0)


def test_a_value_of_another_kind_differs_as_a_whole() -> None:
    assert rows("[]", '{"a": 1}') == [("", "type", "[]", '{"a": 1}')]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("{}", "no JSON"),
        ("```json\n{}\n```", "{}"),
        ("", "{}"),
        ('"text"', '"text"'),
        ("1", "2"),
        ("[" * 500, "[]"),
    ],
)
def test_what_is_no_json_on_both_sides_is_not_compared_as_json(one: str, other: str) -> None:
    assert json_changes(one, other) is None


def test_long_values_and_long_lists_are_cut_and_counted() -> None:
    one = json.dumps({f"n{number:03}": "x" * 1000 for number in range(150)} | {"t": 1})
    other = json.dumps({f"n{number:03}": "y" * 1000 for number in range(150)} | {"t": "1"})
    found = json_changes(one, other)
    assert found is not None
    assert found.differing == 151
    assert len(found.rows) == MOST_ROWS
    assert found.left_out == 1, "100 of the values are told apart, and the type"
    assert len(found.rows[0].baseline) == MOST_VALUE + 1


def test_too_many_fields_are_not_compared() -> None:
    many = json.dumps(list(range(60_000)))
    assert json_changes(many, many) is None


def test_a_lone_surrogate_in_a_name_is_a_name() -> None:
    assert rows('{"\\ud83d": 1}', "{}")[0][1] == Difference.ONLY_BASELINE
