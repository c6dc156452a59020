"""The decision log: it does not fork, and it shows what was done to it."""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from multiprocessing import get_context

import pytest
from sqlalchemy import delete, insert, select, update

from service.store.decided.decisions import GENESIS, Head, append, head_of, read, verify
from service.store.decided.whence import asked_by
from service.store.sql.database import open_database
from service.store.sql.schema import decision_head, decisions


@pytest.fixture
def log(database):
    def add(action="approve", **changes):
        fields = {"at": 1000.25, "actor": "ci", "model": "m", "tier": "w8a8", "detail": {"n": 1}, **changes}
        return append(database, action=action, **fields)

    return add


def test_each_entry_is_bound_to_the_one_before_it(database, log):
    first, second = log(), log("revoke", detail={"reason": "because, 因为"})
    assert (first.seq, first.prev, second.seq, second.prev) == (1, GENESIS, 2, first.digest)
    assert read(database) == [first, second]
    assert verify(database) is None


def test_the_digest_is_the_documented_one(log):
    entry = log(detail={"b": [1, 2.5], "a": "ü"})
    row = {
        "seq": 1,
        "at": 1000.25,
        "actor": "ci",
        "action": "approve",
        "model": "m",
        "tier": "w8a8",
        "detail": '{"a":"\\u00fc","b":[1,2.5]}',
        "prev": "0" * 64,
    }
    written = json.dumps(row, sort_keys=True, separators=(",", ":"))
    assert entry.digest == sha256(written.encode()).hexdigest()


def test_an_empty_log_holds(database):
    assert verify(database) is None
    assert read(database) == []


def test_entries_are_read_by_model_in_pages(database, log):
    for number in range(5):
        log(model="m" if number % 2 else "n", tier=None)
    assert [entry.seq for entry in read(database, "n")] == [1, 3, 5]
    assert [entry.seq for entry in read(database, "n", after=1, limit=1)] == [3]
    assert [entry.seq for entry in read(database, after=3)] == [4, 5]
    assert read(database)[0].tier is None


def write_rows(url, part, amount):
    database = open_database(url, part=part)
    try:
        for number in range(amount):
            append(
                database, at=1000.0 + number, actor=part, action="approve", model="m", detail={"n": number}
            )
    finally:
        database.close()


def test_eight_processes_at_once_make_one_chain_without_a_fork(database, database_url):
    context = get_context("spawn")
    parts = [f"{part} {number}" for part in ("api", "worker", "guard", "shell") for number in (1, 2)]
    writers = [context.Process(target=write_rows, args=(database_url, part, 12)) for part in parts]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * 8
    entries = read(database, limit=1000)
    assert [entry.seq for entry in entries] == list(range(1, 97))
    assert len({entry.prev for entry in entries}) == 96, "no row has two successors"
    assert head_of(database) == Head(seq=96, digest=entries[-1].digest)
    assert verify(database) is None
    for part in parts:
        mine = [entry for entry in entries if entry.actor == part]
        assert [entry.detail["n"] for entry in mine] == list(range(12)), "each in its own order"
        assert {entry.detail["whence"]["part"] for entry in mine} == {part}


def test_a_row_says_from_where_it_came(database_url):
    database = open_database(database_url, part="api")
    try:
        with asked_by("192.0.2.7"):
            asked = append(database, at=1.0, actor="ci", action="approve", model="m")
        alone = append(database, at=2.0, actor="guard", action="roll_back", model="m")
        here = {"part": "api", "host": socket.gethostname()}
        assert asked.detail == {"whence": {**here, "peer": "192.0.2.7"}}
        assert alone.detail == {"whence": here}
        with pytest.raises(ValueError, match="told by the log itself"):
            append(database, at=3.0, actor="x", action="y", model="m", detail={"whence": "elsewhere"})
        assert verify(database) is None
    finally:
        database.close()


def test_eight_writers_at_once_make_one_chain(database, log):
    with ThreadPoolExecutor(8) as pool:
        entries = list(pool.map(lambda number: log(actor=f"w{number % 8}"), range(48)))
    assert sorted(entry.seq for entry in entries) == list(range(1, 49))
    assert len({entry.prev for entry in entries}) == 48
    assert verify(database) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"at": 1000.5},
        {"actor": "mallory"},
        {"action": "reject"},
        {"model": "n"},
        {"tier": "w4a16"},
        {"tier": None},
        {"detail": '{"n": 1}'},
        {"prev": "1" * 64},
        {"digest": "1" * 64},
    ],
)
def test_any_altered_field_is_found(database, log, changes):
    for _ in range(5):
        log()
    with database.write() as connection:
        connection.execute(update(decisions).where(decisions.c.seq == 3).values(**changes))
    assert verify(database) == 3


def test_an_altered_row_with_a_fitting_digest_breaks_the_next(database, log):
    entries = [log() for _ in range(5)]
    with database.write() as connection:
        row = dict(connection.execute(select(decisions).where(decisions.c.seq == 3)).mappings().one())
        del row["digest"]
        forged = sha256(
            json.dumps({**row, "actor": "mallory"}, sort_keys=True, separators=(",", ":")).encode()
        ).hexdigest()
        connection.execute(
            update(decisions).where(decisions.c.seq == 3).values(actor="mallory", digest=forged)
        )
    assert entries[3].prev != forged
    assert verify(database) == 4


@pytest.mark.parametrize("removed", [1, 3, 5])
def test_a_removed_row_is_found_the_first_and_the_last_included(database, log, removed):
    for _ in range(5):
        log()
    with database.write() as connection:
        connection.execute(delete(decisions).where(decisions.c.seq == removed))
    assert verify(database) == removed


def test_an_emptied_log_is_found(database, log):
    log()
    with database.write() as connection:
        connection.execute(delete(decisions))
    assert verify(database) == 1


def test_rows_that_changed_places_are_found(database, log):
    for number in range(4):
        log(detail={"n": number})
    with database.write() as connection:
        for old, new in ((2, 99), (3, 2), (99, 3)):
            connection.execute(update(decisions).where(decisions.c.seq == old).values(seq=new))
    assert verify(database) == 2


def test_a_row_added_behind_the_logs_back_is_found(database, log):
    last = log()
    with database.write() as connection:
        row = {**{c.name: getattr(last, c.name) for c in decisions.columns}, "detail": '{"n":1}'}
        body = {**row, "seq": 2, "prev": last.digest}
        del body["digest"]
        written = json.dumps(body, sort_keys=True, separators=(",", ":"))
        connection.execute(insert(decisions).values(**body, digest=sha256(written.encode()).hexdigest()))
    assert verify(database) == 2


def test_a_log_without_its_head_is_found(database, log):
    log()
    with database.write() as connection:
        connection.execute(delete(decision_head))
    assert verify(database) == 1


@pytest.mark.parametrize("detail", [{"x": float("nan")}, {"x": object()}, {"x": {1, 2}}])
def test_a_detail_that_is_not_json_is_refused_and_nothing_is_added(database, log, detail):
    with pytest.raises(ValueError, match="JSON"):
        log(detail=detail)
    assert read(database) == []


def test_a_decision_needs_somebody_and_something(log):
    for changes in ({"actor": ""}, {"action": ""}):
        with pytest.raises(ValueError, match="an actor and an action"):
            log(**changes)


def test_whole_seconds_and_strange_text_survive(database, log):
    log(at=1700000000, detail={"quote": "NUL \0 and half a pair \ud83d"})
    assert verify(database) is None
    assert read(database)[0].detail == {"quote": "NUL \0 and half a pair \ud83d"}
