"""How far a request has come, how long it may take there, and what it leaves behind. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from service.fleet import Tier
from service.proxy.config import Timeouts
from service.proxy.door import Admission
from service.proxy.recorder import Recording
from service.store.capture import Ending


class Phase(Enum):
    """What a relay waits for."""

    CONNECTION = "connection"
    FIRST_BYTE = "first_byte"
    BODY = "body"
    OVER = "over"


@dataclass(slots=True, kw_only=True)
class Passage:
    """An exchange that is over, however it ended."""

    admission: Admission
    tier: Tier
    ending: Ending
    status: int | None
    answer_type: bytes
    answer_encoding: bytes
    first_byte: float | None
    """Monotonic."""
    recording: Recording | None


@dataclass(frozen=True, slots=True)
class Overdue:
    """Which limit has passed, as `x-tiergate-error` says it, and its seconds."""

    code: str
    limit: float


def overdue(phase: Phase, limits: Timeouts, *, waited: float, in_all: float, paused: bool) -> Overdue | None:
    """The limit that has passed, if any; `paused` while it is the client that keeps the backend waiting."""
    if phase is Phase.FIRST_BYTE and limits.first_byte is not None and waited > limits.first_byte:
        return Overdue("first_byte_timeout", limits.first_byte)
    if phase is Phase.BODY and not paused and limits.idle is not None and waited > limits.idle:
        return Overdue("idle_timeout", limits.idle)
    if limits.total is not None and in_all > limits.total:
        return Overdue("total_timeout", limits.total)
    return None
