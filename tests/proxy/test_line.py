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


def test_short_ones_go_first_but_only_so_many_in_a_row_past_a_long_one() -> None:
    line: Line[str] = Line(ahead=2)
    for waiter in ("L1", "s1", "s2", "s3", "L2", "s4", "s5", "s6"):
        line.join(waiter, b"a", is_long=waiter[0] == "L")
    assert drained(line) == ["s1", "s2", "L1", "s3", "s4", "L2", "s5", "s6"]


def test_who_passed_before_a_long_one_came_has_not_passed_it() -> None:
    line: Line[str] = Line(ahead=2)
    for waiter in ("s1", "s2", "s3", "s4", "s5"):
        line.join(waiter, b"a")
    assert [line.take(), line.take(), line.take()] == ["s1", "s2", "s3"]
    line.join("L1", b"a", is_long=True)
    assert drained(line) == ["s4", "s5", "L1"]


def test_how_many_may_pass_changes_for_those_who_wait_already() -> None:
    line: Line[str] = Line(ahead=1)
    for waiter in ("L1", "s1", "s2", "s3", "L2"):
        line.join(waiter, b"a", is_long=waiter[0] == "L")
    line.ahead = 3
    assert drained(line) == ["s1", "s2", "s3", "L1", "L2"]


def test_tenants_take_turns_among_short_ones_and_among_long_ones() -> None:
    line: Line[str] = Line(ahead=9)
    for waiter in ("as1", "as2", "aL1", "aL2", "bL1", "bs1"):
        line.join(waiter, waiter[:1].encode(), is_long="L" in waiter)
    assert drained(line) == ["as1", "bs1", "as2", "aL1", "bL1", "aL2"]


def test_either_kind_may_leave_and_nobody_leaves_twice() -> None:
    line: Line[str] = Line(ahead=1)
    line.join("L1", b"a", is_long=True)
    line.join("s1", b"a")
    line.leave("L1", b"a")
    with pytest.raises(KeyError):
        line.leave("L1", b"a")
    assert drained(line) == ["s1"]


@given(st.lists(st.tuples(st.booleans(), TENANTS), max_size=40), st.integers(1, 5))
def test_a_long_one_is_passed_by_no_more_than_so_many_and_all_are_served(
    kinds: list[tuple[bool, bytes]], ahead: int
) -> None:
    line: Line[tuple[int, bool]] = Line(ahead=ahead)
    for number, (is_long, tenant) in enumerate(kinds):
        line.join((number, is_long), tenant, is_long=is_long)
    served = [line.take() for _ in range(len(line))]
    assert sorted(number for number, _ in served) == list(range(len(kinds)))
    left, passed = sum(is_long for is_long, _ in kinds), 0
    for _, is_long in served:
        passed = 0 if is_long else passed + 1
        left -= is_long
        assert not left or passed <= ahead
