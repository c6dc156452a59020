"""Server-sent events from bytes, however they are split.

Follows https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation: lines end
with LF, CR or CRLF and nothing else (U+2028 and U+0085 are text), lines are decoded only when whole,
comments and unknown fields are dropped. One difference: `close()` gives the event that a complete stream did
not follow with an empty line, since engines do end so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE_END = re.compile(rb"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event; `type` is empty when the stream does not name it."""

    data: str
    type: str = ""


class EventParser:
    """Gives events as soon as the bytes that end them are fed; linear in the bytes, whatever their chunks."""

    __slots__ = ("_after_cr", "_at_start", "_fields", "_line", "_type")

    def __init__(self) -> None:
        self._line = bytearray()
        self._fields: list[str] = []
        self._type = ""
        self._after_cr = False
        self._at_start = True

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that `chunk` completes."""
        if not chunk:
            return []
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._after_cr = chunk.endswith(b"\r") if chunk else False
        first, *more = _LINE_END.split(chunk)
        self._line += first
        found: list[Event] = []
        for following in more:
            self._take_line(found)
            self._line += following
        return found

    def close(self) -> list[Event]:
        """The event left open at the end of a complete stream; an interrupted one must not be closed."""
        found: list[Event] = []
        if self._line:
            self._take_line(found)
        self._take_line(found)
        return found

    def _take_line(self, found: list[Event]) -> None:
        line = bytes(self._line)
        self._line.clear()
        if self._at_start:
            line = line.removeprefix(_BOM)
            self._at_start = False
        if not line:
            if self._fields:
                found.append(Event(data="\n".join(self._fields), type=self._type))
            self._fields = []
            self._type = ""
            return
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._fields.append(value)
        elif name == "event":
            self._type = value


def events(body: bytes, *, complete: bool = True) -> list[Event]:
    """Every event of a recorded stream; the last one too when the stream ended by itself."""
    parser = EventParser()
    found = parser.feed(body)
    if complete:
        found += parser.close()
    return found
