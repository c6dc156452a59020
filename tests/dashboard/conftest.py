"""The house, filled once a run and copied for each test; and what `tests.approval` opens."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import pytest

from service.store.redis.captures import Captures, open_captures
from service.store.sql.database import Database, open_database
from tests.approval.conftest import captures, sqlite_database
from tests.approval.live import LiveApi
from tests.conftest import ValkeyServer
from tests.dashboard.house import House, furnish, house_api

__all__ = ["captures", "sqlite_database"]


@pytest.fixture(scope="session")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, House]:
    """A file with everything in it, closed, and the names of what is in it.

    It takes seconds of work: of pytest's workers the first that needs it makes it, the others wait for it.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = tmp_path_factory.getbasetemp().parent / "house"
        folder.mkdir(exist_ok=True)
    else:
        folder = tmp_path_factory.mktemp("house")
    path, names = folder / "tiergate.db", folder / "names.json"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not names.exists():
            with closing(open_database(f"sqlite:///{path}")) as database:
                made = furnish(database)
            names.write_text(json.dumps(asdict(made)), encoding="utf-8")
    told = json.loads(names.read_text(encoding="utf-8"))
    return path, House(**{**told, "items": tuple(told["items"])})


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
