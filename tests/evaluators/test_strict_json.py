"""JSON by the letter, bounded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.strict_json import NotJson, TooMuch, deeper_than, parse

ACCEPTED = {
    # beyond a double: underflow is zero, a whole number is exact
    "i_number_double_huge_neg_exp.json",
    "i_number_real_underflow.json",
    "i_number_too_big_neg_int.json",
    "i_number_too_big_pos_int.json",
    "i_number_very_big_negative_int.json",
    # lone surrogates in escapes are in the grammar (RFC 8259, 8.2)
    "i_object_key_lone_2nd_surrogate.json",
    "i_string_1st_surrogate_but_2nd_missing.json",
    "i_string_1st_valid_surrogate_2nd_invalid.json",
    "i_string_incomplete_surrogate_and_escape_valid.json",
    "i_string_incomplete_surrogate_pair.json",
    "i_string_incomplete_surrogates_escape_valid.json",
    "i_string_invalid_lonely_surrogate.json",
    "i_string_invalid_surrogate.json",
    "i_string_inverted_surrogates_U+1D11E.json",
    "i_string_lone_second_surrogate.json",
}
TOO_MUCH = {
    "i_number_huge_exp.json",
    "i_number_neg_int_huge_exp.json",
    "i_number_pos_double_huge_exp.json",
    "i_number_real_neg_overflow.json",
    "i_number_real_pos_overflow.json",
    "i_structure_500_nested_arrays.json",
}
REFUSED = {
    # not UTF-8, or a byte order mark (RFC 8259, 8.1)
    "i_string_UTF-16LE_with_BOM.json",
    "i_string_UTF-8_invalid_sequence.json",
    "i_string_UTF8_surrogate_U+D800.json",
    "i_string_invalid_utf-8.json",
    "i_string_iso_latin_1.json",
    "i_string_lone_utf8_continuation_byte.json",
    "i_string_not_in_unicode_range.json",
    "i_string_overlong_sequence_2_bytes.json",
    "i_string_overlong_sequence_6_bytes.json",
    "i_string_overlong_sequence_6_bytes_null.json",
    "i_string_truncated-utf-8.json",
    "i_string_utf16BE_no_BOM.json",
    "i_string_utf16LE_no_BOM.json",
    "i_structure_UTF-8_BOM_empty_object.json",
}


def verdicts(suites: Path, kind: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for file in sorted((suites / "jsontestsuite" / "test_parsing").glob(f"{kind}_*.json")):
        try:
            parse(file.read_bytes())
        except (NotJson, TooMuch) as error:
            found[file.name] = type(error).__name__
        else:
            found[file.name] = "accepted"
    return found


def test_all_texts_of_the_suite_that_must_parse_do(suites: Path) -> None:
    found = verdicts(suites, "y")
    assert len(found) == 95
    assert set(found.values()) == {"accepted"}


def test_all_texts_of_the_suite_that_must_not_parse_do_not(suites: Path) -> None:
    found = verdicts(suites, "n")
    assert len(found) == 188
    assert [name for name, verdict in found.items() if verdict == "accepted"] == []


def test_the_texts_that_the_suite_leaves_open_are_decided(suites: Path) -> None:
    found = verdicts(suites, "i")
    assert len(found) == 35
    assert {name for name, verdict in found.items() if verdict == "accepted"} == ACCEPTED
    assert {name for name, verdict in found.items() if verdict == "TooMuch"} == TOO_MUCH
    assert {name for name, verdict in found.items() if verdict == "NotJson"} == REFUSED


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("NaN", "NaN is not a JSON number"),
        ('{"a":-Infinity}', "-Infinity is not"),
        ("\ufeff{}", "byte order mark"),
        ("{} {}", "Extra data"),
        ("{'a':1}", "at character 1"),
        ("[1,]", "at character"),
        ('"\t"', "control character"),
        ("", "Expecting value at character 0"),
        (b"\xff", "not UTF-8 at byte 0"),
    ],
)
def test_what_the_grammar_forbids_is_named(text: str | bytes, complaint: str) -> None:
    with pytest.raises(NotJson, match=complaint):
        parse(text)


def test_names_used_twice_are_reported_and_the_last_counts() -> None:
    found = parse('{"a":1,"b":{"c":1,"c":2,"c":3},"a":4}')
    assert found.value == {"a": 4, "b": {"c": 3}}
    assert found.duplicates == ("c", "a")
    assert parse('{"a":1}').duplicates == ()


def test_size_is_bounded_before_parsing() -> None:
    with pytest.raises(TooMuch, match="11 characters > 10"):
        parse("[1,2,3,4,5]", max_chars=10)
    with pytest.raises(TooMuch, match="> 4194304"):
        parse('"' + "x" * 10_000_000 + '"')


def test_depth_is_bounded_before_parsing_and_brackets_in_strings_do_not_count() -> None:
    assert parse("[" * 128 + "]" * 128)
    with pytest.raises(TooMuch, match="nested deeper than 128"):
        parse("[" * 129 + "]" * 129)
    with pytest.raises(TooMuch):
        parse('{"a":' * 100_000)
    assert parse(json.dumps("[{" * 1000 + '\\"')).value
    assert len(parse(json.dumps([[]] * 1000)).value) == 1000


def test_an_open_string_hides_what_follows_it() -> None:
    assert not deeper_than('"' + "[" * 500, 10)
    assert deeper_than('"\\"" ' + "[" * 500, 10)


def test_numbers_beyond_a_double_stay_exact_or_are_too_much() -> None:
    assert parse("1e400").value == 10**400
    assert parse("-1.5e400").value == -15 * 10**399
    assert parse("9" * 400).value == int("9" * 400)
    assert parse("1e-400").value == 0.0
    for text in ("1e5000", "9" * 4001, "0." + "9" * 4001, "1e99999999999999999999"):
        with pytest.raises(TooMuch, match="digits"):
            parse(text)


@given(st.binary(max_size=60) | st.text(max_size=60))
def test_any_text_is_parsed_or_refused_and_python_agrees_where_it_is_accepted(text: str | bytes) -> None:
    try:
        found = parse(text)
    except (NotJson, TooMuch):
        return
    assert found.value == json.loads(text)


values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(values)
def test_whatever_is_written_as_json_is_read_back(value: Any) -> None:
    assert parse(json.dumps(value)).value == value
