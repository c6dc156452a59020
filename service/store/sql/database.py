"""One SQL database, SQLite (WAL) or PostgreSQL, opened, checked and spoken to in whole transactions."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy
from sqlalchemy import Connection, Engine, Table, event, inspect, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    DataError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    ProgrammingError,
)

from service.store.sql import (
    adjudication_tables as adjudication_tables,  # its tables belong to the same schema
)
from service.store.sql import callback_tables as callback_tables
from service.store.sql import capacity_tables as capacity_tables
from service.store.sql import corpus_tables as corpus_tables
from service.store.sql import detail_tables as detail_tables
from service.store.sql import engine_tables as engine_tables
from service.store.sql import idempotency_tables as idempotency_tables
from service.store.sql import job_tables as job_tables
from service.store.sql import look_tables as look_tables
from service.store.sql import report_tables as report_tables
from service.store.sql import schema
from service.store.sql import session_tables as session_tables
from service.store.sql import tally_tables as tally_tables
from service.store.sql import token_tables as token_tables
from service.store.sql.data_version import DataVersion

_BUSY_SECONDS = 20.0  # to wait for whoever writes; who was stopped in the middle may hold a lock for ever
_CONNECT_SECONDS = 5
_SILENCE = {
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
"""Seconds, and of the last one milliseconds, after which a PostgreSQL whose host fell silent is given up; the
kernel would wait for two hours, and a worker with it. What the URL says goes before."""
_OLDEST_SQLITE = (3, 35, 0)  # RETURNING
_OLDEST_POSTGRESQL = (13,)  # pg_current_snapshot
_HOW = "write sqlite:////path/to/tiergate.db or postgresql://user:password@host/name"


class StoreUnusable(RuntimeError):
    """The database cannot be used; the message says what to do."""


class StoreEmpty(StoreUnusable):
    """There is no database yet, and who asks is not to make one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moment:
    """A transaction that a task reads in, and what it has read once for all."""

    connection: Connection
    known: dict[str, Any] = field(default_factory=dict)


_T = TypeVar("_T")


class Database:
    """An engine of one process (open it after a fork) and the two kinds of transaction there are."""

    def __init__(self, engine: Engine, part: str = "") -> None:
        """`part` of Tiergate that opens it; the decision log says from where each row came."""
        self.part = part
        self._engine = engine
        self._shared: ContextVar[_Moment | None] = ContextVar("shared", default=None)
        self._data_version = DataVersion(engine)

    @property
    def shown_url(self) -> str:
        """Where it is, without the password."""
        return self._engine.url.render_as_string(hide_password=True)

    @property
    def is_sqlite(self) -> bool:
        return self._engine.dialect.name == "sqlite"

    @contextmanager
    def one_moment(self) -> Iterator[Connection]:
        """Within the block, whatever its task reads sees the same moment: one transaction for all."""
        with self.read() as connection:
            token = self._shared.set(_Moment(connection=connection))
            try:
                yield connection
            finally:
                self._shared.reset(token)

    @property
    def is_in_one_moment(self) -> bool:
        """Whether this task reads within `one_moment`, and so what may be past."""
        return self._shared.get() is not None

    def data_version(self) -> str:
        """Names what is stored now: while the name stays, nothing was committed."""
        with self._translated():
            return self._data_version.read()

    def once(self, name: str, read: Callable[[], _T]) -> _T:
        """What `read` gives; within `one_moment` it is asked once, for nothing changes there."""
        moment = self._shared.get()
        if moment is None:
            return read()
        if name not in moment.known:
            moment.known[name] = read()
        found: _T = moment.known[name]
        return found

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction in which every statement sees the same moment."""
        if (shared := self._shared.get()) is not None:
            yield shared.connection
            return
        options: dict[str, Any] = {} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        with (
            self._translated(),
            self._engine.connect() as plain,
            plain.execution_options(**options) as connection,
            connection.begin(),
        ):
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that holds SQLite's write lock from its start; committed unless the block raises."""
        with (
            self._translated(),
            self._engine.connect() as plain,
            plain.execution_options(tiergate_write=True) as connection,
            connection.begin(),
        ):
            yield connection

    def insert(self, table: Table) -> sqlite.Insert | postgresql.Insert:
        """An INSERT that knows ON CONFLICT and RETURNING."""
        return sqlite.insert(table) if self.is_sqlite else postgresql.insert(table)

    def lock(self, connection: Connection, name: str) -> None:
        """Keep other holders of this name out until the transaction ends; SQLite admits one writer anyway."""
        if not self.is_sqlite:
            number = int.from_bytes(bytes.fromhex(schema.key_of(name)[:16]), "big", signed=True)
            connection.execute(select(sqlalchemy.func.pg_advisory_xact_lock(number)))

    def check_for_damage(self) -> None:
        """Read all of a SQLite file (seconds per GB); raises StoreUnusable. PostgreSQL looks after itself.

        Opening touches the first pages only, and damage further on would come up in the middle of the work.
        """
        if not self.is_sqlite:
            return
        with self.read() as connection:
            found = str(connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one())
        if found != "ok":
            raise StoreUnusable(_advice(self._engine.url, f"malformed: {found}"))

    def close(self) -> None:
        self._data_version.close()
        self._engine.dispose()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (IntegrityError, ProgrammingError, DataError):
            raise  # ours to fix, not the operator's
        except (OperationalError, InterfaceError, DatabaseError) as error:
            raise StoreUnusable(_advice(self._engine.url, str(error.orig))) from error


def open_database(url: str, *, make: bool = True, part: str = "") -> Database:
    """Open the database, make its tables if it is empty, and check that they are of this version.

    Raises StoreUnusable. Several processes may open an empty database at once. With `make` false nothing is
    changed: a database that is empty, and could be made, raises StoreEmpty. `part` as in `Database`.
    """
    database = Database(_engine(_checked_url(url, make=make)), part)
    try:
        if make:
            with database.write() as connection:
                _check_server(connection)
                database.lock(connection, "schema")
                _make_or_check(connection, database.shown_url)
        else:
            with database.read() as connection:
                _check_server(connection)
                _check(connection, database.shown_url)
    except BaseException:
        database.close()
        raise
    return database


def connect(url: str) -> Database:
    """A database that is there, whatever is in it: for who upgrades it. Raises StoreUnusable."""
    return Database(_engine(_checked_url(url, make=False)))


def _checked_url(url: str, *, make: bool) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise StoreUnusable(f"not a database URL: {_HOW}") from error
    if parsed.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername not in ("sqlite", "sqlite+pysqlite"):
        raise StoreUnusable(f"{parsed.drivername!r} databases are not supported: {_HOW}")
    if not parsed.database or parsed.database == ":memory:" or parsed.query:
        raise StoreUnusable(f"SQLite needs a file that all processes can open: {_HOW}")
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise StoreUnusable(
            f"SQLite {sqlite3.sqlite_version} is too old, 3.35 is needed: use PostgreSQL or a newer Python"
        )
    if not make and not Path(parsed.database).exists():
        around = next(each for each in Path(parsed.database).absolute().parents if each.exists())
        if not os.access(around, os.W_OK | os.X_OK):
            raise StoreUnusable(_advice(parsed, "unable to open database file (Permission denied)"))
        raise StoreEmpty(f"there is no database {parsed.database} yet")
    try:
        # Labels and reasons in it are nobody else's business; the -wal file takes over its mode.
        Path(parsed.database).touch(mode=0o600)
    except OSError as error:
        raise StoreUnusable(_advice(parsed, f"unable to open database file ({error.strerror})")) from error
    return parsed


def _engine(url: URL) -> Engine:
    if url.drivername == "postgresql+psycopg":
        terms: dict[str, Any] = {"connect_timeout": _CONNECT_SECONDS, "application_name": "tiergate"}
        terms |= {name: value for name, value in _SILENCE.items() if name not in url.query}
        server = sqlalchemy.create_engine(url, pool_pre_ping=True, connect_args=terms)

        @event.listens_for(server, "connect")
        def wait_no_longer(connection: Any, _: object) -> None:
            connection.execute(f"SET lock_timeout = {_BUSY_SECONDS * 1000:.0f}")
            connection.commit()

        return server
    engine = sqlalchemy.create_engine(url, connect_args={"timeout": _BUSY_SECONDS})

    @event.listens_for(engine, "connect")
    def set_up(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None  # BEGIN is ours: the module would begin late and deferred
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}").close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("tiergate_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _check_server(connection: Connection) -> None:
    """SQLite is a part of Python, and looked at before there is a file."""
    version = connection.dialect.server_version_info
    if connection.dialect.name == "postgresql" and version is not None and version < _OLDEST_POSTGRESQL:
        raise StoreUnusable(
            f"PostgreSQL {version[0]} is too old, {_OLDEST_POSTGRESQL[0]} is needed: upgrade it or use SQLite"
        )


def _make_or_check(connection: Connection, shown_url: str) -> None:
    if inspect(connection).get_table_names():
        _check(connection, shown_url)
        return
    schema.metadata.create_all(connection)
    connection.execute(schema.schema_version.insert().values(version=schema.VERSION))


def _check(connection: Connection, shown_url: str) -> None:
    present = set(inspect(connection).get_table_names())
    if not present:
        may = "SELECT has_schema_privilege(current_schema(), 'CREATE')"
        if connection.dialect.name == "postgresql" and not connection.exec_driver_sql(may).scalar():
            raise StoreUnusable(
                f"the database {shown_url} is empty, and this user may make no tables in it: "
                "GRANT CREATE ON SCHEMA public to it, or let its owner run `tiergate api` once"
            )
        raise StoreEmpty(f"the database {shown_url} is empty")
    if "schema_version" not in present:
        raise StoreUnusable(
            f"the database {shown_url} holds tables of something else ({', '.join(sorted(present)[:3])}): "
            "point store.database (TIERGATE_DATABASE_URL) at an empty one"
        )
    version = connection.execute(select(schema.schema_version.c.version)).scalar_one_or_none()
    if version != schema.VERSION:
        if version is not None and version > schema.VERSION:
            advice = "upgrade Tiergate"
        elif version in schema.UPGRADABLE:
            advice = "stop everything that uses it, keep a copy, and run `tiergate recount --upgrade`"
        else:
            advice = "it cannot be upgraded: move it away, and start anew"
        raise StoreUnusable(
            f"the database {shown_url} has schema version {version}, this Tiergate reads {schema.VERSION}: "
            + advice
        )
    if missing := set(schema.metadata.tables) - present:
        raise StoreUnusable(
            f"the database {shown_url} lacks the tables {sorted(missing)}: restore a backup, or start anew"
        )


def _advice(url: URL, cause: str) -> str:
    """What went wrong, in the database's words, and what to do about it."""
    shown = url.render_as_string(hide_password=True)
    cause = " ".join(cause.split())
    busy = f"another process wrote for more than {_BUSY_SECONDS:.0f} s: find and stop it"
    if url.drivername == "postgresql+psycopg" and "lock timeout" in cause:
        return f"PostgreSQL at {shown} cannot be used ({cause}): {busy}"
    if url.drivername == "postgresql+psycopg":
        return (
            f"PostgreSQL at {shown} cannot be used: {cause}. Start it, or correct store.database "
            "(TIERGATE_DATABASE_URL): host, port, user, password and database name"
        )
    path = url.database
    for sign, advice in {
        "not a database": "it is damaged or no database: restore a backup, or move it away and start again",
        "malformed": "it is damaged: restore a backup, or move it away and start again",
        "unable to open": "make its directory, and let this user write there",
        "readonly": "let this user write the file and its directory",
        "locked": busy,
        "is full": "make room on its disk",
    }.items():
        if sign in cause:
            return f"the database file {path} cannot be used ({cause}): {advice}"
    return f"the database file {path} cannot be used ({cause}): look at its disk, owner and mode"
