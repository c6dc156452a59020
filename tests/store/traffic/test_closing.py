"""Conversations count once, when they are closed, and never again."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select

from service.decision.tally import Tally, Triple
from service.decision.unscored import lost
from service.store.redis.capture import capture_id
from service.store.scored.breakdown import read_strata
from service.store.scored.evidence import read_tallies
from service.store.scored.leases import lease
from service.store.scored.pairs import claim, record
from service.store.scored.recount import recount
from service.store.sql.schema import claims
from service.store.traffic.closing import close_idle, is_closed

IDLE = 1800.0


@pytest.fixture
def taken(database, unit_of):
    """Record a turn of a conversation that was taken up at some time."""

    def put(number, judged, at, conversation="talk", evaluator="structured_output", **changes):
        name = capture_id("p", number, "m")
        lease(database, [name], owner="w", now=at)
        changes = {"counted": False, "waits": True, "digest": f"d{number}", **changes}
        unit = unit_of(name, judged, conversation=conversation, evaluator=evaluator, **changes)
        return record(database, capture_id=name, owner="w", units=[unit], at=at + 5)

    return put


@pytest.fixture
def shown(database):
    def read(evaluator="structured_output", **changes):
        place = {"model": "m", "tier": "w8a8", "arm": "candidate", "epoch": "e1", **changes}
        return read_tallies(database, **place).get(evaluator, Tally())

    return read


def close(database, now):
    return close_idle(database, "m", idle_seconds=IDLE, now=now)


def test_an_open_conversation_is_shown_and_counts_when_it_was_idle_long_enough(database, taken, shown):
    taken(1, "pp", at=0.0)
    taken(2, ["pf", "ff"], at=100.0)
    assert (shown().n, shown().not_counted) == (0, 3)
    assert close(database, 100.0 + IDLE - 1) == 0
    assert close(database, 100.0 + IDLE) == 1
    assert shown() == Tally(units={Triple(3, 1, 0): 1}, both_failed=1)
    assert close(database, 10_000.0) == 0
    assert recount(database).equal


def test_what_comes_after_the_end_is_late_and_changes_nothing_that_counts(database, taken, shown):
    taken(1, "pp", at=0.0)
    assert not is_closed(database, "talk")
    close(database, IDLE)
    assert is_closed(database, "talk")
    taken(2, ["pf", "u", "n"], at=IDLE + 1)
    assert shown() == Tally(units={Triple(1, 0, 0): 1}, unscored={"late": 2})
    close(database, 1e6)
    assert shown().n == 1
    assert recount(database).equal


def test_what_failed_after_the_end_is_late_and_no_lost_score(database, taken, shown):
    """Else the late that failed would count as missing, and the late that did not would not count as due."""
    taken(1, "pp", at=0.0)
    assert close(database, IDLE) == 1
    taken(2, ["u", "pp", "n"], at=IDLE + 1)
    assert shown().unscored == {"late": 2}
    assert lost(shown()) == 0
    assert recount(database).equal


def test_what_was_late_leaves_its_request_to_another_conversation(database, taken, shown):
    taken(1, "pp", at=0.0)
    close(database, IDLE)
    taken(2, "pf", at=IDLE + 1, digest="asked again")
    with database.read() as connection:
        assert len(connection.execute(select(claims)).all()) == 1
    taken(3, "pf", at=IDLE + 2, digest="asked again", conversation="another")
    close(database, 1e6)
    assert (shown().n, shown().harm) == (2, 1)


def test_the_same_request_counts_once_also_within_a_conversation(database, taken, shown):
    taken(1, "pf", at=0.0, digest="same")
    taken(2, "pf", at=1.0, digest="same")
    taken(3, "pf", at=2.0, digest="same", conversation="another")
    close(database, 1e6)
    assert (shown().n, shown().conversations, shown().not_counted) == (1, 1, 2)
    assert recount(database).equal


def test_conversations_count_by_evaluator_tier_and_epoch(database, unit_of, shown):
    name = capture_id("p", 1, "m")
    changes = {"conversation": "talk", "counted": False, "waits": True}
    units = [
        unit_of(name, "pf", **changes),
        unit_of(name, ["pp", "pp"], evaluator="long_context_recall", **changes),
        unit_of(name, "pp", tier="w4a16", **changes),
        unit_of(name, "pp", arm="control", tier="bf16", **changes),
        unit_of(name, "u", evaluator="refusal", **changes),
    ]
    record(database, capture_id=name, owner="w", units=units, at=0.0)
    assert close(database, 1e6) == 1
    assert shown().units == {Triple(1, 1, 0): 1}
    assert shown("long_context_recall").units == {Triple(2, 0, 0): 1}
    assert shown(tier="w4a16").units == shown(arm="control", tier="bf16").units == {Triple(1, 0, 0): 1}
    assert shown("refusal") == Tally(unscored={"shadow": 1})
    assert recount(database).equal


def test_a_conversation_counts_in_a_stratum_with_its_turns_there(database, taken):
    taken(1, "pp", at=0.0, marginals=("turns=1",))
    taken(2, ["pf", "pp"], at=1.0, marginals=("turns=2-5",))
    close(database, 1e6)
    found = {each.stratum: each.sums for each in read_strata(database, "m", "w8a8", "e1")}
    assert {name: (s.units, s.pairs, s.harm, s.not_counted) for name, s in found.items()} == {
        "short": (1, 3, 1, 0),
        "turns=1": (1, 1, 0, 0),
        "turns=2-5": (1, 2, 1, 0),
    }


def test_time_stands_still_at_the_oldest_capture_that_is_still_replayed(database, taken, shown):
    """Else the conversations whose answers are quick, and so mostly right, would close first."""
    taken(1, "pp", at=0.0, conversation="before")
    lease(database, [capture_id("p", 9, "m")], owner="slow", now=1000.0)
    taken(2, "pp", at=1001.0, conversation="after")
    assert close(database, 1e6) == 0  # at 1000 nothing has been idle for so long
    lease(database, [capture_id("p", 9, "m")], owner="next", now=2000.0)
    assert close(database, 1e6) == 0
    taken(9, "pf", at=3000.0, conversation="slow")
    assert close(database, 1000.0 + IDLE) == 2  # `slow` keeps the time at which it was first taken
    assert shown().harm == 1
    assert close(database, 1001.0 + IDLE) == 1


def test_an_idle_conversation_closes_though_a_later_capture_is_replayed(database, taken, shown):
    taken(1, "pp", at=0.0)
    lease(database, [capture_id("p", 9, "m")], owner="slow", now=IDLE + 1)
    assert close(database, 1e6) == 1
    assert shown().n == 1  # due before what is replayed was taken


def test_another_models_conversations_are_left_alone(database, taken):
    taken(1, "pp", at=0.0)
    assert close_idle(database, "other", idle_seconds=IDLE, now=1e6) == 0


def test_many_conversations_close_in_one_go(database, unit_of, shown):
    for number in range(120):
        name = capture_id("p", number, "m")
        unit = unit_of(name, "pp", conversation=f"talk {number}", counted=False, waits=True)
        record(database, capture_id=name, owner="w", units=[unit], at=float(number))
    assert close(database, 1e6) == 120
    assert shown().units == {Triple(1, 0, 0): 120}
    assert recount(database).equal


def test_without_time_for_all_those_close_that_were_due_first(database, unit_of, shown):
    for number in range(120):
        name = capture_id("p", number, "m")
        judged = "pf" if number < 20 else "pp"
        unit = unit_of(name, judged, conversation=f"talk {number}", counted=False, waits=True)
        record(database, capture_id=name, owner="w", units=[unit], at=120.0 - number)
    assert close_idle(database, "m", idle_seconds=IDLE, now=1e6, more=lambda: False) == 100
    assert shown().units == {Triple(1, 0, 0): 100}
    assert close(database, 1e6) == 20
    assert shown().units == {Triple(1, 0, 0): 100, Triple(1, 1, 0): 20}


def test_two_who_close_at_once_count_each_conversation_once(database, unit_of, shown):
    for number in range(30):
        name = capture_id("p", number, "m")
        unit = unit_of(name, "pf", conversation=f"talk {number % 10}", counted=False, waits=True)
        record(database, capture_id=name, owner="w", units=[unit], at=0.0)
    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(lambda _: close(database, 1e6), range(4))) == 10
    assert shown().units == {Triple(3, 3, 0): 10}
    assert recount(database).equal


def test_who_closes_and_who_records_at_once_agree_on_what_is_late(database, unit_of, shown):
    """Every turn either counts with its conversation or is late; none is lost, none counts twice."""
    turns = 20
    for number in range(turns):
        name = capture_id("first", number, "m")
        unit = unit_of(name, "pp", conversation=f"talk {number}", counted=False, waits=True)
        record(database, capture_id=name, owner="w", units=[unit], at=0.0)
    start = threading.Barrier(2)

    def record_more():
        start.wait()
        for number in reversed(range(turns)):
            name = capture_id("second", number, "m")
            unit = unit_of(name, "pf", conversation=f"talk {number}", counted=False, waits=True)
            record(database, capture_id=name, owner="w", units=[unit], at=1.0)

    def close_all():
        start.wait()
        return sum(close(database, IDLE + 0.5) for _ in range(3))

    with ThreadPoolExecutor(2) as pool:
        recording, closing = pool.submit(record_more), pool.submit(close_all)
        recording.result()
        early = closing.result()
    assert early + close(database, 1e6) == turns
    found = shown()
    assert found.conversations == turns
    assert found.units.get(Triple(1, 0, 0), 0) == found.unscored.get("late", 0)
    assert found.n + found.unscored.get("late", 0) == 2 * turns
    assert recount(database).equal


def test_a_claim_for_a_request_alone_leaves_its_conversation_to_the_others(database, unit_of):
    unit = unit_of("c1", "pp", conversation="talk", digest="d", counted=False, waits=True)
    other = unit_of("c2", "pp", conversation="talk", digest="e", counted=False, waits=True)
    assert claim(database, [unit.claim], capture_id="c1") == {unit.claim}
    assert claim(database, [other.claim], capture_id="c2") == {other.claim}
    assert claim(database, [other.claim], capture_id="c3") == set()
