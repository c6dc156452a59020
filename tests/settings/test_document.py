from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.settings.document import Unreadable, read_document


def test_every_value_knows_its_line() -> None:
    document = read_document("models:\n  qwen:\n    ladder:\n      - tier: bf16\n      - {tier: w8a8}\n")
    assert document.line_of(("models", "qwen")) == 2
    assert document.line_of(("models", "qwen", "ladder", 0)) == 4
    assert document.line_of(("models", "qwen", "ladder", 1, "tier")) == 5


def test_a_place_that_is_not_there_has_the_line_of_what_is_around_it() -> None:
    document = read_document("models:\n  qwen: {}\n")
    assert document.line_of(("models", "qwen", "ladder", 0, "tier")) == 2
    assert document.known(("models", "qwen", "ladder")) == ("models", "qwen")
    assert document.line_of(("proxy",)) is None


def test_a_duplicate_key_is_a_problem_that_names_both_lines() -> None:
    document = read_document("a: 1\nb: 2\na: 3\n")
    assert [str(problem) for problem in document.problems] == [
        "a (line 3): this key is already set on line 1; remove one of the two"
    ]
    assert document.content == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("off", "off"),
        ("yes", "yes"),
        ("true", True),
        ("True", "True"),
        ("1:30", "1:30"),
        ("2026-01-01", "2026-01-01"),
        ("0x10", "0x10"),
        ("010", 10),
        ("1e3", 1000.0),
        ("null", None),
        ("~", None),
        ("'5'", "5"),
        ("5%", "5%"),
    ],
)
def test_values_are_those_of_yaml_1_2(written: str, meant: object) -> None:
    assert read_document(f"key: {written}").content == {"key": meant}


def test_keys_stay_text() -> None:
    assert read_document("70: a\nnull: b\ntrue: c\n").content == {"70": "a", "null": "b", "true": "c"}


def test_anchors_and_merges_work_and_what_is_written_wins() -> None:
    document = read_document("base: &b {x: 1, y: 2}\nmine:\n  <<: *b\n  y: 3\n")
    assert document.content["mine"] == {"x": 1, "y": 3}
    assert document.problems == []


def test_an_empty_file_has_no_keys() -> None:
    assert read_document("# nothing\n").content == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1", "line 1: this is not YAML"),
        ("a: b: c", "line 1: this is not YAML"),
        ("- a\n- b\n", "line 1: expected keys and values at the top"),
        ("just text", "line 1: expected keys and values at the top"),
        ("a: 1\n---\nb: 2\n", "line 2: this is not YAML"),
        ("a: *nowhere", "line 1: this is not YAML"),
        ("a: &a [*a]", "nested too deeply, or an alias that contains itself"),
        ("a: &a {<<: *a}", "nested too deeply"),
        ("a: b\n\x00", "line 2: this is not YAML: the character U+0000 has no place in it"),
        ("a:\n\tb: c", "line 2: this is not YAML: it is indented with spaces, and here is a tab"),
    ],
)
def test_what_is_no_mapping_says_why_and_where(text: str, message: str) -> None:
    with pytest.raises(Unreadable) as caught:
        read_document(text)
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["[" * 5000, "a: " + "[" * 60 + "]" * 60])
def test_bottomless_nesting_is_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        read_document(text)


def test_aliases_that_multiply_are_refused_quickly() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(Unreadable, match="alias"):
        read_document("\n".join(lines))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: !!python/object:os.system {}", "has no meaning here"),
        ("a: !!int six", "this is no int"),
        ("? [x]\n: 1", "a key must be plain text"),
        ("a: {<<: 3}", "`<<` takes a mapping"),
    ],
)
def test_what_yaml_allows_and_a_configuration_does_not_is_a_problem(text: str, message: str) -> None:
    assert any(message in str(problem) for problem in read_document(text).problems)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(Unreadable):
        assert isinstance(read_document(text).content, dict)
