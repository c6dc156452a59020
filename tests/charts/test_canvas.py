"""Marks and words at places: strict XML, no style, every text harmless."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.charts.canvas import Canvas, breadth, fitted, place, visible


def canvas() -> Canvas:
    return Canvas(name="one", width=100, height=50, title="Title", description="Words")


def test_it_has_a_title_and_a_description_that_a_screen_reader_is_led_to() -> None:
    root = ET.fromstring(canvas().markup())
    assert root.get("role") == "img"
    named = {each.get("id"): each.text for each in root}
    assert [named[name] for name in root.get("aria-labelledby", "").split()] == ["Title", "Words"]


def test_elements_carry_classes_and_no_styles() -> None:
    drawn = canvas()
    drawn.line(0, 0, 1, 1, "axis")
    drawn.box(0, 0, 10, 10, "bar good", tip="ten")
    drawn.ribbon((0, 0), (10, 5), 3, 3, "band through")
    for shape in range(6):
        drawn.mark(5, 5, shape, "fill f1")
    text = drawn.markup()
    assert "style" not in text
    assert "fill=" not in text
    assert 'class="c-bar c-good"' in text
    assert ET.fromstring(text) is not None


def test_it_names_no_address() -> None:
    assert "http" not in canvas().markup()


@given(st.text())
def test_any_text_makes_well_formed_xml_in_which_it_is_text(text: str) -> None:
    drawn = Canvas(name="one", width=100, height=50, title=text, description=text)
    drawn.word(0, 10, text)
    drawn.box(0, 0, 5, 5, "bar", tip=text or "none")
    root = ET.fromstring(drawn.markup())
    assert {each.tag for each in root.iter()} <= {"svg", "title", "desc", "text", "rect"}
    assert root.findtext("text") == visible(text)


def test_what_is_not_seen_is_spelled_out() -> None:
    assert visible("a\u202eb\x1b[31m\ud800\u2028") == "a\\u202eb\\u001b[31m\\ud800\\u2028"
    assert visible("zh 中文 é ✓") == "zh 中文 é ✓"


@pytest.mark.parametrize(("number", "text"), [(0, "0"), (-0.04, "0"), (12.34, "12.3"), (-5.0, "-5")])
def test_places_have_a_tenth_of_a_pixel(number: float, text: str) -> None:
    assert place(number) == text


@given(st.text(min_size=1), st.floats(20, 200))
def test_a_word_that_was_cut_fits_and_says_so(text: str, room: float) -> None:
    shown = fitted(text, room)
    assert shown == text or shown.endswith("…")
    assert breadth(shown) <= max(room, breadth("…"))


def test_a_word_that_was_cut_is_whole_in_its_tip() -> None:
    drawn = canvas()
    drawn.word(0, 10, "a-very-long-name-of-a-tier", room=60)
    (word,) = ET.fromstring(drawn.markup()).iter("text")
    assert word.findtext("title") == "a-very-long-name-of-a-tier"
    assert (word[0].tail or "").endswith("…")


def test_ideographs_are_as_wide_as_they_are_high() -> None:
    assert breadth("基线") == 24
