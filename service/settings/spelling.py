"""Quantities as people write them, from what was read: the way back from `units`."""

from __future__ import annotations

from enum import Enum

from service.settings.units import SECONDS


def share(number: float) -> str:
    """`5%`."""
    return f"{100 * number:.6g}%"


def points(number: float) -> str:
    """`1pp`."""
    return f"{100 * number:.6g}pp"


def duration(seconds: float | None) -> str:
    """`30m`, in the largest unit of which it is a whole number; `none` for no limit."""
    if seconds is None:
        return "none"
    for unit, length in reversed(SECONDS.items()):
        if seconds >= length and (seconds / length).is_integer():
            return f"{seconds / length:.0f}{unit}"
    return f"{seconds:g}s"


def plain(value: object) -> str:
    """A word, a count, or `none`."""
    if isinstance(value, Enum):
        return str(value.value)
    return "none" if value is None else str(value)
