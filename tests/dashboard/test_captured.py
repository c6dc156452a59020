"""Text of clients and models: nothing in it is unseen, nothing acts, and what is long is folded."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.dashboard.captured import (
    HEAD,
    MOST_FOLDED,
    MOST_PIECES,
    TAIL,
    Piece,
    is_seen,
    name_of,
    pieces,
    shown,
)


def told(text: str) -> list[tuple[str, str]]:
    return [(piece.text, piece.unseen) for piece in pieces(text)]


@pytest.mark.parametrize(
    ("text", "spelled", "name"),
    [
        ("\x00", "U+0000", "NULL"),
        ("\x1b", "U+001B", "ESCAPE"),
        ("\r", "U+000D", "CARRIAGE RETURN"),
        ("\u202e", "U+202E", "RIGHT-TO-LEFT OVERRIDE"),
        ("\u2066", "U+2066", "LEFT-TO-RIGHT ISOLATE"),
        ("\u200b", "U+200B", "ZERO WIDTH SPACE"),
        ("\ufeff", "U+FEFF", "ZERO WIDTH NO-BREAK SPACE"),
        ("\u2028", "U+2028", "LINE SEPARATOR"),
        ("\u00a0", "U+00A0", "NO-BREAK SPACE"),
        ("\u00ad", "U+00AD", "SOFT HYPHEN"),
        ("\u3164", "U+3164", "HANGUL FILLER"),
        ("\u2800", "U+2800", "BRAILLE PATTERN BLANK"),
        ("\ud83d", "U+D83D", "HALF A SURROGATE PAIR"),
        ("\U000e0041", "U+E0041", "TAG LATIN CAPITAL LETTER A"),
        ("\ufe0f", "U+FE0F", "VARIATION SELECTOR-16"),
        ("\ue000", "U+E000", "PRIVATE USE"),
        ("\u0378", "U+0378", "UNASSIGNED"),
        ("\x9b", "U+009B", "CONTROL"),
    ],
)
def test_what_is_not_seen_is_spelled_out_and_named(text: str, spelled: str, name: str) -> None:
    assert told(f"a{text}b") == [("a", ""), (spelled, name), ("b", "")]


def test_a_run_of_one_unseen_character_is_one_piece_with_its_length() -> None:
    assert told("a" + "\x00" * 1_000_000) == [("a", ""), ("U+0000 × 1,000,000", "NULL")]


def test_different_unseen_characters_beside_each_other_are_one_piece() -> None:
    assert told("\x1b\u202e.") == [("U+001B U+202E", "several"), (".", "")]


def test_tabs_are_seen_and_still_indent() -> None:
    assert told("\t\tx") == [("⇥\t⇥\t", "TAB"), ("x", "")]


@pytest.mark.parametrize(
    "text", ["plain", "two\nlines\n", "中文，标点。\u3000宽", "שלום عليكم", "née Z̈", "❤️ and 🙂", "<b>&amp;"]
)
def test_what_is_seen_stands_as_it_is(text: str) -> None:
    assert told(text) == [(text, "")]


def test_nothing_is_nothing() -> None:
    assert list(pieces("")) == []
    assert shown("") == []


def test_markup_is_text() -> None:
    (piece,) = shown("<script>alert('&')</script>")
    assert piece.markup == "&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;"


def test_a_long_text_is_folded_to_its_beginning_and_its_end() -> None:
    text = "b" * HEAD + "m" * 1_000_000 + "e" * TAIL
    assert shown(text) == [
        Piece(text="b" * HEAD),
        Piece(text="", folded=1_000_000),
        Piece(text="e" * TAIL),
    ]
    assert shown(text, whole=True) == [Piece(text=text)]
    assert [piece.folded for piece in shown("x" * MOST_FOLDED)] == [0]


def test_a_hostile_text_makes_a_bounded_number_of_pieces_and_loses_nothing() -> None:
    text = "a\x00" * MOST_PIECES
    found = shown(text, whole=True)
    assert len(found) == MOST_PIECES + 1
    assert "".join(piece.text for piece in found) == "aU+0000" * MOST_PIECES


@given(st.text(st.characters(exclude_categories=()), max_size=200))
def test_no_piece_holds_anything_that_is_not_seen_and_all_that_is_seen_is_there(text: str) -> None:
    found = list(pieces(text))
    for piece in found:
        for each in piece.text.replace("\t", "") if piece.unseen else piece.text:
            assert each in "\n\u3000" or unicodedata.category(each) not in {
                "Cc",
                "Cf",
                "Cs",
                "Co",
                "Cn",
                "Zl",
                "Zp",
            }
    seen = [each for place, each in enumerate(text) if is_seen(each, text[place - 1 : place])]
    assert "".join(piece.text for piece in found if not piece.unseen) == "".join(seen)


@given(st.characters(exclude_categories=()))
def test_every_character_has_a_name(each: str) -> None:
    assert name_of(each)
