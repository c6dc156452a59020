"""A line of those who wait for the same thing: tenants take turns, each in the order they came. Pure."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

T = TypeVar("T")


class Line(Generic[T]):
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
        """Whose turn it is; the line is not empty."""
        return next(iter(next(iter(self._tenants.values()))))

    def take(self) -> T:
        """The same, out of the line; the tenant's next turn comes after everybody else's."""
        tenant, waiters = next(iter(self._tenants.items()))
        waiter, _ = waiters.popitem(last=False)
        self._size -= 1
        if waiters:
            self._tenants.move_to_end(tenant)
        else:
            del self._tenants[tenant]
        return waiter

    def leave(self, waiter: T, tenant: bytes) -> None:
        """Give up waiting; nobody else's place changes."""
        waiters = self._tenants[tenant]
        del waiters[waiter]
        self._size -= 1
        if not waiters:
            del self._tenants[tenant]
