"""A line of waiting requests: tenants in turn, each in its order, and nobody for ever."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from service.proxy.traffic.line import Line

TENANTS = st.sampled_from([b"a", b"b", b"c", b""])


def drained(line: Line[str]) -> list[str]:
    return [line.take() for _ in range(len(line))]


def test_one_tenant_is_served_in_the_order_it_came() -> None:
    line: Line[str] = Line()
    for waiter in "12345":
        line.join(waiter, b"a")
    assert drained(line) == list("12345")


def test_a_crowd_of_one_tenant_holds_up_another_by_one_turn() -> None:
    line: Line[str] = Line()
    for waiter in ("a1", "a2", "a3", "a4"):
        line.join(waiter, b"a")
    line.join("b1", b"b")
    line.join("b2", b"b")
    assert drained(line) == ["a1", "b1", "a2", "b2", "a3", "a4"]


def test_coming_again_and_again_is_no_way_to_the_front() -> None:
    line: Line[str] = Line()
    for waiter in ("a1", "a2", "b1", "c1"):
        line.join(waiter, waiter[:1].encode())
    assert line.take() == "a1"
    line.join("a3", b"a")
    assert drained(line) == ["b1", "c1", "a2", "a3"]


def test_who_leaves_changes_nobody_elses_place() -> None:
    line: Line[str] = Line()
    for waiter in ("a1", "a2", "b1", "a3"):
        line.join(waiter, waiter[:1].encode())
    line.leave("a2", b"a")
    line.leave("b1", b"b")
    assert drained(line) == ["a1", "a3"]


def test_nobody_is_first_in_an_empty_line() -> None:
    line: Line[str] = Line()
    with pytest.raises(StopIteration):
        line.first()


@given(st.lists(TENANTS, min_size=1, max_size=60))
def test_no_tenant_is_two_turns_ahead_of_one_that_waits_as_long(joined: list[bytes]) -> None:
    line: Line[tuple[bytes, int]] = Line()
    for number, tenant in enumerate(joined):
        line.join((tenant, number), tenant)
    left, served = Counter(joined), Counter[bytes]()
    while len(line):
        tenant, _ = line.take()
        served[tenant] += 1
        waiting = [each for each in left if served[each] < left[each]]
        assert all(served[tenant] - served[each] <= 1 for each in waiting)


class AnyLine(RuleBasedStateMachine):
    """Whatever happens, the line is what a list of (tenant, number) says it is."""

    def __init__(self) -> None:
        super().__init__()
        self.line: Line[int] = Line()
        self.waiting: dict[int, bytes] = {}
        self.turns: list[bytes] = []
        self.next = 0

    @rule(tenant=TENANTS)
    def join(self, tenant: bytes) -> None:
        self.line.join(self.next, tenant)
        if tenant not in self.waiting.values():
            self.turns.append(tenant)
        self.waiting[self.next] = tenant
        self.next += 1

    @precondition(lambda self: self.waiting)
    @rule(choice=st.integers(0, 1000))
    def leave(self, choice: int) -> None:
        waiter = list(self.waiting)[choice % len(self.waiting)]
        tenant = self.waiting.pop(waiter)
        self.line.leave(waiter, tenant)
        if tenant not in self.waiting.values():
            self.turns.remove(tenant)

    @precondition(lambda self: self.waiting)
    @rule()
    def take(self) -> None:
        tenant = self.turns.pop(0)
        expected = next(waiter for waiter, its in self.waiting.items() if its == tenant)
        assert self.line.first() == expected
        assert self.line.take() == expected
        del self.waiting[expected]
        if tenant in self.waiting.values():
            self.turns.append(tenant)

    @invariant()
    def holds_everybody(self) -> None:
        assert len(self.line) == len(self.waiting)


TestAnyLine = AnyLine.TestCase
