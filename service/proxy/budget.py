"""A number of bytes that one process may hold for one purpose. Pure."""

from __future__ import annotations


class Budget:
    """Bytes that one process may hold: of captures in the making and waiting to be shipped, of requests."""

    __slots__ = ("limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0

    def take(self, amount: int) -> bool:
        """False, and nothing taken, when there is not enough left."""
        if self.used + amount > self.limit:
            return False
        self.used += amount
        return True

    def give_back(self, amount: int) -> None:
        self.used -= amount
