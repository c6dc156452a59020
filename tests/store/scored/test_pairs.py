"""Recording: once per capture however often it is delivered, and once per conversation and request."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import func, select

from service.store.scored.evidence import read_tallies, recent_pairs
from service.store.scored.leases import lease, settled
from service.store.scored.pairs import Claim, claim, record
from service.store.scored.recount import recount
from service.store.sql.schema import captures, claims, pair_ledger, pairs, units
from service.store.sql.tally_tables import tallies
from tests.leash import Leashed


@pytest.fixture
def tally(database):
    def read(evaluator="structured_output", **changes):
        place = {"model": "m", "tier": "w8a8", "arm": "candidate", "epoch": "e1", **changes}
        return read_tallies(database, **place).get(evaluator)

    return read


def put(database, *of_capture, capture_id=None, **options):
    name = capture_id or of_capture[0].capture_id
    return record(database, capture_id=name, owner="w", units=of_capture, at=1.0, **options)


def rows_of(database):
    with database.read() as connection:
        return {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in (captures, units, pairs, claims, tallies, pair_ledger)
        }


def test_a_recorded_capture_is_in_the_tallies_and_settled(database, unit_of, tally):
    assert put(database, unit_of("c1", "pf"))
    assert put(database, unit_of("c2", "fp"))
    assert put(database, unit_of("c3", "pp"))
    found = tally()
    assert (found.n, found.harm, found.benefit, found.conversations) == (3, 1, 1, 3)
    assert settled(database, ["c1", "c2", "c3", "c4"]) == {"c1", "c2", "c3"}


def test_a_capture_delivered_again_changes_nothing(database, unit_of):
    assert put(database, unit_of("c1", "pf"))
    before = rows_of(database)
    assert not put(database, unit_of("c1", "pf"))
    assert not put(database, unit_of("c1", "pp", tier="another"))
    assert rows_of(database) == before
    assert recount(database).equal


def test_eight_workers_recording_one_capture_at_once_count_it_once(database, unit_of, tally):
    # Every tier, arm and evaluator, so that they would meet in many rows.
    everything = [
        unit_of("c1", "pf", tier=tier, arm=arm, evaluator=evaluator)
        for tier, arm in (("w8a8", "candidate"), ("w4a16", "candidate"), ("bf16", "control"))
        for evaluator in ("structured_output", "refusal")
    ]
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda number: put(database, *everything[:: (-1) ** number]), range(8)))
    assert sorted(done) == [False] * 7 + [True]
    assert tally().n == 1
    assert recount(database).equal


def test_eight_workers_recording_different_captures_at_once_lose_none(database, unit_of, tally):
    def work(worker):
        return [
            put(
                database,
                unit_of(f"c{worker}-{number}", "pf"),
                unit_of(f"c{worker}-{number}", ["pp", "ff"], tier="w4a16", evaluator="refusal"),
            )
            for number in range(6)
        ]

    with ThreadPoolExecutor(8) as pool:
        assert all(all(done) for done in pool.map(work, range(8)))
    assert tally().harm == 48
    assert tally("refusal", tier="w4a16").n == 96
    assert recount(database).equal


PROCESS = """
import sys
from concurrent.futures import ThreadPoolExecutor
from service.store.sql.database import open_database
from service.store.decided.decisions import append
from service.store.scored.pairs import PairRow, Unit, record

database = open_database(sys.argv[1])

def work(number):
    unit = Unit(
        capture_id=f"c{number}", model="m", tier="w8a8", arm="candidate", evaluator="structured_output",
        version="1", epoch="e1", conversation=f"v{number}", stratum="s", tenant="t",
        digest=f"d{number}", counted=True, at=1.0,
        rows=(PairRow(outcome="scored", baseline_passed=True, candidate_passed=False),),
    )
    done = record(database, capture_id=unit.capture_id, owner=sys.argv[2], units=[unit], at=1.0)
    append(database, at=1.0, actor=sys.argv[2], action="test", model="m", detail={"number": number})
    return done

with ThreadPoolExecutor(2) as pool:
    print(sum(pool.map(work, range(20))))
database.close()
"""


def test_four_processes_given_the_same_captures_count_each_once(database, database_url, tally):
    processes = [
        Leashed(
            [sys.executable, "-c", PROCESS, database_url, f"w{number}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    told = [process.communicate(timeout=100) for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, told
    assert sum(int(output) for output, _ in told) == 20
    assert tally().harm == 20
    assert recount(database).equal


def test_only_the_first_capture_of_a_conversation_counts(database, unit_of, tally):
    put(database, unit_of("c1", "pp", conversation="talk"))
    put(database, unit_of("c2", "pf", conversation="talk"))
    found = tally()
    assert (found.n, found.harm, found.not_counted, found.due) == (1, 0, 1, 2)


def test_a_claim_taken_before_the_replay_decides_who_counts(database, unit_of, tally):
    first, second = (unit_of(name, "pf", conversation="talk") for name in ("c1", "c2"))
    assert claim(database, [first.claim], capture_id="c1") == {first.claim}
    assert claim(database, [second.claim], capture_id="c2") == set()
    put(database, second)  # though it asks to count, and is first to be recorded
    assert tally().n == 0
    assert claim(database, [first.claim], capture_id="c1") == {first.claim}
    put(database, first)
    assert (tally().n, tally().not_counted) == (1, 1)


def test_of_two_captures_with_the_same_request_the_first_to_claim_counts_and_not_the_faster(
    database, unit_of, tally
):
    slow, fast = (unit_of(name, "pf", conversation=name, digest="same") for name in ("c1", "c2"))
    assert claim(database, [slow.claim], capture_id="c1") == {slow.claim}
    assert claim(database, [fast.claim], capture_id="c2") == set()
    put(database, dataclasses.replace(fast, counted=False))
    put(database, slow)
    assert (tally().n, tally().not_counted) == (1, 1)


def test_a_request_that_has_counted_leaves_its_conversation_to_a_later_turn(database, unit_of, tally):
    put(database, unit_of("c1", "pp", conversation="talk 1", digest="same"))
    first, later = (
        unit_of("c2", "pp", conversation="talk 2", digest="same"),
        unit_of("c3", "pp", conversation="talk 2", digest="another"),
    )
    assert claim(database, [first.claim], capture_id="c2") == set()
    assert claim(database, [later.claim], capture_id="c3") == {later.claim}
    put(database, later)
    assert tally().n == 2


def test_claims_of_eight_captures_at_once_have_one_holder(database):
    wanted = [
        Claim(tier=tier, arm="candidate", epoch="e", evaluator="x", version="1", conversation="talk")
        for tier in ("a", "b", "c")
    ]
    with ThreadPoolExecutor(8) as pool:
        held = list(
            pool.map(
                lambda number: claim(database, wanted[:: (-1) ** number], capture_id=f"c{number}"), range(8)
            )
        )
    assert sorted(each.tier for share in held for each in share) == ["a", "b", "c"]
    assert claim(database, [], capture_id="c") == set()


def test_the_same_request_counts_once_in_an_epoch_whatever_conversation_it_comes_from(
    database, unit_of, tally
):
    put(database, unit_of("c1", "pf", digest="d"))
    put(database, unit_of("c2", "pf", digest="d"))
    put(database, unit_of("c3", "pf", digest="d", epoch="e2"))
    put(database, unit_of("c4", "pf", digest=""))
    put(database, unit_of("c5", "pf", digest=""))
    assert (tally().n, tally().not_counted) == (3, 1)
    assert tally(epoch="e2").n == 1


def test_a_unit_that_does_not_ask_to_count_takes_no_claim(database, unit_of, tally):
    put(database, unit_of("c1", "pf", conversation="talk", digest="d", counted=False))
    put(database, unit_of("c2", "pf", conversation="talk", digest="d"))
    assert (tally().n, tally().not_counted) == (1, 1)


def test_arms_tiers_evaluators_versions_and_epochs_count_apart(database, unit_of, tally):
    put(
        database,
        unit_of("c1", "pf"),
        unit_of("c1", "pp", arm="control", tier="bf16"),
        unit_of("c1", "pp", tier="w4a16"),
        unit_of("c1", "pp", evaluator="refusal"),
        unit_of("c1", "pp", epoch="e2"),
    )
    assert tally().harm == 1
    for other in (
        tally(arm="control", tier="bf16"),
        tally(tier="w4a16"),
        tally("refusal"),
        tally(epoch="e2"),
    ):
        assert (other.n, other.harm) == (1, 0)


def test_a_capture_that_says_nothing_is_settled_all_the_same(database):
    assert put(database, capture_id="c1")
    assert not put(database, capture_id="c1")
    assert settled(database, ["c1"]) == {"c1"}


def test_whoever_records_first_wins_even_after_its_lease_was_taken_over(database, unit_of, tally):
    lease(database, ["c1"], owner="one", now=0)
    lease(database, ["c1"], owner="two", now=1000)
    unit = unit_of("c1", "pf")
    assert record(database, capture_id="c1", owner="one", units=[unit], at=1001)
    assert not record(database, capture_id="c1", owner="two", units=[unit], at=1002)
    assert tally().n == 1


def test_units_that_do_not_belong_together_are_refused_and_nothing_changes(database, unit_of):
    with pytest.raises(ValueError, match="cannot be recorded with capture c1"):
        put(database, unit_of("c2", "pp"), capture_id="c1")
    with pytest.raises(ValueError, match="two units"):
        put(database, unit_of("c1", "pp"), unit_of("c1", "pf"))
    with pytest.raises(ValueError, match="not a final state"):
        put(database, unit_of("c1", "pp"), state="leased")
    assert set(rows_of(database).values()) == {0}


def test_what_models_write_can_be_stored_whatever_it_is(database, unit_of):
    row = dataclasses.replace(
        unit_of("c1", "pf").rows[0], candidate_reason="NUL \0, half a pair \ud83d, whole 😀, 汉字"
    )
    put(database, dataclasses.replace(unit_of("c1", "pf"), rows=(row,)))
    (pair,) = recent_pairs(database, "m", "w8a8")
    assert pair.pair.candidate_reason == "NUL �, half a pair ?, whole 😀, 汉字"
