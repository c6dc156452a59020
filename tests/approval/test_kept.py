"""A standing is read anew whenever anything was committed, and shared by all who ask while nothing was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event, Lock, Semaphore
from uuid import uuid4

import pytest

from service.approval.kept import PATIENCE_SECONDS, SECONDS, Kept
from service.store.access import tokens
from service.store.sql.database import Database, open_database
from tests.approval.live import MODEL, Clock, LiveApi
from tests.patience import PATIENCE

VERDICT = f"/api/v1/models/{MODEL}/tiers/w8a8/verdict"


@pytest.fixture
def db(sqlite_url: str) -> Iterator[Database]:
    opened = open_database(sqlite_url)
    yield opened
    opened.close()


@dataclass
class Counted:
    """What is computed: how often it was."""

    times: int = 0
    _lock: Lock = field(default_factory=Lock)

    def __call__(self, now: float) -> int:
        with self._lock:
            self.times += 1
            return self.times


def asking(db: Database, clock: Clock, compute: Callable[[float], int]) -> Callable[[], int]:
    kept: Kept[str, int] = Kept()
    return lambda: kept.get("m", db, clock, compute)


def commit(db: Database) -> None:
    tokens.create(db, name=uuid4().hex, scopes=["read"], now=0.0)


def test_it_is_computed_once_while_nothing_is_committed_and_anew_after_every_commit(db: Database) -> None:
    computed = Counted()
    ask = asking(db, Clock(), computed)
    assert [ask(), ask(), ask()] == [1, 1, 1]
    commit(db)
    assert [ask(), ask()] == [2, 2]


def test_what_is_committed_while_it_is_computed_is_seen_by_the_next(db: Database) -> None:
    def compute(now: float) -> int:
        commit(db)
        return computed(now)

    computed = Counted()
    ask = asking(db, Clock(), compute)
    assert [ask(), ask()] == [1, 2]


@pytest.mark.parametrize("moved", [SECONDS, 3600.0, -0.001])
def test_the_clock_alone_makes_it_old(db: Database, moved: float) -> None:
    clock = Clock()
    ask = asking(db, clock, Counted())
    assert ask() == 1
    clock.at += moved
    assert ask() == 2


def test_within_one_moment_nothing_is_kept_and_nothing_kept_is_given(db: Database) -> None:
    ask = asking(db, Clock(), Counted())
    assert ask() == 1
    with db.one_moment():
        assert [ask(), ask()] == [2, 3]
    assert ask() == 1


def test_what_could_not_be_computed_is_tried_again_by_the_next(db: Database) -> None:
    computed = Counted()

    def compute(now: float) -> int:
        if computed(now) == 1:
            raise RuntimeError
        return 7

    ask = asking(db, Clock(), compute)
    with pytest.raises(RuntimeError):
        ask()
    assert ask() == 7


def test_those_who_ask_at_once_share_one_computation_and_wait_for_it_in_turn(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.approval.kept.PATIENCE_SECONDS", PATIENCE)
    begun, go_on, computed = Event(), Event(), Counted()
    asked = Semaphore(0)

    def compute(now: float) -> int:
        begun.set()
        assert go_on.wait(PATIENCE)
        return computed(now)

    def ask_too() -> int:
        asked.release()
        return ask()

    ask = asking(db, Clock(), compute)
    with ThreadPoolExecutor(5) as threads:
        asks = [threads.submit(ask)]
        assert begun.wait(PATIENCE)
        asks += [threads.submit(ask_too) for _ in range(4)]
        for _ in range(4):
            assert asked.acquire(timeout=PATIENCE)
        go_on.set()
        assert {each.result() for each in asks} == {1}


def test_one_that_hangs_holds_up_nobody_else_for_good(db: Database) -> None:
    begun, go_on, computed = Event(), Event(), Counted()

    def compute(now: float) -> int:
        mine = computed(now)
        if mine == 1:
            begun.set()
            assert go_on.wait(PATIENCE)
        return mine

    ask = asking(db, Clock(), compute)
    with ThreadPoolExecutor(1) as first:
        one = first.submit(ask)
        assert begun.wait(PATIENCE)
        assert ask() == 2, f"after {PATIENCE_SECONDS} s"
        go_on.set()
        assert one.result() == 1


def test_a_verdict_is_computed_again_after_each_pair_and_says_when(sqlite_api: LiveApi) -> None:
    api, client = sqlite_api, sqlite_api.client()

    def asked() -> tuple[str, str, int]:
        answer = client.get(VERDICT)
        found = answer.json()
        return answer.headers["etag"], found["evaluated_at"], found["findings"][0]["n"]

    first = asked()
    api.clock.at += SECONDS / 2
    assert asked() == first
    api.clock.at += SECONDS
    tag, at, _ = asked()
    assert tag == first[0]
    assert at != first[1], "the clock alone moved"
    for number in range(1, 4):
        api.record("w8a8", clean=1, stratum=f"{number}")
        assert asked()[2] == number


def test_every_answer_made_of_one_standing_is_of_its_time(sqlite_api: LiveApi) -> None:
    api, client = sqlite_api, sqlite_api.client()
    api.clock.at += 0.5
    first = client.get(VERDICT).json()["evaluated_at"]
    api.clock.at += SECONDS - 0.1
    for later in (VERDICT.replace("w8a8", "w4a16"), f"{VERDICT}/why"):
        assert client.get(later).json()["evaluated_at"] == first


def test_a_database_that_goes_away_is_told_though_a_verdict_is_kept(
    sqlite_api: LiveApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = sqlite_api.client()
    assert client.get(VERDICT).status_code == 200
    monkeypatch.setattr("service.store.sql.data_version._SQLITE", "PRAGMA data_version(")
    assert client.get(VERDICT).status_code == 503
