from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from service.store.database import Database, open_database
from tests.conftest import ValkeyServer
from tests.workers.scripted import Script, ScriptedBackend
from tests.workers.walk import BenchMaker


@pytest.fixture
def db(sqlite_url: str) -> Iterator[Database]:
    opened = open_database(sqlite_url)
    yield opened
    opened.close()


@pytest.fixture
def bench_of(valkey: ValkeyServer, db: Database) -> Iterator[BenchMaker]:
    """Makes the bench of a worker child for the tiers it is given."""
    maker = BenchMaker(redis_url=valkey.url, db=db)
    yield maker
    maker.close()


@pytest.fixture
def backend() -> Iterator[Callable[[Script], ScriptedBackend]]:
    """Starts real HTTP backends that answer by script, and stops them."""
    with ExitStack() as stack:
        yield lambda script: stack.enter_context(ScriptedBackend(script))
