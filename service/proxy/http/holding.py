"""What the request bodies of one connection hold of the budget that all connections share.

Bytes are taken as they arrive, so that announcing much holds nothing, and whoever would go beyond the budget
is refused: waiting for room with half a body in hand could leave everybody waiting.
"""

from __future__ import annotations

from service.proxy.budget import Budget
from service.proxy.http.errors import Refusal, unavailable

SMALL_BODY = 64 * 1024
"""Bytes of a body that the budget is not asked for: as many as every connection may have."""


class Holding:
    """One per connection."""

    __slots__ = ("_budget", "_taken", "under_way")

    def __init__(self, budget: Budget | None) -> None:
        self._budget = budget
        self._taken = 0
        """For the body that is being read, and for those before it that are not let go."""
        self.under_way = 0
        """For the body that is being read."""

    def grow(self, size: int) -> Refusal | None:
        """The body that is being read has so many bytes now; why it may not."""
        if self._budget is None:
            return None
        if not self._budget.take(size - self.under_way):
            return unavailable("busy", "Too many large requests are being read; try again.")
        self._taken += size - self.under_way
        self.under_way = size
        return None

    def hand_over(self) -> int:
        """The body is whole and goes its way with what it holds; the next one holds nothing yet."""
        held, self.under_way = self.under_way, 0
        return held

    def give_back(self, held: int) -> None:
        """Never more than there is, in whatever order things end."""
        amount = min(held, self._taken)
        if amount and self._budget is not None:
            self._budget.give_back(amount)
            self._taken -= amount

    def drop(self) -> None:
        """The body that is being read is no more."""
        self.give_back(self.hand_over())

    def close(self) -> None:
        """The connection is over, and all its bodies."""
        self.give_back(self._taken)
