"""`api` runs on SQLite and on PostgreSQL with a real Valkey; `sqlite_api` on SQLite alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from service.approval.failures import WINDOW_SECONDS
from service.store.redis.captures import Captures, open_captures
from service.store.sql.database import Database, open_database
from tests.approval.live import LiveApi, live_api
from tests.conftest import ValkeyServer


@pytest.fixture
def captures(valkey: ValkeyServer) -> Iterator[Captures]:
    """The synchronous side of the session's Valkey, which is empty."""
    opened = open_captures(valkey.url, timeout=2)
    yield opened
    opened.close()


@pytest.fixture
def api(database: Database, captures: Captures) -> Iterator[LiveApi]:
    """An API over each kind of database, with a wide policy that asks for quality alone."""
    with live_api(database, captures) as running:
        yield running


@pytest.fixture
def sqlite_database(sqlite_url: str) -> Iterator[Database]:
    opened = open_database(sqlite_url)
    yield opened
    opened.close()


@pytest.fixture
def sqlite_api(sqlite_database: Database, captures: Captures) -> Iterator[LiveApi]:
    """The same over SQLite, for what does not depend on the database."""
    with live_api(sqlite_database, captures) as running:
        yield running


@pytest.fixture(scope="module")
def shared_api(tmp_path_factory: pytest.TempPathFactory, valkey_server: ValkeyServer) -> Iterator[LiveApi]:
    """One for a whole module, for requests that change nothing; w8a8 could be approved."""
    database = open_database(f"sqlite:///{tmp_path_factory.mktemp('api') / 'tiergate.db'}")
    captures = open_captures(valkey_server.url, timeout=2)
    try:
        with live_api(database, captures) as running:
            running.accept("w8a8")
            yield running
    finally:
        captures.close()
        database.close()


@pytest.fixture(autouse=True)
def a_minute_later(request: pytest.FixtureRequest) -> None:
    """Wrong tokens of one test do not count against the next of its module."""
    if "shared_api" in request.fixturenames:
        request.getfixturevalue("shared_api").clock.at += WINDOW_SECONDS
