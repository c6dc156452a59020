"""Where two texts differ, by words: always the whole of both, readable when short, bounded when not."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.dashboard.word_changes import EFFORT, MOST_EDITS, _aligned, _shortest, stretches, words_of

WORDS = st.text("ab ,\n中\u0301", max_size=40)


def told(one: str, other: str) -> list[str | tuple[str, str]]:
    return [
        each.baseline if each.is_same else (each.baseline, each.candidate) for each in stretches(one, other)
    ]


@pytest.mark.parametrize(
    ("one", "other", "changes"),
    [
        ("the quick fox", "the slow fox", ["the ", ("quick", "slow"), " fox"]),
        ("one two three", "one three", ["one ", ("two ", ""), "three"]),
        ("", "new", [("", "new")]),
        ("same", "same", ["same"]),
        ("", "", []),
        ("the red house", "a blue house", [("the red", "a blue"), " house"]),
        ("今天天气好", "今天心情好", ["今天", ("天气", "心情"), "好"]),
        ("12.50 EUR", "12.60 EUR", ["12.", ("50", "60"), " EUR"]),
        ("a\nb\n", "a\r\nb\n", ["a", ("", "\r"), "\nb\n"]),
    ],
)
def test_changes_are_told_by_words(one: str, other: str, changes: list[object]) -> None:
    assert told(one, other) == changes


def test_words_are_words_ideographs_blanks_and_single_marks() -> None:
    assert words_of("Two  words,\n中文 x_1!") == [
        "Two",
        "  ",
        "words",
        ",",
        "\n",
        "中",
        "文",
        " ",
        "x_1",
        "!",
    ]


def test_one_change_in_a_line_of_a_million_characters_is_a_small_change() -> None:
    one = "x" * 500_000 + "y" + "x" * 500_000
    other = "x" * 500_000 + "z" + "x" * 500_000
    changed = [each for each in stretches(one, other) if not each.is_same]
    assert len(changed) == 1
    assert len(changed[0].baseline) < 200


def test_scattered_changes_in_a_long_text_are_found_between_its_unique_words() -> None:
    one = [f"word{number}" for number in range(20_000)]
    other = [("other" if number % 1000 == 500 else word) for number, word in enumerate(one)]
    changed = [each for each in stretches(" ".join(one), " ".join(other)) if not each.is_same]
    assert [each.baseline for each in changed] == [f"word{number}" for number in range(500, 20_000, 1000)]
    assert {each.candidate for each in changed} == {"other"}


def test_where_too_much_differs_all_of_it_is_told_as_changed() -> None:
    one, other = "a b " * 60_000, "b c a " * 40_000
    found = stretches(one, other)
    assert "".join(each.baseline for each in found) == one
    assert "".join(each.candidate for each in found) == other
    assert len(found) <= 3


def test_the_shortest_script_gives_up_after_so_many_edits_and_steps() -> None:
    one, other = list(range(MOST_EDITS)), list(range(MOST_EDITS, 2 * MOST_EDITS))
    script, steps = _shortest(one, other, EFFORT)
    assert script is None
    assert steps <= (MOST_EDITS + 1) ** 2
    assert _shortest(one, other, 100)[0] is None
    assert _shortest([1, 2, 3], [1, 3], EFFORT)[0] == [(2, 1), (0, 0)]


@given(st.lists(st.integers(0, 3), max_size=12), st.lists(st.integers(0, 3), max_size=12))
def test_words_that_stand_for_each_other_are_equal_and_as_many_as_can_be(
    one: list[int], other: list[int]
) -> None:
    found = _aligned(one, other)
    assert all(one[place] == other[across] for place, across in found)
    assert all(a < c and b < d for (a, b), (c, d) in pairwise(found))
    longest = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for row, mine in enumerate(one, 1):
        for column, theirs in enumerate(other, 1):
            longest[row][column] = (
                longest[row - 1][column - 1] + 1
                if mine == theirs
                else max(longest[row - 1][column], longest[row][column - 1])
            )
    assert len(found) == longest[-1][-1]


@given(WORDS, WORDS)
def test_put_together_the_stretches_are_both_texts(one: str, other: str) -> None:
    found = stretches(one, other)
    assert "".join(each.baseline for each in found) == one
    assert "".join(each.candidate for each in found) == other
    assert "".join(words_of(one)) == one


@given(WORDS)
def test_a_text_is_the_same_as_itself(text: str) -> None:
    assert all(each.is_same for each in stretches(text, text))
