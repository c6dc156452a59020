"""One request under way: noted as things happen, told as a `Timed` when it is over."""

from __future__ import annotations

import asyncio

from service.load.output import Output
from service.load.timed import Timed


class Flight:
    """Times are those of `time.monotonic`, but for `scheduled`: seconds from the start of the block."""

    __slots__ = (
        "begun",
        "body",
        "counted",
        "ended",
        "fault",
        "first_byte",
        "first_token",
        "last_token",
        "ordinal",
        "output",
        "path",
        "place",
        "request",
        "resent",
        "scheduled",
        "sent",
        "status",
        "stop",
    )

    def __init__(
        self,
        *,
        ordinal: int,
        request: int,
        path: str,
        body: bytes,
        output: Output,
        scheduled: float,
        begun: float,
    ) -> None:
        self.ordinal = ordinal
        self.request = request
        self.path = path
        self.body = body
        self.output = output
        self.scheduled = scheduled
        self.begun = begun
        self.place = 0
        """Of its backend among those of the tier."""
        self.sent: float | None = None
        self.first_byte: float | None = None
        self.first_token: float | None = None
        self.last_token: float | None = None
        self.ended: float | None = None
        self.counted = 0
        self.status: int | None = None
        self.fault = ""
        self.resent = False
        """It went out over a connection that the backend was closing, and then once more."""
        self.stop: asyncio.Transport | None = None
        """What to abort when it takes too long."""

    def carried(self, now: float) -> None:
        """An event with output arrived."""
        if self.first_token is None:
            self.first_token = now
        self.last_token = now
        self.counted += 1

    def timed(self, start: float) -> Timed:
        """What became of it, in seconds from `start`."""

        def since(at: float | None) -> float | None:
            return None if at is None else at - start

        return Timed(
            ordinal=self.ordinal,
            request=self.request,
            scheduled=self.scheduled,
            begun=self.begun - start,
            sent=since(self.sent),
            first_byte=since(self.first_byte),
            first_token=since(self.first_token),
            last_token=since(self.last_token),
            ended=since(self.ended),
            tokens=self.output.tokens,
            counted=self.counted,
            written=self.output.written,
            prompt_tokens=self.output.prompt_tokens,
            cached_tokens=self.output.cached_tokens,
            status=self.status,
            fault=self.fault,
        )
