"""One answer of the scripted engine as a client gets it: every byte compared, every event timed."""

from __future__ import annotations

from array import array

from tests.benchmarks.scripted_engine import AFTER, BEFORE, BETWEEN, BODY, EVENT, LARGE, LAST

_LENGTH = len(EVENT % (0, 0))
_NUMBER = slice(len(BEFORE), len(BEFORE) + 6)
_BETWEEN = slice(_NUMBER.stop, _NUMBER.stop + len(BETWEEN))
_AT = slice(_BETWEEN.stop, _BETWEEN.stop + 20)


class Damaged(Exception):
    """An answer that is not, byte for byte, what the engine sent."""


class Times:
    """Nanoseconds of many events: how long each was under way, and how far apart two of a stream were."""

    def __init__(self) -> None:
        self.transit = array("q")
        self.gaps = array("q")
        """At the client."""
        self.stretch = array("q")
        """How much longer a gap was at the client than at the engine; negative when it shrank."""

    def clear(self) -> None:
        for each in (self.transit, self.gaps, self.stretch):
            del each[:]


class Reply:
    """Fed with bytes until `whole`; raises `Damaged`."""

    __slots__ = (
        "_body",
        "_chunked",
        "_events",
        "_heard",
        "_large",
        "_last",
        "_left",
        "_text",
        "_times",
        "number",
        "status",
        "whole",
    )

    def __init__(self, *, events: int = 0, large: bool = False, times: Times | None = None) -> None:
        """`events` of a stream; none for an answer in one piece."""
        self._events, self._large, self._times = events, large, times
        self._heard = b""
        self._body: list[bytes] = []
        self._text = b""
        self._chunked = False
        self._left = -1
        """Bytes of a body with a length that are still to come; -1 before the head was read."""
        self._last: tuple[int, int] | None = None
        """When the latest event came and was sent."""
        self.number = 0
        """Events so far."""
        self.status = 0
        self.whole = False

    @property
    def begun(self) -> bool:
        """Whether the head is here."""
        return self._left >= 0

    def feed(self, received: bytes, now: int) -> bytes:
        """Take what came at `now` (monotonic nanoseconds); what belongs to the next answer comes back."""
        heard = self._heard + received if self._heard else received
        if self._left < 0:
            end = heard.find(b"\r\n\r\n")
            if end < 0:
                self._heard = heard
                return b""
            self._read_head(heard[:end])
            heard = heard[end + 4 :]
        if self._chunked:
            return self._read_chunks(heard, now)
        mine, rest = heard[: self._left], heard[self._left :]
        self._left -= len(mine)
        self._body.append(mine)
        self._heard = b""
        if not self._left:
            self._finish()
        return rest

    def _read_head(self, head: bytes) -> None:
        lowered = head.lower()
        self.status = int(head[9:12])
        self._chunked = b"transfer-encoding: chunked" in lowered
        self._left = 0
        if not self._chunked:
            length = lowered.partition(b"content-length:")[2].partition(b"\r\n")[0]
            if not length:
                raise Damaged(f"neither chunked nor a length: {head[:300]!r}")
            self._left = int(length)

    def _read_chunks(self, heard: bytes, now: int) -> bytes:
        at = 0
        while (end := heard.find(b"\r\n", at)) >= 0:
            size = int(heard[at:end], 16)
            after = end + 2 + size
            if len(heard) < after + 2:
                break
            at = after + 2
            if not size:
                self._heard = b""
                self._finish()
                return heard[at:]
            if self._events and self.status == 200:
                self._read_events(heard[end + 2 : after], now)
            else:
                self._body.append(heard[end + 2 : after])
        self._heard = heard[at:]
        return b""

    def _read_events(self, content: bytes, now: int) -> None:
        text = self._text + content if self._text else content
        at = 0
        while self.number < self._events and len(text) - at >= _LENGTH:
            self._read_event(text[at : at + _LENGTH], now)
            at += _LENGTH
        self._text = text[at:]

    def _read_event(self, event: bytes, now: int) -> None:
        if not (
            event.startswith(BEFORE)
            and event.endswith(AFTER)
            and event[_BETWEEN] == BETWEEN
            and event[_NUMBER] == b"%06d" % self.number
        ):
            raise Damaged(f"event {self.number} came as {event!r}")
        self.number += 1
        if self._times is None:
            return
        sent = int(event[_AT])
        self._times.transit.append(now - sent)
        if self._last is not None:
            gap = now - self._last[0]
            self._times.gaps.append(gap)
            self._times.stretch.append(gap - (sent - self._last[1]))
        self._last = (now, sent)

    def _finish(self) -> None:
        self.whole = True
        if self.status != 200:
            return
        if self._events:
            if self.number != self._events or self._text != LAST:
                raise Damaged(f"{self.number} of {self._events} events, then {self._text[-200:]!r}")
        elif b"".join(self._body) != (LARGE if self._large else BODY):
            raise Damaged(f"another body than was sent: {b''.join(self._body)[:200]!r}")
