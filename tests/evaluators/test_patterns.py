"""Patterns of JSON Schema on a linear-time engine."""

from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.patterns import Inexpressible, NotAPattern, TooLong, matcher, whole_matcher
from tests.patience import here


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("^a.c$", "abc", True),
        ("^a.c$", "a\u2028c", False),  # a line end of ECMA-262
        ("^a$", "a\n", False),  # Python's $ would match
        ("b", "abc", True),
        (r"^\d+$", "42", True),
        (r"^\d+$", "٤٢", False),  # digits are ASCII
        (r"^\w+$", "né", False),
        (r"^\s$", "\ufeff", True),
        (r"^\S$", "\u3000", False),
        (r"^[\s]+$", "\u00a0\t", True),
        (r"^[^\s]+$", "ab", True),
        (r"^[\S]$", "a", True),
        (r"\bfoo\b", "a foo b", True),
        (r"\Boo", "foo", True),
        (r"^\x41\u0042\u{43}\cJ\0$", "ABC\n\0", True),
        (r"^\uD83D\uDE00$", "😀", True),
        (r"^\n\r\t\f\v$", "\n\r\t\f\v", True),
        (r"^\/\.\-\$$", "/.-$", True),
        (r"^[\w-.]+$", "a-b.c", True),
        (r"^[a\-z]+$", "a-z", True),
        (r"^[a\-z]+$", "b", False),
        (r"^[a-c]+$", "abc", True),
        (r"^[a-]+$", "a-", True),
        (r"^[-a]+$", "a-", True),
        (r"^[a-c-e]+$", "c-e", True),
        (r"^[a-\d]+$", "a-5", True),
        (r"^[[:alpha:]]+$", "a:]", False),
        (r"^[[:alpha:]]$", "[", False),
        (r"^[\b]$", "\b", True),
        (r"^[.*+?^$]+$", ".*+?^$", True),
        (r"[]", "a", False),
        (r"^[^]$", "\n", True),
        (r"^(?<year>\d{4})-(?:\d\d)$", "2024-05", True),
        (r"^(a|b)+?c{2,3}$", "abcc", True),
        (r"^a{,2}$", "a{,2}", True),  # not a quantifier in ECMA-262
        (r"^a{$", "a{", True),
        (r"^]}$", "]}", True),
        (r"^\p{L}+$", "né", True),
        (r"^\p{Letter}+$", "né", True),
        (r"^\P{Lu}+$", "né", True),
        (r"^\p{Script=Han}+$", "你好", True),
        (r"^[\p{Lu}\d]+$", "É5", True),
        ("^🌍$", "🌍", True),
        ("x", "\ud83d", False),
        ("^.$", "\ud83d", True),
        ("", "anything", True),
    ],
)
def test_a_pattern_means_what_ecma_262_says(pattern: str, text: str, matches: bool) -> None:
    assert matcher(pattern)(text) is matches


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?=a)",
        r"(?!a)",
        r"(?<=a)b",
        r"(?<!a)b",
        r"(a)\1",
        r"(?<n>a)\k<n>",
        r"a{1001}",
        r"\p{ASCII}",
        r"[\p{ASCII}]",
        r"\p{Script_Extensions=Greek}",
        r"(?i:a)",
        r"\uD83D",
    ],
)
def test_what_re2_cannot_express_is_inexpressible(pattern: str) -> None:
    with pytest.raises(Inexpressible) as raised:
        matcher(pattern)
    assert not isinstance(raised.value, NotAPattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        "a)",
        "[",
        "[a",
        "a**",
        "*a",
        "\\",
        r"\a",
        r"\Z",
        r"\z",
        r"\A",
        r"\Q.\E",
        "(?P<n>a)",
        "(?i)a",
        "(?#x)",
        r"\p",
        r"\p{}",
        r"[z-a]",
    ],
)
def test_what_is_no_pattern_is_told_apart(pattern: str) -> None:
    with pytest.raises(NotAPattern):
        matcher(pattern)


def test_a_character_beyond_unicode_is_refused() -> None:
    with pytest.raises(Inexpressible, match="beyond"):
        matcher(r"\u{110000}")


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", r"^([\w-.]+)*@x$", "(.*)*b"])
def test_patterns_that_explode_in_a_backtracking_engine_are_linear(pattern: str) -> None:
    began = time.process_time()
    assert matcher(pattern)("a" * 100_000 + "!") is False
    took = time.process_time() - began
    assert took < here(2)  # a backtracking engine needs longer than the universe has


def test_a_large_pattern_takes_shorter_texts_since_nothing_could_stop_it() -> None:
    large = matcher("(.*a.{400}){2}z")
    assert large("a" * 1000) is False
    with pytest.raises(TooLong, match="10000 characters"):
        large("a" * 10_000)
    assert matcher("^[A-Z]{2}-[0-9]+$")("AB-" + "1" * 1_000_000) is True


def test_a_whole_match_leaves_nothing_out() -> None:
    assert whole_matcher("a|bc")("bc") is True
    assert whole_matcher("a|bc")("abc") is False
    assert whole_matcher("^a$|b")("b") is True
    with pytest.raises(NotAPattern):
        whole_matcher("a)|(?:b")


@given(st.text(max_size=12), st.text(max_size=12))
def test_a_quoted_text_matches_itself_and_nothing_raises_otherwise(literal: str, other: str) -> None:
    quoted = "".join(f"\\{char}" if char in "^$\\.*+?()[]{}|/-" else char for char in literal)
    if any("\ud800" <= char <= "\udfff" for char in literal):
        return
    assert matcher(quoted)(literal)
    assert matcher(f"^{quoted}$")(other) is (literal == other)


@given(st.text("ab\\()[]{}^$.*+?|-dwspxu09,:=!<>P", max_size=10))
def test_any_text_is_a_pattern_or_is_refused_as_none(text: str) -> None:
    with contextlib.suppress(Inexpressible):
        assert matcher(text)("ab") in (True, False)
