"""What was not taken is tried again after pauses that double, and given up in the end."""

from __future__ import annotations

import logging

import pytest

from service.approval.dialects.callbacks.sending import Unanswered
from service.store.outgoing.callbacks import Callback, ask, count_callbacks, due
from service.store.sql.database import Database
from workers.attempts import Attempts

ATTEMPTS = Attempts(most=4, first_pause=5.0, longest_pause=15.0, later="told later", remedy="ask again")
BUSY = Unanswered("it is busy", again=True)


@pytest.fixture
def owed(db: Database) -> Database:
    """With one message that is owed since second 0."""
    ask(
        db,
        tool="webhook:x",
        key=("k",),
        delivery="",
        model="m",
        tier="w8a8",
        basis="quality",
        place={},
        now=0.0,
        reopens=frozenset(),
    )
    return db


def waiting(db: Database, now: float) -> list[Callback]:
    return due(db, now, limit=5, tools=("webhook:x",))


def test_pauses_double_up_to_the_longest_and_then_it_is_given_up(
    owed: Database, caplog: pytest.LogCaptureFixture
) -> None:
    now, pauses = 0.0, (5.0, 10.0, 15.0)
    with caplog.at_level(logging.WARNING):
        for pause in pauses:
            [callback] = waiting(owed, now)
            ATTEMPTS.failed(owed, callback, BUSY, now=now)
            assert waiting(owed, now + pause - 0.1) == []
            now += pause
        [callback] = waiting(owed, now)
        ATTEMPTS.failed(owed, callback, BUSY, now=now)
    assert waiting(owed, now + 1e9) == []
    assert {state.value: count for (_, state), count in count_callbacks(owed).items() if count} == {
        "given_up": 1
    }
    said = [record.getMessage() for record in caplog.records]
    assert said[0] == "told later, in 5 s: it is busy"
    assert said[-1] == "given up: it is busy; ask again"


def test_a_longer_pause_that_was_asked_for_is_kept_to(owed: Database) -> None:
    [callback] = waiting(owed, 0.0)
    ATTEMPTS.failed(owed, callback, Unanswered("later, please", again=True, pause=90.0), now=0.0)
    assert waiting(owed, 89.0) == []
    assert len(waiting(owed, 90.0)) == 1


def test_what_asking_again_does_not_help_is_given_up_at_once(owed: Database) -> None:
    [callback] = waiting(owed, 0.0)
    ATTEMPTS.failed(owed, callback, Unanswered("no such place", again=False), now=0.0)
    assert waiting(owed, 1e9) == []
