"""A keep-alive connection to a backend with at most one request under way, timed as its bytes come in."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import cast

import httptools

from evaluators.exchange import FaultKind
from service.load.events import DataReader
from service.load.flight import Flight
from service.load.timed import NO_OUTPUT

_DONE = "[DONE]"


class Connection(asyncio.Protocol):
    """Tells `over` of every request that ended: the connection, the request, whether to send it again."""

    def __init__(self, over: Callable[[Connection, Flight, bool], None]) -> None:
        self.flight: Flight | None = None
        self.idle_since = 0.0
        self.is_open = False
        self._over = over
        self._used = 0
        """Requests that it carried before the one under way."""
        self._parser = httptools.HttpResponseParser(self)
        self._reader = DataReader()
        self._now = 0.0
        self._reset()

    def _reset(self) -> None:
        self._streamed = False
        self._encoded = False
        self._interim = False
        self._failed = ""
        self._reader = DataReader()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass of it
        self.is_open = True

    def send(self, flight: Flight, head: bytes) -> None:
        """The head but for the body's length, and the body."""
        self._reset()
        self.flight = flight
        flight.stop = self.transport
        self.transport.write(head + b"%d\r\n\r\n" % len(flight.body) + flight.body)
        if flight.sent is None:
            flight.sent = time.monotonic()

    def data_received(self, received: bytes) -> None:
        self._now = time.monotonic()
        flight = self.flight
        if flight is None:
            self.close()
            return
        if flight.first_byte is None:
            flight.first_byte = self._now
        try:
            self._parser.feed_data(received)
        except httptools.HttpParserError:
            self._end(FaultKind.UNREADABLE, keep=False)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        # It points back at us, and while a block runs nobody collects cycles.
        del self._parser
        flight = self.flight
        if flight is None or flight.ended is not None:
            return
        self._now = time.monotonic()
        if flight.first_byte is None and self._used and not flight.resent:
            # The backend closed an idle connection while the request was on its way: nobody has read it.
            self.flight = None
            flight.resent = True
            self._over(self, flight, True)
            return
        # An answer may be as long as its connection.
        self._read(self._reader.close() if exc is None and self._streamed else [])
        complete = exc is None and flight.output.ended
        self._end(self._failed or ("" if complete else FaultKind.CUT_OFF), keep=False)

    def close(self) -> None:
        """Drop it, with whatever is under way on it."""
        self.is_open = False
        self.transport.abort()

    # What httptools calls, in this order.

    def on_header(self, name: bytes, value: bytes) -> None:
        lower = name.lower()
        if lower == b"content-type":
            self._streamed = b"text/event-stream" in value.lower()
        elif lower == b"content-encoding":
            self._encoded = value.strip().lower() not in (b"", b"identity")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        self._interim = 100 <= status < 200
        if self.flight is None:
            self.close()  # an answer that nobody asked for
            return
        if self._interim:
            return
        self.flight.status = status
        if status != 200:
            self._failed = _fault_of(status)
        elif not self._streamed or self._encoded:
            self._failed = FaultKind.UNREADABLE

    def on_body(self, piece: bytes) -> None:
        if not self._failed:
            self._read(self._reader.feed(piece))

    def on_message_complete(self) -> None:
        if self._interim:
            self._interim = False
            return
        flight = self.flight
        if flight is None:
            return
        if not self._failed:
            self._read(self._reader.close())
        fault = self._failed or ("" if flight.output.ended else FaultKind.CUT_OFF)
        self._end(fault, keep=self._parser.should_keep_alive())

    def _read(self, events: list[str]) -> None:
        flight = self.flight
        if flight is None:
            return
        for event in events:
            if event == _DONE:
                # Engines that tell no reason to stop tell that they did.
                flight.output.ended = flight.output.ended or flight.counted > 0
                continue
            try:
                if flight.output.take(json.loads(event)):
                    flight.carried(self._now)
            except (ValueError, TypeError, AttributeError, RecursionError):
                self._failed = self._failed or FaultKind.UNREADABLE
        if flight.output.failure:
            self._failed = self._failed or FaultKind.STREAM_ERROR

    def _end(self, fault: str, *, keep: bool) -> None:
        flight, self.flight = self.flight, None
        if flight is None:
            return
        self._used += 1
        flight.stop = None
        flight.ended = self._now
        flight.fault = fault or ("" if flight.first_token is not None else NO_OUTPUT)
        if keep and self.is_open:
            self.idle_since = self._now
        else:
            self.close()
        self._over(self, flight, False)


def _fault_of(status: int) -> FaultKind:
    if status in (429, 503):
        return FaultKind.OVERLOADED
    return FaultKind.SERVER_ERROR if status >= 500 else FaultKind.REJECTED
