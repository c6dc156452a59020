from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
import redis

from service.settings import Settings
from service.store.sql.database import Database, open_database
from tests.conftest import ValkeyServer
from tests.workers import guarding
from tests.workers.load_walk import Engines
from tests.workers.scripted import Reply, Script, ScriptedBackend
from tests.workers.walk import BenchMaker
from workers.load_room import open_load_room
from workers.shadow_job import LoadRoom
from workers.watching import Guard


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


@pytest.fixture
def engines() -> Iterator[Engines]:
    """Starts servers of declared speed, and ends them."""
    with ExitStack() as stack:
        yield Engines(stack=stack)


@pytest.fixture
def room_of() -> Iterator[Callable[..., LoadRoom]]:
    """Opens what a load worker's child works with, but for what it is given, and closes it."""
    with ExitStack() as stack:

        def make(settings: Settings, **more: Any) -> LoadRoom:
            stopping = more.pop("stopping", lambda: False)
            made = open_load_room(settings, worker="load@test", stopping=stopping, lease_seconds=60.0)
            stack.callback(made.close)
            return replace(made, **more)

        yield make


@pytest.fixture
def up(backend: Callable[[Script], ScriptedBackend]) -> str:
    """URL of a backend that is healthy."""
    return backend(lambda asked: Reply(text="ok")).url


@pytest.fixture
def guard_of(database: Database, redis_client: redis.Redis) -> Callable[..., Guard]:
    """A guard over a ladder of bf16, w8a8 and w4a16 at the addresses it is given, on either database."""
    return functools.partial(guarding.guard_over, database, redis_client)


@pytest.fixture
def sqlite_guard_of(db: Database, redis_client: redis.Redis) -> Callable[..., Guard]:
    """The same on SQLite alone, for what takes much evidence."""
    return functools.partial(guarding.guard_over, db, redis_client)
