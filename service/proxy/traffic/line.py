"""A line of those who wait for the same thing: tenants take turns, each in the order they came. Pure.

Where priority is asked for, who is quickly served goes before who needs much room: two lines in one, of which
the first may let at most so many pass while somebody stands in the second.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

T = TypeVar("T")


class Turns(Generic[T]):
    """One tenant with a hundred requests holds up another's first by one turn, not by a hundred."""

    __slots__ = ("_size", "_tenants")

    def __init__(self) -> None:
        self._tenants: OrderedDict[bytes, OrderedDict[T, None]] = OrderedDict()
        """In the order of their next turns. An ordered dict forgets its first and any other at once."""
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def join(self, waiter: T, tenant: bytes) -> None:
        """Stand behind the tenant's others, and a new tenant behind all tenants."""
        self._tenants.setdefault(tenant, OrderedDict())[waiter] = None
        self._size += 1

    def first(self) -> T:
        """Whose turn it is; somebody waits."""
        return next(iter(next(iter(self._tenants.values()))))

    def take(self) -> T:
        """The same, who waits no more; the tenant's next turn comes after everybody else's."""
        tenant, waiters = next(iter(self._tenants.items()))
        waiter, _ = waiters.popitem(last=False)
        self._size -= 1
        if waiters:
            self._tenants.move_to_end(tenant)
        else:
            del self._tenants[tenant]
        return waiter

    def leave(self, waiter: T, tenant: bytes) -> bool:
        """Give up waiting, unless it does not wait here; nobody else's place changes."""
        waiters = self._tenants.get(tenant)
        if waiters is None or waiter not in waiters:
            return False
        del waiters[waiter]
        self._size -= 1
        if not waiters:
            del self._tenants[tenant]
        return True


class Line(Generic[T]):
    """Short ones before long ones, where they are told apart; else all are short."""

    __slots__ = ("_long", "_passed", "_short", "ahead")

    def __init__(self, ahead: int = 1) -> None:
        self.ahead = ahead
        """So many that are short may go in a row while a long one waits; another number holds at once."""
        self._short: Turns[T] = Turns()
        self._long: Turns[T] = Turns()
        self._passed = 0
        """Since a long one went, or began to wait."""

    def __len__(self) -> int:
        return len(self._short) + len(self._long)

    def join(self, waiter: T, tenant: bytes, *, is_long: bool = False) -> None:
        """Stand behind those of its kind."""
        if is_long and not self._long:
            self._passed = 0
        (self._long if is_long else self._short).join(waiter, tenant)

    def first(self) -> T:
        """Whose turn it is; the line is not empty."""
        return self._next().first()

    def take(self) -> T:
        """The same, out of the line."""
        kind = self._next()
        self._passed = self._passed + 1 if kind is self._short else 0
        return kind.take()

    def leave(self, waiter: T, tenant: bytes) -> None:
        """Give up waiting; nobody else's place changes. `KeyError` for one that is not in the line."""
        if not self._short.leave(waiter, tenant) and not self._long.leave(waiter, tenant):
            raise KeyError(waiter)

    def _next(self) -> Turns[T]:
        if self._long and (not self._short or self._passed >= self.ahead):
            return self._long
        return self._short
