"""The bounded copy of an exchange that is kept beside the stream."""

from __future__ import annotations

from dataclasses import dataclass

from service.proxy.budget import Budget

HOLDING_BYTES = 1024
"""What it takes to hold an exchange besides its two bodies; measured at 0.7 KiB."""


@dataclass(slots=True, kw_only=True)
class Subject:
    """What is known of a captured exchange before its answer. Not frozen, as `Head` is not."""

    id: str
    model: str
    path: str
    request_type: str
    request_encoding: str
    tenant: str
    conversation: str | None
    stratum: str
    expects: str = ""
    """What a header says that the answer is to be."""


class Recording:
    """Both sides of one exchange, as long as they fit. What does not fit is let go at once."""

    __slots__ = ("_answer", "_limit", "budget", "is_too_large", "overran_budget", "size", "subject")

    def __init__(self, subject: Subject, budget: Budget, *, request_size: int, limit: int) -> None:
        self.subject = subject
        self.budget = budget
        self.size = 0
        """Bytes taken from the budget."""
        self.is_too_large = False
        self.overran_budget = False
        self._answer: bytes | bytearray = b""
        self._limit = limit + HOLDING_BYTES
        self._take(request_size + HOLDING_BYTES)

    def add(self, part: bytes) -> None:
        """Keep a part of the answer."""
        if self._take(len(part)):
            if not self._answer:
                self._answer = part
            elif isinstance(self._answer, bytearray):
                self._answer += part
            else:  # a list of parts would cost more than the parts when these are small
                self._answer = bytearray(self._answer) + part

    @property
    def is_whole(self) -> bool:
        return not (self.is_too_large or self.overran_budget)

    def answer(self) -> bytes:
        return bytes(self._answer)

    def discard(self) -> None:
        """Give the budget back."""
        self.budget.give_back(self.size)
        self.size = 0
        self._answer = b""

    def _take(self, amount: int) -> bool:
        if not self.is_whole:
            return False
        if self.size + amount > self._limit:
            self.is_too_large = True
        elif not self.budget.take(amount):
            self.overran_budget = True
        else:
            self.size += amount
            return True
        self.discard()
        return False
