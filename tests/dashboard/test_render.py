"""Texts on pages: escaped, with commands and keys as code."""

from __future__ import annotations

import re

import pytest
from markupsafe import Markup

from service.dashboard.render import PAGES, coded


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("run `tiergate check`, then `make`", "run <code>tiergate check</code>, then <code>make</code>"),
        ("`<b>` & co", "<code>&lt;b&gt;</code> &amp; co"),
        ("one ` alone", "one ` alone"),
        ("``", "``"),
        (Markup('<span lang="en">send `x`</span>'), '<span lang="en">send <code>x</code></span>'),
        (Markup("<b>`</b>`"), "<b>`</b>`"),
        ("`a\u202eb`", "<code>a\\u202eb</code>"),
    ],
)
def test_what_stands_in_backquotes_is_code_and_nothing_else_becomes_markup(told: str, shown: str) -> None:
    assert coded(told) == shown


def test_what_a_form_sends_back_stands_in_it_as_it_is() -> None:
    """Spelled out, a name with a character that is not seen would be another name, a text another text."""
    field = r'<(?:input|option|button)\b[^>]*?\bvalue="\{\{ (?P<told>.*?) \}\}"'
    sent = re.compile(rf"{field}|<textarea[^>]*>\{{\{{ (?P<text>.*?) \}}\}}")
    found = [
        (path.name, told["told"] or told["text"])
        for path in sorted(PAGES.glob("*.html"))
        for told in sent.finditer(path.read_text(encoding="utf-8"))
    ]
    assert len(found) > 20
    assert [each for each in found if not each[1].endswith("| verbatim") and each[1] != "visit.csrf"] == []
