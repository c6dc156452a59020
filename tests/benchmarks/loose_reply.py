"""A stream as a proxy hands it on that writes every event anew: its events are counted, not compared."""

from __future__ import annotations

from tests.benchmarks.reply import Damaged, Reply

_CONTENT = b"tok "


class LooseReply(Reply):
    """Takes any event with the engine's words in it; when it was sent is not known."""

    __slots__ = ()

    def _read_events(self, content: bytes, now: int) -> None:
        *events, self._text = (self._text + content).split(b"\n\n")
        for event in events:
            if _CONTENT in event:
                self.number += 1
                if self._times is not None:
                    self._times.transit.append(0)
                    if self._last is not None:
                        self._times.gaps.append(now - self._last[0])
                    self._last = (now, 0)

    def _finish(self) -> None:
        self.whole = True
        if self.status == 200 and self.number != self._events:
            raise Damaged(f"{self.number} of {self._events} events")
