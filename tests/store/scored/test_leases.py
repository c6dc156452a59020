"""Leases: one holder at a time, taken over when it dies, settled once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from service.store.redis.capture import capture_id
from service.store.scored.leases import expire, heartbeat, held, lease, lose, release, run_out, settled
from service.store.scored.pairs import record


def test_who_comes_first_holds_and_the_second_gets_nothing(database):
    assert lease(database, ["b", "a"], owner="one", now=100) == ["b", "a"]
    assert lease(database, ["a", "b", "c"], owner="two", now=150) == ["c"]
    assert lease(database, [], owner="two", now=150) == []


def test_a_message_delivered_twice_to_one_worker_is_leased_once(database):
    assert lease(database, ["a", "a"], owner="one", now=100) == ["a"]
    assert lease(database, ["a"], owner="one", now=101) == []


def test_a_lease_that_ran_out_is_taken_over_and_its_holder_notices(database):
    lease(database, ["a", "b"], owner="one", now=100, seconds=120)
    assert run_out(database, 219.9) == []
    assert run_out(database, 220.0) == ["a", "b"]
    assert lease(database, ["a"], owner="two", now=220) == ["a"]
    assert heartbeat(database, ["a", "b"], owner="one", now=221) == ["b"]
    assert run_out(database, 340.5) == ["a"]
    assert run_out(database, 341.0, limit=1) == ["a"]


def test_a_heartbeat_extends_a_lease(database):
    lease(database, ["a"], owner="one", now=100, seconds=120)
    assert heartbeat(database, ["a"], owner="one", now=200, seconds=120) == ["a"]
    assert lease(database, ["a"], owner="two", now=300) == []
    assert held(database, ["a", "x"], 300) == {"a"}
    assert held(database, ["a"], 320) == set()


def test_a_released_capture_is_free_at_once_and_only_its_holder_can_release_it(database):
    lease(database, ["a"], owner="one", now=100)
    release(database, ["a"], owner="two")
    assert lease(database, ["a"], owner="two", now=101) == []
    release(database, ["a"], owner="one")
    assert lease(database, ["a"], owner="two", now=101) == ["a"]


def test_a_settled_capture_is_never_leased_again(database):
    lease(database, ["a", "b", "c", "d"], owner="one", now=100)
    assert record(database, capture_id="a", owner="one", units=[], at=101)
    assert expire(database, ["b", "never leased"], at=101) == 2
    assert lose(database, ["c"], at=101) == 1
    assert lease(database, ["a", "b", "c", "d", "never leased"], owner="two", now=1e9) == ["d"]
    assert settled(database, ["a", "b", "c", "d", "e", "never leased"]) == {"a", "b", "c", "never leased"}
    assert run_out(database, 1e12) == ["d"]


def test_a_capture_is_settled_once(database):
    assert expire(database, ["a"], at=1) == 1
    assert expire(database, ["a"], at=2) == 0
    assert lose(database, ["a"], at=2) == 0
    assert not record(database, capture_id="a", owner="one", units=[], at=3)
    assert heartbeat(database, ["a"], owner="one", now=4) == []


def test_eight_workers_at_once_share_captures_without_overlap(database):
    ids = [capture_id("i", number, "m") for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        shares = list(pool.map(lambda number: lease(database, ids, owner=f"w{number}", now=1), range(8)))
    assert sorted(each for share in shares for each in share) == sorted(ids)


def test_more_ids_than_one_statement_takes(database):
    ids = [f"c{number}" for number in range(1203)]
    assert lease(database, ids, owner="one", now=1) == ids
    assert heartbeat(database, ids, owner="one", now=2) == ids
    assert expire(database, ids, at=3) == 1203
    assert settled(database, ids) == set(ids)


def test_holders_and_takers_of_the_same_captures_never_block_each_other_for_good(database):
    ids = [f"c{number:03}" for number in range(100)]
    lease(database, ids[::-1], owner="w0", now=1)

    def work(number):
        for _ in range(6):
            assert lease(database, ids[:: (-1) ** number], owner=f"w{number}", now=2) == []
            heartbeat(database, ids[:: (-1) ** (number + 1)], owner="w0", now=2)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert heartbeat(database, ids, owner="w0", now=3) == ids
