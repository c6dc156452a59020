"""The outbox of answers to pipelines: once for what was signed, taken by one, counted before it is sent."""

from __future__ import annotations

from service.store.outgoing.callbacks import (
    TAKEN_SECONDS,
    Asked,
    Callback,
    CallbackState,
    ask,
    count_report,
    due,
    end,
    forget_callbacks,
    of_tool,
    take,
    try_again,
    wait,
)
from service.store.sql.database import Database

NOW = 1_700_000_000.0
PLACE = {"repository": "org/serving", "run": 31}


def asked(
    db: Database,
    *key: str,
    delivery: str = "",
    reopens: frozenset[CallbackState] = frozenset(),
    at: float = NOW,
) -> Asked:
    return ask(
        db,
        tool="github",
        key=key,
        delivery=delivery,
        model="m",
        tier="t",
        basis="approval",
        place=PLACE,
        now=at,
        reopens=reopens,
    )


def only(db: Database) -> Callback:
    [found] = of_tool(db, "github")
    return found


def test_what_was_signed_once_is_owed_once(database: Database) -> None:
    assert asked(database, "a", "bc", delivery="d-1") is Asked.NEW
    assert asked(database, "a", "bc", delivery="d-2") is Asked.KNOWN
    assert asked(database, "ab", "c", delivery="d-1") is Asked.KNOWN
    assert asked(database, "ab", "c", delivery="d-3") is Asked.NEW
    [first, *_] = due(database, NOW, limit=10, tools=("github",))
    assert len(due(database, NOW, limit=10, tools=("github",))) == 2
    assert (first.place, first.state, first.attempts) == (PLACE, CallbackState.WAITING, 0)


def test_a_row_is_taken_by_one_and_is_due_again_when_its_taker_died(database: Database) -> None:
    asked(database, "a")
    [seen] = due(database, NOW, limit=10, tools=("github",))
    [also_seen] = due(database, NOW, limit=10, tools=("github",))
    assert take(database, seen, now=NOW)
    assert not take(database, also_seen, now=NOW)
    assert due(database, NOW + TAKEN_SECONDS - 1, limit=10, tools=("github",)) == []
    assert len(due(database, NOW + TAKEN_SECONDS, limit=10, tools=("github",))) == 1


def test_failures_are_counted_until_something_succeeds(database: Database) -> None:
    asked(database, "a")
    for _ in range(3):
        try_again(database, only(database), at=NOW + 5, problem="answered 500")
    assert (only(database).attempts, only(database).problem) == (3, "answered 500")
    wait(database, only(database), until=NOW + 15)
    assert (only(database).attempts, only(database).problem, only(database).due_at) == (0, "", NOW + 15)


def test_reports_are_counted_before_they_are_sent_and_stay_counted(database: Database) -> None:
    asked(database, "a")
    assert [count_report(database, only(database), most=2, told=str(k)) for k in range(3)] == [
        True,
        True,
        False,
    ]
    end(database, only(database), state=CallbackState.GIVEN_UP, at=NOW + 1, problem="answered 404")
    again = asked(database, "a", reopens=frozenset({CallbackState.GIVEN_UP}), at=NOW + 2)
    assert again is Asked.AGAIN
    assert (only(database).reports, only(database).told, only(database).created_at) == (2, "1", NOW + 2)
    assert not count_report(database, only(database), most=2, told="more")


def test_an_ended_answer_is_forgotten_and_one_that_is_owed_is_not(database: Database) -> None:
    asked(database, "a")
    asked(database, "b")
    [first, _] = due(database, NOW, limit=10, tools=("github",))
    end(database, first, state=CallbackState.ANSWERED, at=NOW + 1)
    assert forget_callbacks(database, before=NOW + 1) == 0
    assert forget_callbacks(database, before=NOW + 2) == 1
    assert only(database).state is CallbackState.WAITING
