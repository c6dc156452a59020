"""What the request bodies of one connection hold of the budget that all connections share.

Bytes are taken as they arrive, so that announcing much holds nothing, and whoever would go beyond the budget
is refused: waiting for room with half a body in hand could leave everybody waiting. But first those are
refused who have half a body here and bring hardly any more of it: a few of them could keep everybody out.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from service.proxy.budget import Budget
from service.proxy.http.errors import Refusal, unavailable

SMALL_BODY = 64 * 1024
"""Bytes of a body that the budget is not asked for: as many as every connection may have."""
PATIENCE_SECONDS = 5.0
"""With half a body that brings less than `LEAST_RATE`, once its bytes are wanted by others."""
LEAST_RATE = 64 * 1024
"""Bytes a second."""


class Bodies(Budget):
    """One per process."""

    __slots__ = ("half_read", "patience")

    def __init__(self, limit: int, *, patience: float = PATIENCE_SECONDS) -> None:
        super().__init__(limit)
        self.patience = patience
        self.half_read: dict[Holding, Callable[[Refusal], None]] = {}
        """Who refuses the body, which gives back what it holds; the longest here first."""

    def take_for(self, holding: Holding, amount: int) -> bool:
        """As `take`, at the cost of slow bodies if there is no other way."""
        if self.take(amount):
            return True
        now = time.monotonic()
        for other, refuse in tuple(self.half_read.items()):
            if other is not holding and other.is_slow(now, self.patience):
                refuse(unavailable("busy", "Others need the room of this request, which arrives slowly."))
                if self.take(amount):
                    return True
        return False


class Holding:
    """One per connection."""

    __slots__ = ("_bodies", "_grown", "_mark", "_taken", "under_way")

    def __init__(self, bodies: Bodies | None) -> None:
        self._bodies = bodies
        self._taken = 0
        """For the body that is being read, and for those before it that are not let go."""
        self.under_way = 0
        """For the body that is being read."""
        self._grown = 0.0
        """When it last grew; monotonic, as the next."""
        self._mark = (0.0, 0)
        """From which time and size on its rate is measured."""

    def grow(self, size: int, refuse: Callable[[Refusal], None]) -> Refusal | None:
        """The body that is being read has so many bytes now; why it may not.

        `refuse` is called if it has to give way later.
        """
        bodies = self._bodies
        if bodies is None:
            return None
        if not bodies.take_for(self, size - self.under_way):
            return unavailable("busy", "Too many large requests are being read; try again.")
        now = self._grown = time.monotonic()
        if not self.under_way:
            self._mark = (now, size)
            bodies.half_read[self] = refuse
        else:
            # A fast body is measured anew, or a fast beginning would pay for hours of nothing.
            since, before = self._mark
            if now - since > bodies.patience and size - before >= LEAST_RATE * (now - since):
                self._mark = (now, size)
        self._taken += size - self.under_way
        self.under_way = size
        return None

    def is_slow(self, now: float, patience: float) -> bool:
        """Whether the body that is being read has brought too little for that long; also if unread."""
        since, before = self._mark
        if now - self._grown > patience:
            return True
        return now - since > patience and self.under_way - before < LEAST_RATE * (now - since)

    def hand_over(self) -> int:
        """The body is whole and goes its way with what it holds; the next one holds nothing yet."""
        held, self.under_way = self.under_way, 0
        if held and self._bodies is not None:
            del self._bodies.half_read[self]
        return held

    def give_back(self, held: int) -> None:
        """Never more than there is, in whatever order things end."""
        amount = min(held, self._taken)
        if amount and self._bodies is not None:
            self._bodies.give_back(amount)
            self._taken -= amount

    def drop(self) -> None:
        """The body that is being read is no more."""
        self.give_back(self.hand_over())

    def close(self) -> None:
        """The connection is over, and all its bodies."""
        self.drop()
        self.give_back(self._taken)
