"""Whether anything in a database has changed, told without reading what is in it."""

from __future__ import annotations

import sqlite3
from threading import Lock
from uuid import uuid4

from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import PoolProxiedConnection

_SQLITE = "PRAGMA data_version"
_POSTGRESQL = "SELECT pg_current_snapshot()"
_PATIENCE_SECONDS = 0.5
"""For which one waits for another that asks on the connection there is."""


class DataVersion:
    """Of the database behind an engine. Two equal names, and nothing was committed between them.

    SQLite's `PRAGMA data_version` moves with every commit of another connection than the one that asks, so
    one is kept for it that does nothing else (sqlite.org/pragma.html). In PostgreSQL it is the snapshot that
    a statement gets: whoever wrote and committed between two of them was in progress in the first or had yet
    to begin, and the second tells (`pg_current_snapshot`, PostgreSQL documentation 9.28). Transactions of
    other databases of the cluster move it as well: then it changed for nothing, which does no harm.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = Lock()
        self._asking: PoolProxiedConnection | None = None
        self._asked = 0
        """Connections so far: each counts from a number of its own."""

    def read(self) -> str:
        """The name of what is stored now; SQLAlchemy's errors.

        While another's question hangs, a name that nothing else has: nobody waits for that in turn.
        """
        if self._engine.dialect.name != "sqlite":
            with self._engine.connect() as connection:
                return str(connection.exec_driver_sql(_POSTGRESQL).scalar_one())
        if not self._lock.acquire(timeout=_PATIENCE_SECONDS):
            return f"untold {uuid4().hex}"
        try:
            count = self._count()
            return f"{self._asked}/{count}"
        except sqlite3.Error as error:
            self._let_go()
            raise OperationalError(_SQLITE, None, error) from error
        finally:
            self._lock.release()

    def close(self) -> None:
        """Let go of the connection; `read` would make another."""
        with self._lock:
            self._let_go()

    def _count(self) -> int:
        if self._asking is None:
            self._asking = self._engine.raw_connection()
            self._asking.detach()
            self._asked += 1
        cursor = self._asking.cursor()
        try:
            cursor.execute(_SQLITE)
            rows = cursor.fetchall()
        finally:
            cursor.close()
        return int(rows[0][0])

    def _let_go(self) -> None:
        if self._asking is not None:
            self._asking.close()
            self._asking = None
