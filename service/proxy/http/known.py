"""Heads met before: a message that begins with an accepted head need not be parsed again. Pure.

A parser at the boundary between two messages has no memory, so the same bytes mean the same each time. Only
the digits of Content-Length may differ, and these say by themselves where the message ends (RFC 9112, 6.2).
Heads with a transfer coding or without a length are never known.
"""

from __future__ import annotations

import re
from typing import Generic, TypeVar

LONGEST = 8 * 1024
"""Bytes of a head that is worth remembering; every connection may hold one."""

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*+([0-9]{1,15})[ \t]*+(?=\r\n)", re.IGNORECASE)
_MOST_DIGITS = 15
_END = b"\r\n\r\n"

Meaning = TypeVar("Meaning")


Framed = tuple[int, int, bytes]
"""Bytes of the body, where it begins, and its length as the head spells it."""


class KnownHead(Generic[Meaning]):
    """One accepted head and what it means."""

    __slots__ = ("_after", "_before", "_digits", "_rest", "meaning")

    def __init__(self, before: bytes, after: bytes, meaning: Meaning) -> None:
        self._before = before
        self._digits = len(before)
        self._after = after
        self._rest = len(after)
        self.meaning = meaning

    def match(self, received: bytes) -> Framed | None:
        """The message that these bytes begin with, if it has this head, complete and with any length."""
        if not received.startswith(self._before):
            return None
        end = received.find(b"\r", self._digits, self._digits + _MOST_DIGITS + 1)
        digits = received[self._digits : end]
        if end < 0 or not digits.isdigit() or not received.startswith(self._after, end):
            return None
        return int(digits), end + self._rest, digits


def known(received: bytes, meaning: Meaning) -> KnownHead[Meaning] | None:
    """The head that `received` begins with, parsed by the caller as `meaning`; None if not worth it."""
    end = received.find(_END, 0, LONGEST)
    if end < 0 or not received[:1].isalpha():  # llhttp passes over empty lines before a head
        return None
    lengths = list(_LENGTH.finditer(received, 0, end + 2))
    if len(lengths) != 1:
        return None
    start, stop = lengths[0].span(1)
    return KnownHead(received[:start], received[stop : end + len(_END)], meaning)
