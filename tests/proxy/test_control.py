"""Orders reach a process whole, however the socket cuts them."""

from __future__ import annotations

import itertools
import socket
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.proxy.config import ProxyConfig
from service.proxy.processes.control import Frames, Orders, first_orders, framed

ORDERS = [
    Orders(number=number, config=ProxyConfig(ladders={}, capture_keys={"1": b"k" * 16 * number}))
    for number in (1, 2, 3)
]
SENT = b"".join(framed(each) for each in ORDERS)


@given(st.lists(st.integers(min_value=0, max_value=len(SENT))))
def test_they_arrive_as_they_were_sent(cuts: list[int]) -> None:
    frames = Frames()
    edges = [0, *sorted(cuts), len(SENT)]
    received = [orders for begin, end in itertools.pairwise(edges) for orders in frames.feed(SENT[begin:end])]
    assert received == ORDERS


def test_read_only_mappings_travel_too() -> None:
    config = ProxyConfig(ladders={}, capture_keys=MappingProxyType({"1": b"k" * 16}))
    [orders] = Frames().feed(framed(Orders(number=0, config=config)))
    assert orders.config.capture_keys == {"1": b"k" * 16}


def test_what_comes_with_the_first_orders_is_not_lost() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(SENT[:-1])
        frames = Frames()
        received = first_orders(theirs, frames)
        ours.sendall(SENT[-1:])
        ours.shutdown(socket.SHUT_WR)
        received += frames.feed(theirs.recv(1000))
        assert received == ORDERS


def test_a_parent_that_ends_before_its_first_word_is_told_as_that() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        ours.sendall(SENT[:5])
        ours.close()
        with pytest.raises(EOFError, match="parent"):
            first_orders(theirs, Frames())
