"""Telling receivers of webhooks what they are owed. The guard notes what is owed and starts a round for each
receiver, in a thread of its own: one that hangs holds up neither the guard nor the others.

At least once: who dies between sending and noting it sends again, with the same `Tiergate-Event`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from service.approval.dialects.callbacks.sending import Unanswered
from service.approval.dialects.outgoing.receiver import Receiver
from service.decision.verdict import Verdict
from service.fleet import Ladder
from service.store.outgoing.callbacks import Callback, CallbackState, due, end, take
from service.store.outgoing.webhook_terms import Told, WebhookTerms
from service.store.outgoing.webhooks import (
    event_of,
    give_up_strangers,
    owe_jobs,
    owe_log,
    owe_verdicts,
    tool_of,
)
from service.store.sql.database import Database, StoreUnusable
from service.store.verdicts.standing import Question, read_standing
from workers.attempts import Attempts

log = logging.getLogger("tiergate.guard")

ATTEMPTS = Attempts(
    most=15,
    first_pause=5.0,
    longest_pause=3600.0,
    later="told later",
    remedy="`tiergate webhooks retry` owes it again",
)
"""Given up after some six hours."""
LOOK_SECONDS = 30.0
"""Between two looks at verdicts and jobs; the decision log is read every time."""
MOST_AT_ONCE = 20
ROUND_SECONDS = 4.0
"""After which a round begins nothing more."""
LAST_SECONDS = 15.0
"""How long a round that is under way is waited for in the end."""


@dataclass(slots=True, kw_only=True)
class Postman:
    """What telling needs."""

    db: Database
    ladders: Mapping[str, Ladder]
    question: Question
    receivers: Mapping[str, Receiver]
    """By name."""
    clock: Callable[[], float] = time.monotonic
    looked_at: float = field(default=float("-inf"))
    """Unix seconds."""
    rounds: dict[str, threading.Thread] = field(default_factory=dict)
    """The last of each receiver."""

    @property
    def terms(self) -> tuple[WebhookTerms, ...]:
        return tuple(each.terms for each in self.receivers.values())

    def close(self) -> None:
        """Wait for rounds under way."""
        for each in self.rounds.values():
            each.join(LAST_SECONDS)
        for receiver in self.receivers.values():
            receiver.close()


def open_postman(
    db: Database, ladders: Mapping[str, Ladder], question: Question, webhooks: tuple[WebhookTerms, ...]
) -> Postman:
    """With a connection to each receiver."""
    if webhooks:
        # It tells every URL at INFO, and those of chat tools are secrets.
        logging.getLogger("httpx").setLevel(logging.WARNING)
    return Postman(
        db=db,
        ladders=ladders,
        question=question,
        receivers={each.name: Receiver(each) for each in webhooks},
    )


def send_webhooks(postman: Postman, *, now: float) -> None:
    """Note what is owed since the last run, and let each receiver have what is due; waits for none."""
    terms = postman.terms
    owe_log(postman.db, terms)
    if now - postman.looked_at >= LOOK_SECONDS:
        postman.looked_at = now
        owe_jobs(postman.db, terms, now=now)
        if any(each.kinds & {Told.DECISION, Told.WARN} for each in terms):
            owe_verdicts(postman.db, terms, _verdicts(postman, now), now=now)
        if lost := give_up_strangers(postman.db, postman.receivers, now=now):
            log.error("%d messages are given up: their webhook is not configured any more", lost)
    for name, receiver in postman.receivers.items():
        before = postman.rounds.get(name)
        if before is not None and before.is_alive():
            continue
        waiting = due(postman.db, now, limit=MOST_AT_ONCE, tools=(tool_of(name),))
        if waiting:
            started = threading.Thread(
                target=_round, args=(postman, receiver, waiting, now), name=tool_of(name), daemon=True
            )
            postman.rounds[name] = started
            started.start()


def _verdicts(postman: Postman, now: float) -> list[Verdict]:
    found = []
    for ladder in postman.ladders.values():
        standing = read_standing(postman.db, ladder, postman.question, now=now)
        found += [rung.verdict for rung in standing.rungs if rung.verdict is not None]
    return found


def _round(postman: Postman, receiver: Receiver, waiting: list[Callback], now: float) -> None:
    """Until one is not taken, or the time is over."""
    ends = postman.clock() + ROUND_SECONDS
    try:
        for callback in waiting:
            if postman.clock() > ends:
                return
            if not take(postman.db, callback, now=now):
                continue
            try:
                receiver.deliver(event_of(callback), now=now)
            except Unanswered as error:
                ATTEMPTS.failed(postman.db, callback, error, now=now)
                return
            end(postman.db, callback, state=CallbackState.ANSWERED, at=now)
    except StoreUnusable as error:
        log.error("webhook %s: told later: %s", receiver.terms.name, error)
    except Exception:
        log.exception("webhook %s: told later", receiver.terms.name)
