"""Texts on pages: escaped, with commands and keys as code."""

from __future__ import annotations

import pytest
from markupsafe import Markup

from service.dashboard.render import coded


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
