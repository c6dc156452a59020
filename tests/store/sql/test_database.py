"""Opening a database: both kinds, and everything that can be wrong with one."""

from __future__ import annotations

import os
import pwd
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import insert, select, update
from sqlalchemy.exc import IntegrityError

from service.store.sql import schema, tally_tables
from service.store.sql.database import StoreEmpty, StoreUnusable, open_database
from tests.leash import Leashed

ROW = {
    "capture_id": "a",
    "mark": "",
    "state": "leased",
    "owner": "",
    "lease_until": 0.0,
    "taken_at": 0.0,
    "leases": 1,
}


def ids(database):
    with database.read() as connection:
        return list(connection.execute(select(schema.captures.c.capture_id)).scalars())


def test_within_one_moment_what_is_asked_once_is_not_asked_again(database):
    asked = []

    def read():
        asked.append(1)
        return len(asked)

    assert [database.once("it", read), database.once("it", read)] == [1, 2]
    with database.one_moment():
        assert [database.once("it", read), database.once("it", read), database.once("more", read)] == [
            3,
            3,
            4,
        ]
    assert database.once("it", read) == 5


def test_an_empty_database_gets_its_tables_and_opens_again(database, database_url):
    with database.write() as connection:
        connection.execute(insert(schema.captures).values(ROW))
    again = open_database(database_url)
    assert ids(again) == ["a"]
    again.close()


def test_a_block_that_raises_changes_nothing(database):
    def fail():
        with database.write() as connection:
            connection.execute(insert(schema.captures).values(ROW))
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        fail()
    assert ids(database) == []


def test_a_violated_constraint_is_our_bug_and_stays_one(database):
    def twice():
        with database.write() as connection:
            connection.execute(insert(schema.captures).values(ROW))
            connection.execute(insert(schema.captures).values(ROW))

    with pytest.raises(IntegrityError):
        twice()


def test_a_read_sees_one_moment(database):
    with database.write() as connection:
        connection.execute(insert(schema.captures).values(ROW))
    states = select(schema.captures.c.state)
    with database.read() as reader:
        assert reader.execute(states).scalar() == "leased"
        with database.write() as connection:
            connection.execute(update(schema.captures).values(state="processed"))
        assert reader.execute(states).scalar() == "leased"
    with database.read() as reader:
        assert reader.execute(states).scalar() == "processed"


def test_concurrent_writers_wait_for_each_other(database):
    with database.write() as connection:
        connection.execute(insert(schema.captures).values(ROW))
    failures = []

    def increment():
        try:
            for _ in range(10):
                with database.write() as connection:
                    database.lock(connection, "counter")
                    seen = connection.execute(select(schema.captures.c.leases)).scalar_one()
                    connection.execute(update(schema.captures).values(leases=seen + 1))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=increment) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with database.read() as connection:
        assert connection.execute(select(schema.captures.c.leases)).scalar_one() == 81


def test_several_processes_may_open_an_empty_database_at_once(empty_database_url):
    script = "import sys; from service.store.sql.database import open_database as o; o(sys.argv[1]).close()"
    processes = [
        Leashed([sys.executable, "-c", script, empty_database_url], stderr=subprocess.PIPE) for _ in range(3)
    ]
    for process in processes:
        _, complaint = process.communicate(timeout=60)
        assert process.returncode == 0, complaint.decode()


def test_sqlite_writes_ahead_and_keeps_the_file_to_its_owner(empty_sqlite_url):
    database = open_database(empty_sqlite_url)
    with database.read() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
    assert os.stat(empty_sqlite_url.removeprefix("sqlite:///")).st_mode & 0o077 == 0
    database.close()


@pytest.mark.parametrize(
    "url", ["", "nonsense", "mysql://h/d", "sqlite://", "sqlite:///:memory:", "sqlite:///a?mode=ro"]
)
def test_an_url_that_is_no_shared_database_says_what_to_write(url):
    with pytest.raises(StoreUnusable, match=r"sqlite:////path/to/tiergate\.db or postgresql://"):
        open_database(url)


def test_a_file_that_is_no_database_says_move_it_away(tmp_path):
    (tmp_path / "x.db").write_bytes(b"certainly not a database, but long enough to look at" * 100)
    with pytest.raises(StoreUnusable, match=r"x\.db cannot be used .*move it away and start again"):
        open_database(f"sqlite:///{tmp_path / 'x.db'}")


def test_a_damaged_database_says_restore_a_backup(sqlite_url, tmp_path):
    open_database(sqlite_url).close()
    path = tmp_path / "tiergate.db"
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    with pytest.raises(StoreUnusable, match="restore a backup"):
        open_database(sqlite_url)


def test_a_directory_that_is_not_there_says_make_it(tmp_path):
    with pytest.raises(StoreUnusable, match="make its directory"):
        open_database(f"sqlite:///{tmp_path / 'missing' / 'x.db'}")


@pytest.fixture
def foreign_directory():
    """A directory that this process may read and not write; root gives up its rights meanwhile."""
    home = Path(tempfile.mkdtemp(prefix="tiergate-readonly-"))
    open_database(f"sqlite:///{home / 'old.db'}").close()
    (home / "old.db").chmod(0o444)
    home.chmod(0o555)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(pwd.getpwnam("nobody").pw_uid)
    yield home
    if is_root:
        os.seteuid(0)
    home.chmod(0o755)
    shutil.rmtree(home)


@pytest.mark.parametrize("name", ["new.db", "old.db"])
def test_a_read_only_directory_or_file_says_let_this_user_write(foreign_directory, name):
    with pytest.raises(StoreUnusable, match=r"cannot be used .*let this user write"):
        open_database(f"sqlite:///{foreign_directory / name}")


def test_who_only_looks_makes_no_database_and_no_tables(empty_database_url):
    with pytest.raises(StoreEmpty, match=r"no database|is empty"):
        open_database(empty_database_url, make=False)
    if empty_database_url.startswith("sqlite"):
        assert not Path(empty_database_url.removeprefix("sqlite:///")).exists()
    open_database(empty_database_url).close()
    open_database(empty_database_url, make=False).close()


def test_a_look_at_a_database_finds_the_same_faults(database, database_url):
    with database.write() as connection:
        connection.execute(update(schema.schema_version).values(version=schema.VERSION + 1))
    with pytest.raises(StoreUnusable, match="upgrade Tiergate"):
        open_database(database_url, make=False)


def test_another_schema_version_says_what_fits(database, database_url):
    with database.write() as connection:
        connection.execute(update(schema.schema_version).values(version=schema.VERSION + 1))
    with pytest.raises(StoreUnusable, match="upgrade Tiergate"):
        open_database(database_url)
    with database.write() as connection:
        connection.execute(update(schema.schema_version).values(version=max(schema.UPGRADABLE)))
    with pytest.raises(StoreUnusable, match="tiergate recount --upgrade"):
        open_database(database_url)
    with database.write() as connection:
        connection.execute(update(schema.schema_version).values(version=min(schema.UPGRADABLE) - 1))
    with pytest.raises(StoreUnusable, match="cannot be upgraded"):
        open_database(database_url)


def test_tables_of_something_else_are_left_alone(empty_database_url):
    if empty_database_url.startswith("sqlite"):
        with closing(sqlite3.connect(empty_database_url.removeprefix("sqlite:///"))) as connection:
            connection.execute("CREATE TABLE invoices (id INTEGER)")
    else:
        with psycopg.connect(empty_database_url) as connection:
            connection.execute("CREATE TABLE invoices (id INTEGER)")
    with pytest.raises(StoreUnusable, match=r"something else \(invoices\).*TIERGATE_DATABASE_URL"):
        open_database(empty_database_url)


def test_a_database_that_lost_a_table_says_which(database, database_url):
    with database.write() as connection:
        tally_tables.tallies.drop(connection)
    with pytest.raises(StoreUnusable, match=r"lacks the tables.*tallies"):
        open_database(database_url)


def test_a_postgresql_that_is_not_there_says_start_it_and_keeps_the_password(free_port):
    with pytest.raises(StoreUnusable, match=r"Start it, or correct store\.database") as caught:
        open_database(f"postgresql://tiergate:hunter2@127.0.0.1:{free_port}/tiergate")
    assert "hunter2" not in str(caught.value)


def test_a_postgresql_database_that_does_not_exist_says_so(postgres_url):
    with pytest.raises(StoreUnusable, match='"nowhere" does not exist'):
        open_database(postgres_url.rpartition("/")[0] + "/nowhere")


def test_a_database_that_fails_later_is_unusable_and_not_a_driver_error(sqlite_url, tmp_path):
    database = open_database(sqlite_url)
    database.close()
    for suffix in ("", "-wal", "-shm"):
        (tmp_path / f"tiergate.db{suffix}").unlink(missing_ok=True)
    tmp_path.joinpath("tiergate.db").mkdir()
    with pytest.raises(StoreUnusable, match="unable to open"):
        ids(database)
    database.close()


def test_a_key_depends_on_where_its_parts_end():
    assert schema.key_of("ab", "c") != schema.key_of("a", "bc") != schema.key_of("abc")
    assert schema.key_of("ü") == schema.key_of("ü")


@pytest.mark.postgres
@pytest.mark.parametrize("make", [True, False])
def test_a_postgresql_that_is_too_old_is_told(make, postgres_url, monkeypatch):
    open_database(postgres_url).close()
    monkeypatch.setattr("service.store.sql.database._OLDEST_POSTGRESQL", (999,))
    with pytest.raises(StoreUnusable, match="is too old, 999 is needed"):
        open_database(postgres_url, make=make)
