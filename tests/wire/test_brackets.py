"""Whether JSON in fragments may have ended."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.wire.brackets import Brackets

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def read(*fragments: str) -> Brackets:
    found = Brackets()
    for fragment in fragments:
        found.read(fragment)
    return found


@given(VALUES.filter(lambda value: isinstance(value, list | dict)), st.data())
def test_a_container_closes_with_its_last_bracket_wherever_it_was_cut(
    value: object, data: st.DataObject
) -> None:
    text = json.dumps(value, ensure_ascii=False)
    cut = data.draw(st.integers(0, len(text)))
    assert read(text[:cut], text[cut:]).closed
    assert not read(text[:-1]).closed
    assert not read(text, "x").closed


@pytest.mark.parametrize("text", ["", "  ", "5", '"{}"', "{}{}", "{", '{"a":"}', '["\\"]', "]"])
def test_nothing_else_closes(text: str) -> None:
    assert not read(text).closed


def test_white_space_behind_it_leaves_it_closed() -> None:
    assert read('{"a":"\\\\"}', " \n", "\t").closed


def test_an_escape_may_be_cut_in_two() -> None:
    assert read('{"a":"\\', '""}').closed
