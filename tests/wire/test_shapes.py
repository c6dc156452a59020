"""Fields of a wire body say what they should have been."""

from __future__ import annotations

import pytest

from service.wire import shapes
from service.wire.shapes import WrongShape


def test_absent_and_null_are_empty() -> None:
    assert shapes.text(None, "x") == ""
    assert shapes.mapping(None, "x") == {}
    assert shapes.items(None, "x") == ()
    assert shapes.count(None, "x") is None


def test_a_wrong_type_is_named_with_its_place() -> None:
    with pytest.raises(WrongShape, match="role is a number, not a string"):
        shapes.text(3, "role")
    with pytest.raises(WrongShape, match="tool is an array, not an object"):
        shapes.mapping([], "tool")
    with pytest.raises(WrongShape, match="tools is a boolean, not an array"):
        shapes.items(True, "tools")
    with pytest.raises(WrongShape, match="n is not a whole number"):
        shapes.count(1.5, "n")
    with pytest.raises(WrongShape, match="n is not a whole number"):
        shapes.count(True, "n")


def test_a_whole_double_is_a_count() -> None:
    assert shapes.count(3.0, "n") == 3


def test_kinds_are_called_as_json_calls_them() -> None:
    assert [shapes.kind(v) for v in ({}, [], "", True, None, 1, 1.5)] == [
        "an object",
        "an array",
        "a string",
        "a boolean",
        "null",
        "a number",
        "a number",
    ]


def test_json_of_engines_may_hold_nan_a_mark_and_names_twice() -> None:
    value = shapes.read_json('\ufeff{"a":NaN,"b":-Infinity,"c":1,"c":2}')
    assert value["a"] != value["a"]
    assert value["c"] == 2


@pytest.mark.parametrize("text", ["", "{", "[" * 10_000, "nul", '"\n"'])
def test_what_is_not_json_is_a_wrong_shape(text: str) -> None:
    with pytest.raises(WrongShape):
        shapes.read_json(text)


def test_numbers_of_thousands_of_digits_are_read() -> None:
    assert shapes.read_json("9" * 5000) == float("inf")
    assert shapes.read_json("9" * 30) == int("9" * 30)


def test_json_is_written_short_and_in_order() -> None:
    assert shapes.write_json({"b": 1, "a": "é"}) == '{"b":1,"a":"é"}'


def test_numbers_beyond_a_double_stay_exact_as_evaluators_read_them() -> None:
    assert shapes.read_json("[1e400, -2.5e309, 1.5, 1e300]") == [10**400, -25 * 10**308, 1.5, 1e300]
    assert shapes.read_json("1e9999") == float("inf")
    assert shapes.write_json(shapes.read_json('{"n":1e400}')) == '{"n":1' + "0" * 400 + "}"


def test_a_body_may_be_deeper_than_what_it_carries() -> None:
    carried = "[" * 128 + "]" * 128
    assert shapes.read_json('{"content":[{"input":' + carried + "}]}")
    with pytest.raises(WrongShape, match="deeper"):
        shapes.read_json("[" * 145 + "]" * 145)


def test_a_character_cut_between_its_surrogates_is_one_again() -> None:
    assert shapes.joined(["a\ud83c", "", "\udf0f", "b"]) == "a🌏b"
    assert shapes.joined(["\udf0f", "\ud83c"]) == "\udf0f\ud83c"
    assert shapes.joined([]) == ""
