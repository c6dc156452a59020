"""What becomes of a message that was not taken: tried again after pauses that double, given up in the end."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from service.approval.dialects.callbacks.sending import Unanswered
from service.store.outgoing.callbacks import Callback, CallbackState, end, try_again
from service.store.sql.database import Database

log = logging.getLogger("tiergate.guard")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """How often something is tried, and what is said of it."""

    most: int
    first_pause: float
    """Seconds before the second; each pause is twice the last."""
    longest_pause: float
    later: str
    """Of what is tried again, such as `told later`."""
    remedy: str
    """For what is given up."""

    def failed(self, db: Database, callback: Callback, error: Unanswered, *, now: float) -> None:
        """One failed: write down when the next is, or that there is none."""
        if error.again and callback.attempts + 1 < self.most:
            doubled = min(self.first_pause * 2.0**callback.attempts, self.longest_pause)
            pause = max(error.pause, doubled)
            log.warning("%s, in %.0f s: %s", self.later, pause, error)
            try_again(db, callback, at=now + pause, problem=error.problem)
            return
        log.error("given up: %s; %s", error, self.remedy)
        end(db, callback, state=CallbackState.GIVEN_UP, at=now, problem=error.problem)
