"""What is limited for all processes is divided between them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from service.proxy.traffic.shares import Share


def test_the_remainder_goes_to_the_first() -> None:
    assert [Share(place, 4).part(10) for place in range(4)] == [3, 3, 2, 2]


@given(st.integers(1, 10_000), st.integers(1, 256))
def test_the_parts_add_up_and_differ_by_one_at_most(total: int, processes: int) -> None:
    parts = [Share(place, processes).part(total) for place in range(processes)]
    assert sum(parts) == max(total, processes)
    assert max(parts) - min(parts) <= 1


def test_one_process_has_it_all() -> None:
    assert Share().part(7) == 7
