"""Server-sent events: the same events whatever the bytes are split into."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.wire.sse import Event, EventParser, events
from tests.patience import here

CJK = 'data: {"text":"你好，🌍"}\n\ndata: [DONE]\n\n'.encode()


def in_pieces(body: bytes, cuts: list[int]) -> list[Event]:
    parser = EventParser()
    found: list[Event] = []
    for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True):
        found += parser.feed(body[start:end])
    return found + parser.close()


def test_bytes_may_be_split_anywhere_inside_characters_and_between_line_ends() -> None:
    whole = events(CJK)
    assert [event.data for event in whole] == ['{"text":"你好，🌍"}', "[DONE]"]
    for cut in range(len(CJK) + 1):
        assert in_pieces(CJK, [cut]) == whole
    assert in_pieces(CJK, list(range(1, len(CJK)))) == whole


@given(
    lines=st.lists(
        st.text(st.characters(blacklist_characters="\r\n", blacklist_categories=["Cs"])), max_size=8
    ),
    ends=st.lists(st.sampled_from(["\n", "\r", "\r\n"]), min_size=8, max_size=8),
    cuts=st.lists(st.integers(0, 400), max_size=6),
)
def test_any_split_of_any_line_ends_gives_the_events_of_the_whole(
    lines: list[str], ends: list[str], cuts: list[int]
) -> None:
    body = "".join(f"data:{line}{end}" for line, end in zip(lines, ends, strict=False)).encode() + b"\n\n"
    inside = sorted(cut for cut in cuts if cut <= len(body))
    assert in_pieces(body, inside) == events(body)


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_lf_cr_and_crlf_end_lines(end: str) -> None:
    body = f"event: delta{end}data: a{end}data: b{end}{end}data: c{end}{end}".encode()
    assert events(body) == [Event(data="a\nb", type="delta"), Event(data="c")]
    assert in_pieces(body, list(range(1, len(body)))) == events(body)


def test_mixed_line_ends_in_one_stream_are_each_one_end() -> None:
    assert events(b"data: a\r\n\r\ndata: b\r\rdata: c\n\n") == [
        Event(data="a"),
        Event(data="b"),
        Event(data="c"),
    ]


def test_a_carriage_return_at_the_end_of_one_chunk_and_a_line_feed_in_the_next_are_one_end() -> None:
    parser = EventParser()
    assert parser.feed(b"data: a\r") == []
    assert parser.feed(b"") == []
    assert parser.feed(b"\n") == []
    assert parser.feed(b"\r") == [Event(data="a")]
    assert parser.feed(b"\ndata: b\n\n") == [Event(data="b")]


def test_data_needs_no_space_and_loses_only_one() -> None:
    assert [e.data for e in events(b"data:x\n\ndata: x\n\ndata:  x\n\ndata\n\n")] == ["x", "x", " x", ""]


def test_comments_and_unknown_fields_before_between_and_after_are_dropped() -> None:
    body = b": ping\n\nid: 7\nretry: 10\nfoo: bar\n: PROCESSING\ndata: a\n: x\n\n: ping\n\n"
    assert events(body) == [Event(data="a")]


def test_an_event_without_data_is_no_event_and_its_name_is_forgotten() -> None:
    assert events(b"event: ping\n\ndata: a\n\n") == [Event(data="a")]


def test_separators_of_unicode_are_text_and_end_no_line() -> None:
    for char in ("\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c"):
        assert events(f"data: a{char}b\n\n".encode()) == [Event(data=f"a{char}b")]


def test_a_byte_order_mark_at_the_start_is_dropped_even_when_split() -> None:
    body = b"\xef\xbb\xbfdata: a\n\ndata: \xef\xbb\xbfb\n\n"
    expected = [Event(data="a"), Event(data="\ufeffb")]
    assert events(body) == expected
    assert in_pieces(body, [1, 2]) == expected


def test_bytes_that_are_not_utf8_are_replaced_and_harm_no_other_event() -> None:
    assert [e.data for e in events(b"data: \xff\xfe\n\ndata: ok\n\n")] == ["\ufffd\ufffd", "ok"]


def test_the_last_event_without_an_empty_line_counts_only_in_a_stream_that_ended_by_itself() -> None:
    assert events(b"data: a\n\ndata: b") == [Event(data="a"), Event(data="b")]
    assert events(b"data: a\n\ndata: b\n") == [Event(data="a"), Event(data="b")]
    assert events(b"data: a\n\ndata: b", complete=False) == [Event(data="a")]
    assert events(b"") == []


def test_a_line_of_two_megabytes_in_small_pieces_is_read_in_linear_time() -> None:
    body = b"data: " + b"x" * 2_000_000 + b"\n\n"
    parser = EventParser()
    found: list[Event] = []
    began = time.process_time()
    for at in range(0, len(body), 100):
        found += parser.feed(body[at : at + 100])
    # quadratic work would copy 20 GB; the limit is a hundred times what linear work takes
    took = time.process_time() - began
    assert took < here(3)
    assert [len(event.data) for event in found] == [2_000_000]


def test_many_events_in_one_chunk_come_in_their_order() -> None:
    body = b"".join(b"data: %d\n\n" % number for number in range(5000))
    assert [event.data for event in EventParser().feed(body)] == [str(number) for number in range(5000)]
