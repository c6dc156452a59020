"""Data of server-sent events out of the pieces of a stream, cheaply where the pieces allow it.

Engines write an event at a time, and most pieces are whole events: those are cut where they lie. Anything
else goes through `wire.sse`, which reads every legal stream, until a piece ends where an event ends.
"""

from __future__ import annotations

from service.wire.sse import EventParser

_DATA, _TYPE = b"data: ", b"event: "


class DataReader:
    """One stream's events, in order; each is what its data lines hold."""

    __slots__ = ("_slow",)

    def __init__(self) -> None:
        self._slow: EventParser | None = None
        """Holds the beginning of an event, while one is incomplete."""

    def feed(self, piece: bytes) -> list[str]:
        """The data of the events that `piece` completes."""
        if self._slow is None and piece.endswith(b"\n\n") and b"\r" not in piece:
            cut = _cut(piece)
            if cut is not None:
                return cut
        if self._slow is None:
            self._slow = EventParser()
        found = [event.data for event in self._slow.feed(piece)]
        if piece.endswith((b"\n\n", b"\r\n\r\n")):
            self._slow = None
        return found

    def close(self) -> list[str]:
        """The event that a complete stream did not follow with an empty line."""
        return [] if self._slow is None else [event.data for event in self._slow.close()]


def _cut(piece: bytes) -> list[str] | None:
    """The data of whole events of one data line, with a type or without; None for anything else."""
    found: list[str] = []
    for event in piece[:-2].split(b"\n\n"):
        if event.startswith(_TYPE):
            _, _, event = event.partition(b"\n")
        if not event.startswith(_DATA) or b"\n" in event:
            return None
        found.append(event[6:].decode("utf-8", "replace"))
    return found
