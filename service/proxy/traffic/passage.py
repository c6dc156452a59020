"""How far a request has come and how long it may take there. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from service.proxy.config import Timeouts


class Phase(Enum):
    """What a relay waits for."""

    QUEUE = "queue"
    CONNECTION = "connection"
    FIRST_BYTE = "first_byte"
    BODY = "body"
    OVER = "over"


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
