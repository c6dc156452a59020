"""Retention: rows go, sums stay."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, event, func, insert, select

from service.store.redis.counters import Count, Dropped, ledger_key
from service.store.scored.evidence import read_tallies, recent_pairs
from service.store.scored.leases import expire, lease
from service.store.scored.pairs import record
from service.store.scored.recount import recount
from service.store.sql.database import open_database
from service.store.sql.schema import captures, in_doubt, ledger_counters, ledger_instances
from service.store.traffic import retention
from service.store.traffic.ledger import account
from service.store.traffic.retention import Retained, retain


@pytest.fixture
def lived_in(database, unit_of):
    """Two old captures and a new one, one in flight, and the ledgers of three proxies."""
    for name, at in (("old1", 10.0), ("old2", 20.0), ("new", 100.0)):
        record(database, capture_id=name, owner="w", units=[unit_of(name, "pf", at=at)], at=at)
    expire(database, ["old3"], at=30.0)
    record(database, capture_id="doubtful", owner="w", units=[], at=10.0)
    lease(database, ["leased"], owner="w", now=1.0)
    with database.write() as connection:
        connection.execute(insert(in_doubt).values(capture_id="doubtful", mark=""))
        connection.execute(
            insert(ledger_instances),
            [
                {"instance": "gone1", "closed": True, "written_at": 10.0},
                {"instance": "gone2", "closed": True, "written_at": 20.0},
                {"instance": "recent", "closed": True, "written_at": 100.0},
                {"instance": "killed", "closed": False, "written_at": 10.0},
            ],
        )
        connection.execute(
            insert(ledger_counters),
            [
                {"instance": instance, "counter": counter, "amount": 1}
                for instance in ("gone1", "gone2", "recent", "killed")
                for counter in (
                    ledger_key(Count.SEEN, "m"),
                    ledger_key(Count.SAMPLED, "m"),
                    ledger_key(Count.SHIPPED, "m")
                    if instance != "gone1"
                    else ledger_key(Count.DROPPED, "m", Dropped.STORE_DOWN),
                    "#reserved",
                )
            ],
        )
    return database


def test_every_sum_stays_and_what_is_old_goes(lived_in):
    before = account(lived_in)
    evidence = {"model": "m", "tier": "w8a8", "arm": "candidate", "epoch": "e1"}
    tallies = read_tallies(lived_in, **evidence)
    assert retain(lived_in, before=50.0) == Retained(settlements=3, reasons=2, instances=2)
    assert retain(lived_in, before=50.0) == Retained(settlements=0, reasons=0, instances=0)
    assert account(lived_in) == before
    assert read_tallies(lived_in, **evidence) == tallies
    assert recount(lived_in).equal
    with lived_in.read() as connection:
        kept = set(connection.execute(select(captures.c.capture_id)).scalars())
        assert connection.execute(select(func.count()).select_from(ledger_instances)).scalar() == 3
    assert kept == {"new", "doubtful", "leased"}


def test_reasons_of_old_pairs_go_and_their_judgements_stay(lived_in):
    retain(lived_in, before=50.0)
    found = {each.capture_id: each.pair for each in recent_pairs(lived_in, "m", "w8a8")}
    assert found["new"].candidate_reason == "expected JSON, found prose"
    assert found["old1"].candidate_reason == ""
    assert found["old1"].candidate_label == "not_json"


def test_a_message_older_than_retention_does_not_count_its_capture_again(lived_in, unit_of):
    retain(lived_in, before=50.0)
    record(lived_in, capture_id="old1", owner="w", units=[unit_of("old1", "pf")], at=60.0)
    assert recount(lived_in).equal
    place = {"model": "m", "tier": "w8a8", "arm": "candidate", "epoch": "e1"}
    assert read_tallies(lived_in, **place)["structured_output"].n == 3


def test_a_run_without_time_leaves_the_rest_to_the_next(lived_in, monkeypatch):
    """The oldest go first, a transaction at a time."""
    monkeypatch.setattr(retention, "_AT_ONCE", 1)
    before, bare = account(lived_in), {}
    runs = [retain(lived_in, before=50.0, bare=bare, more=lambda: False) for _ in range(4)]
    assert [(each.settlements, each.reasons) for each in runs] == [(1, 1), (1, 1), (1, 0), (0, 0)]
    assert account(lived_in) == before
    assert retain(lived_in, before=1000.0, bare=bare) == Retained(settlements=1, reasons=1, instances=1)


def test_old_units_are_looked_at_once(lived_in, unit_of):
    for number, tier in enumerate(("w4a16", "fp8")):
        unit = unit_of(f"more{number}", "pf", tier=tier, at=10.0)
        record(lived_in, capture_id=unit.capture_id, owner="w", units=[unit], at=10.0)
    bare, asked = {}, []

    def listen(connection, cursor, statement, parameters, context, executemany):
        asked.append(statement)

    assert retain(lived_in, before=50.0, bare=bare).reasons == 4
    assert len(bare) == 3
    event.listen(Engine, "before_cursor_execute", listen)
    try:
        retain(lived_in, before=50.0, bare=bare)
    finally:
        event.remove(Engine, "before_cursor_execute", listen)
    assert not [each for each in asked if each.startswith("UPDATE pairs")]


def test_old_captures_and_old_units_are_found_by_their_indices(sqlite_url, unit_of):
    database, asked = open_database(sqlite_url), []
    unit = unit_of("c1", "pf", at=10.0)
    record(database, capture_id="c1", owner="w", units=[unit], at=10.0)

    def listen(connection, cursor, statement, parameters, context, executemany):
        asked.append((statement, parameters))

    event.listen(Engine, "before_cursor_execute", listen)
    try:
        bare = {}
        for _ in range(2):
            retain(database, before=50.0, bare=bare)
    finally:
        event.remove(Engine, "before_cursor_execute", listen)
    with database.read() as connection:
        for statement, parameters in asked:
            if statement.startswith("SELECT"):
                plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).fetchall()
                scanned = [row for row in plan if "SCAN captures" in str(row) or "SCAN units" in str(row)]
                assert all("INDEX" in str(row) for row in scanned), (statement, plan)
    database.close()


def test_later_runs_add_to_earlier_ones(lived_in):
    before = account(lived_in)
    retain(lived_in, before=15.0)
    retain(lived_in, before=25.0)
    retain(lived_in, before=500.0)
    assert account(lived_in) == before
