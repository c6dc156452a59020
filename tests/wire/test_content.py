"""Content of a message, as a string or in parts."""

from __future__ import annotations

from typing import Any

import pytest

from service.wire.content import Content, digest, read_content
from service.wire.shapes import WrongShape


def test_a_string_and_one_text_part_are_the_same() -> None:
    assert (
        read_content("hi", "x") == read_content([{"type": "text", "text": "hi"}], "x") == Content(text="hi")
    )


def test_null_is_empty() -> None:
    assert read_content(None, "x") == Content()


def test_text_parts_are_joined_and_others_leave_a_digest() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    found = read_content(["a", {"type": "output_text", "text": "b"}, image, {"text": "c"}], "x", between="|")
    assert found.text == "a|b|c"
    assert found.media == (f"image_url:{digest(image)}",)


def test_a_cache_mark_does_not_make_a_part_another() -> None:
    image = {"type": "image", "source": {"type": "base64", "data": "AA"}}
    marked = {**image, "cache_control": {"type": "ephemeral"}}
    assert read_content([image], "x") == read_content([marked], "x")
    assert read_content([image], "x") != read_content([{**image, "source": {"data": "BB"}}], "x")


def test_refusal_parts_are_kept_apart() -> None:
    assert read_content([{"type": "refusal", "refusal": "no"}], "x") == Content(refusal="no")


def test_a_lone_surrogate_has_a_digest() -> None:
    assert digest({"a": "\ud83d"}) != digest({"a": "\ud83e"})


@pytest.mark.parametrize("content", [3, {"type": "text"}, [3], [{"type": "text", "text": 3}], [{"type": 1}]])
def test_other_shapes_are_refused(content: Any) -> None:
    with pytest.raises(WrongShape):
        read_content(content, "x")
