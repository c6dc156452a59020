"""A database of the version before becomes one of this version."""

from __future__ import annotations

import pytest
from sqlalchemy import select, update

from service.store.scored.evidence import read_tallies, recent_pairs
from service.store.scored.pairs import record
from service.store.scored.recount import recount
from service.store.scored.upgrade import upgrade
from service.store.sql import schema
from service.store.sql.database import StoreUnusable, open_database
from service.store.verdicts.coverage import read_coverage

NEW_TABLES = ("tallies", "stratum_tallies", "stratum_sums", "tenant_tallies", "takings", "epoch_plans")
OLD_TALLIES = """
    CREATE TABLE tallies (
        model VARCHAR NOT NULL, tier VARCHAR NOT NULL, arm VARCHAR NOT NULL, epoch VARCHAR NOT NULL,
        evaluator VARCHAR NOT NULL, kind VARCHAR NOT NULL, reason VARCHAR NOT NULL, pairs INTEGER NOT NULL,
        harm INTEGER NOT NULL, benefit INTEGER NOT NULL, version VARCHAR NOT NULL, stratum VARCHAR NOT NULL,
        amount BIGINT NOT NULL, PRIMARY KEY (model, tier, arm, epoch, evaluator, kind, reason, pairs, harm,
        benefit, version, stratum))
"""


@pytest.fixture
def old(empty_database_url, unit_of):
    """URL of a database as version 3 left it, with four captures."""
    database = open_database(empty_database_url)
    for number, judged in enumerate(["pf", "fp", "ff", "u"]):
        name = f"c{number}"
        unit = unit_of(name, judged, stratum="2k-8k/structured/stream" if number else "short")
        record(database, capture_id=name, owner="w", units=[unit], at=1.0)
    with database.write() as connection:
        for name in (*NEW_TABLES, "conversations", "epoch_starts"):
            connection.exec_driver_sql(f"DROP TABLE {name}")
        for index in ("units_by_taking", "units_by_conversation"):
            connection.exec_driver_sql(f"DROP INDEX {index}")
        for column in ("marginals", "waits"):
            connection.exec_driver_sql(f"ALTER TABLE units DROP COLUMN {column}")
        connection.exec_driver_sql("CREATE INDEX units_by_taking ON units (model, tier, arm, taken_at)")
        connection.exec_driver_sql(OLD_TALLIES)
        connection.execute(update(schema.schema_version).values(version=3))
    database.close()
    return empty_database_url


def test_opening_it_says_what_to_do_and_changes_nothing(old):
    for _ in range(2):
        with pytest.raises(
            StoreUnusable, match=r"version 3.*keep a copy, and run `tiergate recount --upgrade`"
        ):
            open_database(old)


def test_its_evidence_is_counted_again_from_its_pairs(old, unit_of):
    heard = []
    assert upgrade(old, told=lambda done, total: heard.append((done, total)), every=2) == 4
    assert heard == [(2, 4), (4, 4)]
    database = open_database(old)
    assert recount(database).equal
    (tally,) = read_tallies(database, model="m", tier="w8a8", arm="candidate", epoch="e1").values()
    assert (tally.n, tally.harm, tally.benefit, tally.both_failed, tally.due) == (3, 1, 1, 1, 4)
    assert read_coverage(database, "m", "w8a8", "e1").evidence == {
        "short": 1,
        "2k-8k/structured/stream": 2,
        "length=2k-8k": 2,
        "structured=structured": 2,
        "streaming=stream": 2,
        "tenant=t1": 3,
    }
    record(database, capture_id="c9", owner="w", units=[unit_of("c9", "pp")], at=2.0)
    assert recount(database).equal
    database.close()
    assert upgrade(old) is None


ADDED_SINCE_6 = ("looks_taken", "engine_readings", "prompt_prefixes")
ADDED_SINCE_5 = ("corpus", "corpus_strata", "kept_answers", "resends", *ADDED_SINCE_6)


@pytest.mark.parametrize(("version", "added"), [(5, ADDED_SINCE_5), (6, ADDED_SINCE_6)])
def test_later_versions_lack_tables_alone_and_nothing_is_counted_again(
    empty_database_url, unit_of, version, added
):
    database = open_database(empty_database_url)
    record(database, capture_id="c1", owner="w", units=[unit_of("c1", "pf")], at=1.0)
    with database.write() as connection:
        for name in added:
            connection.exec_driver_sql(f"DROP TABLE {name}")
        connection.execute(update(schema.schema_version).values(version=version))
    with pytest.raises(StoreUnusable, match=rf"version {version}.*run `tiergate recount --upgrade`"):
        open_database(empty_database_url)
    assert upgrade(empty_database_url) == 0
    again = open_database(empty_database_url)
    assert recount(again).equal
    again.close()
    database.close()


def test_an_upgrade_that_fails_leaves_the_database_as_it_was(old):
    class Stopped(Exception):
        pass

    def stop(done, total):
        raise Stopped

    with pytest.raises(Stopped):
        upgrade(old, told=stop, every=1)
    with pytest.raises(StoreUnusable, match="version 3"):
        open_database(old)
    assert upgrade(old) == 4


def test_what_cannot_be_upgraded_is_told_apart(empty_database_url):
    with pytest.raises(StoreUnusable, match="no database"):
        upgrade(empty_database_url)
    database = open_database(empty_database_url)
    with database.write() as connection:
        connection.execute(update(schema.schema_version).values(version=1))
    with pytest.raises(StoreUnusable, match="version 1, which this Tiergate cannot upgrade"):
        upgrade(empty_database_url)
    with database.read() as connection:
        assert connection.execute(select(schema.schema_version.c.version)).scalar_one() == 1
    database.close()


def test_pairs_of_the_version_before_are_in_no_stratum_of_their_own(empty_database_url, unit_of):
    database = open_database(empty_database_url)
    record(database, capture_id="c", owner="w", units=[unit_of("c", "pf")], at=1.0)
    with database.write() as connection:
        connection.exec_driver_sql("ALTER TABLE pairs DROP COLUMN own_stratum")
        connection.exec_driver_sql("DROP TABLE pair_details")
        connection.execute(update(schema.schema_version).values(version=5))
    database.close()
    assert upgrade(empty_database_url) == 0
    database = open_database(empty_database_url)
    assert recount(database).equal
    (pair,) = recent_pairs(database, "m", "w8a8")
    assert pair.pair.own_stratum == ""
    record(database, capture_id="d", owner="w", units=[unit_of("d", "pp")], at=2.0)
    assert recount(database).equal
    database.close()
