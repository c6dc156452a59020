"""The chain is watched a part at a time, and what is done to it later is found as well."""

from __future__ import annotations

import pytest
from sqlalchemy import delete, update

from service.store.decided import chain_watch
from service.store.decided.chain_watch import START, ChainWatch
from service.store.decided.decisions import append, head_of
from service.store.sql.database import Database
from service.store.sql.schema import decision_head, decisions


def add(db: Database, amount: int) -> None:
    for number in range(amount):
        append(db, at=float(number), actor="ci", action="note", model="m", detail={"n": number})


def test_an_empty_log_holds(database: Database) -> None:
    state = ChainWatch(database).look(1.0)
    assert (state.head, state.checked, state.broken, state.whole) == (START, START, None, True)


def test_a_log_that_fits_is_whole_at_the_first_look_and_grows(database: Database) -> None:
    watch = ChainWatch(database)
    add(database, 3)
    state = watch.look(100.0)
    assert (state.whole, state.checked, state.since) == (True, head_of(database), 100.0)
    add(database, 2)
    state = watch.look(200.0)
    assert (state.whole, state.checked.seq, state.since) == (True, 5, 200.0)


def test_a_long_log_is_read_a_part_at_a_look(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain_watch, "ROWS_A_LOOK", 4)
    add(database, 10)
    watch = ChainWatch(database)
    states = [watch.look(float(at)) for at in range(1, 4)]
    assert [state.checked.seq for state in states] == [4, 8, 10]
    assert [state.whole for state in states] == [False, False, True]
    assert states[-1].since == 1.0
    later = [watch.look(float(at)) for at in range(4, 7)]
    assert [state.since for state in later] == [1.0, 1.0, 4.0], "all were read again from the fourth look on"


def test_a_row_that_is_altered_after_it_was_checked_is_found(database: Database) -> None:
    add(database, 5)
    watch = ChainWatch(database)
    assert watch.look(1.0).whole
    with database.write() as connection:
        connection.execute(update(decisions).where(decisions.c.seq == 2).values(actor="mallory"))
    state = watch.look(2.0)
    assert state.broken is not None
    assert state.broken.seq == 2
    assert not state.whole
    again = watch.look(3.0).broken
    assert again is not None
    assert again.seq == 2, "it stays told"


def test_rows_that_are_cut_off_the_end_are_found_and_a_repair_is_seen(database: Database) -> None:
    add(database, 5)
    watch = ChainWatch(database)
    assert watch.look(1.0).whole
    kept = head_of(database)
    with database.write() as connection:
        connection.execute(update(decision_head).values(seq=4, digest="0" * 64))
    assert watch.look(2.0).broken is not None
    with database.write() as connection:
        connection.execute(update(decision_head).values(seq=kept.seq, digest=kept.digest))
    assert watch.look(3.0).whole
    with database.write() as connection:
        connection.execute(delete(decisions).where(decisions.c.seq == 5))
    assert watch.look(4.0).broken is not None
