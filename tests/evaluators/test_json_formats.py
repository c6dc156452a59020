"""Formats by the grammar of their RFCs; the public suite is in test_json_schema."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.json_formats import FORMATS

CASES = [
    ("date", "2024-02-29", "2023-02-29 2024-13-01 2024-00-10 2024-1-1 2024-01-32 1900-02-29"),
    ("date", "2000-02-29", "２０２４-01-01"),
    (
        "time",
        "23:59:60Z 01:29:60+01:30 00:00:00.5-23:59",
        "24:00:00Z 12:60:00Z 23:58:60Z 12:00:00 12:00:00+24:00",
    ),
    ("date-time", "2024-02-29T12:00:00Z 2024-02-29t12:00:00z", "2024-02-30T12:00:00Z 2024-02-29_12:00:00Z"),
    ("duration", "P1Y2M3DT4H5M6S PT36H P4W P0D", "P 1D P1 PT P1Y2D P1.5D P1W2D"),
    ("email", "a.b+c@example.com a@[127.0.0.1] a@[IPv6:::1]", "a@ @b a..b@c .a@b a@[300.0.0.1] a@[::1 a@b_c"),
    ("email", '"a\\"b"@c', 'é@example.com "a"b"@c'),
    ("idn-email", "é@例え.jp a@[127.0.0.1]", "é@-x @例え.jp"),
    ("hostname", "a a-b.c9 xn--4gbwdl.xn--wgbh1c", "-a a- a..b a. a_b xn--X ab--c é"),
    ("idn-hostname", "例え.jp a.b", "例え。 a..b 〮한국 ۰ا.0a"),
    ("ipv4", "127.0.0.1", "1.2.3 256.1.1.1 01.1.1.1 １.1.1.1"),
    ("ipv6", ":: ::1 1::1.2.3.4", "::1%eth0 :::1 1::01.2.3.4 ：：1"),
    (
        "uri",
        "http://a/b?c#d urn:x:y http://[v7.a:b]/ mailto:a@b http://u:p@h:80/%41",
        "//a /a http://a/ü 1a:b http://a:b/",
    ),
    ("uri", "http://[::1]:80/", "http://[::1/ http://a/%4 http://a@b@c/ http://a[b]/"),
    ("uri-reference", "//a /a #x ?q a/b:c", "a\\b :b"),
    ("iri", "http://例え.jp/ü", "/ü"),
    ("iri-reference", "/ü #ü", "\\\\x"),
    ("uri-template", "http://a/{b}{?c,d*}{+e:3}", "{ {} {a"),
    ("json-pointer", "/a/~0/~1", "a /~2 /~"),
    ("relative-json-pointer", "0 1/a 0# 10/b", "01/a -1/a /a"),
    (
        "uuid",
        "2EB8AA08-AA98-11EA-B4AA-73B441D16380",
        "2eb8aa08aa9811eab4aa73b441d16380 2eb8aa08-aa98-11ea-b4aa",
    ),
    ("regex", "^a(?=b) (?<!a)b [a-z]", "( [a (?P<x>a) \\a"),
]


@pytest.mark.parametrize(("name", "right", "wrong"), CASES)
def test_a_format_takes_what_is_right_and_refuses_what_is_wrong(name: str, right: str, wrong: str) -> None:
    assert [text for text in right.split() if not FORMATS[name](text)] == []
    assert [text for text in wrong.split() if FORMATS[name](text)] == []


@pytest.mark.parametrize(
    "name",
    sorted(
        set(FORMATS)
        - {"uri-reference", "iri-reference", "uri-template", "json-pointer", "regex", "relative-json-pointer"}
    ),
)
def test_the_empty_text_and_a_trailing_line_end_are_wrong(name: str) -> None:
    assert not FORMATS[name]("")
    for right in next(case[1] for case in CASES if case[0] == name).split():
        assert not FORMATS[name](right + "\n")


def test_a_host_name_of_254_characters_is_too_long() -> None:
    label = "a" * 63
    assert FORMATS["hostname"](".".join([label] * 3 + ["a" * 61]))
    assert not FORMATS["hostname"](".".join([label] * 3 + ["a" * 62]))
    assert not FORMATS["hostname"]("a" * 64)


@given(st.sampled_from(sorted(FORMATS)), st.text(max_size=40))
def test_no_text_makes_a_format_raise(name: str, text: str) -> None:
    assert FORMATS[name](text) in (True, False)


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_long_texts_are_told_in_time(name: str) -> None:
    for text in ("a" * 20_000, "a." * 10_000, "[" * 20_000, "{a}" * 7000, "/~0" * 7000, "%41" * 7000 + "%"):
        assert FORMATS[name](text) in (True, False)
