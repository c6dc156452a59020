"""The guard closes idle conversations, and only these."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from service.decision.policy import Criterion, Policy, Units
from service.store.redis.capture import capture_id
from service.store.scored.evidence import read_tallies
from service.store.scored.leases import lease
from service.store.scored.pairs import record
from service.store.scored.units import PairRow, Unit
from service.store.sql.database import Database
from workers.closer import Closer, close_conversations

POLICY = Policy(
    criteria=(Criterion(evaluator="refusal"),), units=Units.CLOSED_CONVERSATIONS, idle_seconds=100.0
)
TTL = 1000.0


def closer(database: Database, *, waiting: Callable[[], int] = lambda: 0, policy: Policy = POLICY) -> Closer:
    return Closer(db=database, models=("m", "other"), policy=policy, queued=waiting, ttl_seconds=TTL)


@pytest.fixture
def talk(database: Database) -> Callable[..., None]:
    """One turn of a conversation, taken up at some time."""

    def put(number: int, at: float, model: str = "m", conversation: str = "") -> None:
        name = capture_id("p", number, model)
        lease(database, [name], owner="w", now=at)
        unit = Unit(
            capture_id=name,
            model=model,
            tier="w8a8",
            arm="candidate",
            evaluator="refusal",
            version="1",
            epoch="e",
            conversation=conversation or f"talk {model}",
            stratum="short",
            tenant="",
            digest=name,
            counted=False,
            waits=True,
            rows=(PairRow(outcome="scored", baseline_passed=True, candidate_passed=True),),
            at=at,
        )
        record(database, capture_id=name, owner="w", units=[unit], at=at)

    return put


def counted(database: Database, model: str = "m") -> int:
    return sum(
        tally.n
        for tally in read_tallies(database, model=model, tier="w8a8", arm="candidate", epoch="e").values()
    )


def test_conversations_of_every_model_close_when_they_were_idle(
    database: Database, talk: Callable[..., None]
) -> None:
    talk(1, at=0.0)
    talk(2, at=50.0)
    talk(3, at=60.0, model="other")
    guard = closer(database)
    assert close_conversations(guard, now=149.0) == 0
    assert close_conversations(guard, now=150.0) == 1
    assert close_conversations(guard, now=160.0) == 1
    assert (counted(database), counted(database, "other")) == (2, 1)


def test_nothing_is_closed_where_the_first_request_counts_at_once(
    database: Database, talk: Callable[..., None]
) -> None:
    talk(1, at=0.0)
    policy = dataclasses.replace(POLICY, units=Units.FIRST_SAMPLED)
    assert close_conversations(closer(database, policy=policy), now=1e9) == 0
    assert counted(database) == 0


def test_while_requests_wait_for_a_worker_a_conversation_that_looks_idle_stays_open(
    database: Database, talk: Callable[..., None]
) -> None:
    """After workers were away, its next request may be in the queue."""
    talk(1, at=0.0)
    waiting = [0]
    guard = closer(database, waiting=lambda: waiting[0])
    assert close_conversations(guard, now=99.0) == 0
    waiting[0] = 5
    assert close_conversations(guard, now=500.0) == 0
    talk(2, at=501.0)  # it was
    waiting[0] = 0
    assert close_conversations(guard, now=550.0) == 0
    assert close_conversations(guard, now=601.0) == 1
    assert counted(database) == 2


def test_a_clock_that_is_set_back_closes_nothing_of_which_something_may_wait(
    database: Database, talk: Callable[..., None]
) -> None:
    waiting = [0]
    guard = closer(database, waiting=lambda: waiting[0])
    assert close_conversations(guard, now=5000.0) == 0
    talk(1, at=2000.0)  # the clock was set back
    waiting[0] = 5
    assert close_conversations(guard, now=2150.0) == 0
    waiting[0] = 0
    assert close_conversations(guard, now=2160.0) == 1


def test_what_could_still_wait_has_expired_in_the_end(database: Database, talk: Callable[..., None]) -> None:
    talk(1, at=0.0)
    guard = closer(database, waiting=lambda: 5)
    assert close_conversations(guard, now=TTL + 99.0) == 0
    assert close_conversations(guard, now=TTL + 100.0) == 1


def test_a_run_that_has_no_time_left_leaves_the_rest_to_the_next(
    database: Database, talk: Callable[..., None]
) -> None:
    """Whatever a backlog leaves to close, what harms clients is looked for in between."""
    for number in range(101):
        talk(number, at=0.0, conversation=f"talk {number}")
    guard = dataclasses.replace(closer(database), begin=lambda: lambda: False)
    assert [close_conversations(guard, now=150.0) for _ in range(3)] == [100, 1, 0]
    assert counted(database) == 101


def test_a_guard_that_was_started_anew_waits_rather_than_close_early(
    database: Database, talk: Callable[..., None]
) -> None:
    talk(1, at=0.0)
    close_conversations(closer(database), now=50.0)
    assert close_conversations(closer(database, waiting=lambda: 1), now=500.0) == 0
