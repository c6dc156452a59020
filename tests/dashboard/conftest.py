"""The house, filled once a session and copied for each test; and what `tests.approval` opens."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from service.store.captures import Captures, open_captures
from service.store.database import Database, open_database
from tests.approval.conftest import captures, sqlite_database
from tests.approval.live import LiveApi
from tests.conftest import ValkeyServer
from tests.dashboard.house import House, furnish, house_api

__all__ = ["captures", "sqlite_database"]


@pytest.fixture(scope="session")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, House]:
    """A file with everything in it, closed, and the names of what is in it."""
    path = tmp_path_factory.mktemp("house") / "tiergate.db"
    database = open_database(f"sqlite:///{path}")
    try:
        house = furnish(database)
    finally:
        database.close()
    return path, house


def copy_of(filled: Path, path: Path) -> Path:
    """The house's file and what SQLite keeps beside it, elsewhere."""
    for ending in ("", "-wal", "-shm"):
        if (there := Path(f"{filled}{ending}")).exists():
            shutil.copy(there, f"{path}{ending}")
    return path


@pytest.fixture(scope="module")
def seen_site(
    furnished: tuple[Path, House], tmp_path_factory: pytest.TempPathFactory, valkey_server: ValkeyServer
) -> Iterator[LiveApi]:
    """The house's API and pages, one for all tests of a module that change nothing, its clock neither."""
    path = copy_of(furnished[0], tmp_path_factory.mktemp("seen") / "house.db")
    with (
        closing(open_database(f"sqlite:///{path}")) as database,
        closing(open_captures(valkey_server.url, timeout=2)) as captures,
        house_api(database, captures) as api,
    ):
        yield api


@pytest.fixture
def house(furnished: tuple[Path, House]) -> House:
    """Names of what is in `house_database`."""
    return furnished[1]


@pytest.fixture
def house_database(furnished: tuple[Path, House], tmp_path: Path) -> Iterator[Database]:
    """A copy that the test may change."""
    database = open_database(f"sqlite:///{copy_of(furnished[0], tmp_path / 'house.db')}")
    yield database
    database.close()


@pytest.fixture
def house_site(house_database: Database, captures: Captures) -> Iterator[LiveApi]:
    """The house's API and pages on a real server, for a test that changes something."""
    with house_api(house_database, captures) as api:
        yield api
