"""Whether a database has changed, told without reading it."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
import sqlalchemy
from sqlalchemy import event

from service.store.sql.data_version import DataVersion
from service.store.sql.database import Database, StoreUnusable, open_database
from service.store.sql.schema import schema_version
from tests.patience import PATIENCE


def touch(db: Database) -> None:
    with db.write() as connection:
        connection.execute(schema_version.update().values(version=schema_version.c.version))


def names_around_a_read(db: Database) -> bool:
    before = db.data_version()
    with db.read() as connection:
        connection.execute(sqlalchemy.select(schema_version)).all()
        within = db.data_version()
    return before == within == db.data_version()


def test_it_stays_while_nobody_writes(database: Database) -> None:
    # PostgreSQL's own upkeep may write now and then, and a change for nothing does no harm.
    assert any(names_around_a_read(database) for _ in range(20))


def test_it_moves_with_every_commit(database: Database) -> None:
    seen = {database.data_version()}
    for _ in range(20):
        touch(database)
        assert database.data_version() not in seen
        seen.add(database.data_version())


def test_it_moves_when_another_process_s_connection_commits(database: Database, database_url: str) -> None:
    other = open_database(database_url)
    before = database.data_version()
    touch(other)
    other.close()
    assert database.data_version() != before


def test_what_is_written_and_not_committed_is_named_apart_from_what_is(database: Database) -> None:
    before = database.data_version()
    with database.write() as connection:
        connection.execute(schema_version.update().values(version=schema_version.c.version))
        during = database.data_version()
    assert database.data_version() not in {before, during}


def test_a_new_connection_counts_anew_and_its_names_are_others(sqlite_url: str) -> None:
    engine = sqlalchemy.create_engine(sqlite_url)
    versions = DataVersion(engine)
    before = versions.read()
    versions.close()
    assert versions.read() != before
    versions.close()
    engine.dispose()


def test_a_database_that_fails_is_unusable_and_asked_again_afterwards(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = open_database(sqlite_url)
    before = database.data_version()
    with monkeypatch.context() as broken:
        broken.setattr("service.store.sql.data_version._SQLITE", "PRAGMA data_version(")
        with pytest.raises(StoreUnusable):
            database.data_version()
    assert database.data_version() != before
    database.close()


def test_a_question_that_hangs_holds_up_no_other(sqlite_url: str) -> None:
    begun, go_on = Event(), Event()
    engine = sqlalchemy.create_engine(sqlite_url)

    @event.listens_for(engine, "connect")
    def hang(_: object, __: object) -> None:
        begun.set()
        assert go_on.wait(PATIENCE)

    versions = DataVersion(engine)
    with ThreadPoolExecutor(1) as first:
        one = first.submit(versions.read)
        assert begun.wait(PATIENCE)
        names = [versions.read(), versions.read()]
        go_on.set()
        assert len({one.result(), *names}) == 3
    versions.close()
    engine.dispose()


def test_the_connection_that_asks_leaves_the_file_to_writers(sqlite_url: str) -> None:
    database = open_database(sqlite_url)
    database.data_version()
    with sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), timeout=0) as other:
        other.execute("BEGIN EXCLUSIVE")
        other.rollback()
    other.close()
    database.close()
