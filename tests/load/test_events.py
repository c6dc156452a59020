from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from service.load.events import DataReader
from service.wire.sse import events

PIECES = st.sampled_from(
    [
        "data: {}\n\n",
        "event: x\ndata: 1\n\n",
        "data: a\ndata: b\n\n",
        "data:c\n\n",
        ": comment\n\n",
        "data: d\r\n\r\n",
        "id: 7\ndata: e\n\n",
        "data: é\u2028\n\n",
        "event: y\n\n",
        "\n",
        "data: \n\n",
        "data: [DONE]\n\n",
    ]
)


@given(
    pieces=st.lists(PIECES, max_size=8),
    cuts=st.lists(st.integers(0, 120), max_size=6),
    open_end=st.booleans(),
)
def test_whatever_the_pieces_the_data_is_that_of_the_careful_parser(
    pieces: list[str], cuts: list[int], open_end: bool
) -> None:
    stream = ("".join(pieces) + ("data: last" if open_end else "")).encode()
    reader = DataReader()
    found: list[str] = []
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    for begin, end in itertools.pairwise(edges):
        if begin < end:
            found += reader.feed(stream[begin:end])
    found += reader.close()
    assert found == [event.data for event in events(stream)]


def test_events_are_given_as_soon_as_they_are_whole() -> None:
    reader = DataReader()
    assert reader.feed(b"data: a\n\ndata: b\n\n") == ["a", "b"]
    assert reader.feed(b"data: c") == []
    assert reader.feed(b"\n\ndata: d\n\n") == ["c", "d"]
    assert reader.feed(b"data: e\n\n") == ["e"]
    assert reader.close() == []
