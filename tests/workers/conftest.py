from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
import redis

from service.decision.policy import Gate, OnHarm
from service.decision.ramp import AT_ONCE, Promotion
from service.fleet import Backend, Ladder, Limits, Tier
from service.store.captures import Captures
from service.store.database import Database, open_database
from service.store.standing import Question
from tests.conftest import ValkeyServer
from tests.workers import guarding
from tests.workers.scripted import Reply, Script, ScriptedBackend
from tests.workers.walk import BenchMaker
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
def up(backend: Callable[[Script], ScriptedBackend]) -> str:
    """URL of a backend that is healthy."""
    return backend(lambda asked: Reply(text="ok")).url


@pytest.fixture
def guard_of(database: Database, redis_client: redis.Redis) -> Callable[..., Guard]:
    """A guard over a ladder of bf16, w8a8 and w4a16 at these addresses, on either database."""

    def make(
        *urls: str,
        on_harm: OnHarm = OnHarm.ROLL_BACK,
        margin: float = 0.2,
        gates: tuple[Gate, ...] = (),
        promotion: Promotion = AT_ONCE,
        rooms: tuple[int | None, ...] = (None, None, None),
        limits: Limits = Limits(),
        epoch_of: Callable[[str, str], str] = guarding.epoch_of,
    ) -> Guard:
        names = ("bf16", "w8a8", "w4a16")
        tiers = tuple(
            Tier(name=name, model=name, backends=(Backend(url=url, max_concurrency=room),))
            for name, url, room in zip(names, urls, rooms, strict=True)
        )
        return Guard(
            ladders={"m": Ladder(model="m", tiers=tiers, limits=limits)},
            question=Question(policy=guarding.policy(on_harm, margin=margin, gates=gates), epoch_of=epoch_of),
            db=database,
            captures=Captures(redis_client),
            promotion=promotion,
        )

    return make
