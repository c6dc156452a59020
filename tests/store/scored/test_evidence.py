"""What a verdict is read from."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, event, update

from service.decision.tally import Tally, Triple
from service.store.redis.capture import capture_id
from service.store.scored.evidence import read_tallies, recent_pairs
from service.store.scored.leases import expire, lease, release
from service.store.scored.pairs import record
from service.store.sql.database import open_database
from service.store.sql.tally_tables import tallies


def put(database, *units, at=1.0):
    record(database, capture_id=units[0].capture_id, owner="w", units=units, at=at)


def read(database, **changes):
    return read_tallies(
        database, **{"model": "m", "tier": "w8a8", "arm": "candidate", "epoch": "e1", **changes}
    )


def test_nothing_recorded_is_no_evidence(database):
    assert read(database) == {}
    with pytest.raises(ValueError, match="not a valid Arm"):
        read(database, arm="experiment")


def test_a_tally_is_a_histogram_of_triples_over_all_strata(database, unit_of):
    put(database, unit_of("c1", "pf", stratum="short"))
    put(database, unit_of("c2", "pf", stratum="long"))
    put(database, unit_of("c3", ["pf", "ff", "fp"], stratum="long"))
    put(database, unit_of("c4", ["u", "pp"], stratum="long", counted=False))
    assert read(database) == {
        "structured_output": Tally(
            units={Triple(1, 1, 0): 2, Triple(3, 1, 1): 1},
            both_failed=1,
            unscored={"shadow": 1},
            not_counted=1,
        )
    }


def test_a_row_of_an_unknown_kind_is_an_error_and_not_left_out(database, unit_of):
    put(database, unit_of("c1", "pf"))
    with database.write() as connection:
        connection.execute(update(tallies).values(kind="guess"))
    with pytest.raises(ValueError, match="not a valid Kind"):
        read(database)


@pytest.fixture
def shown(database):
    def read(**changes):
        place = {"model": "m", "tier": "w8a8", "arm": "candidate", "epoch": "e1", **changes}
        return read_tallies(database, **place).get("structured_output", Tally())

    return read


def test_what_overtook_a_capture_still_at_work_counts_only_after_it(database, unit_of, shown):
    """Were it counted at once, the clean pairs would be seen before the slow failures."""
    early, slow, quick = (capture_id("p", number, "m") for number in (1, 2, 3))
    for now, name in enumerate((early, slow, quick)):
        lease(database, [name], owner=name, now=1000.0 + now)
    put(database, unit_of(early, "pp"))
    put(database, unit_of(quick, ["pp", "ff", "fp"]), unit_of(quick, "pp", arm="control", tier="bf16"))
    assert shown() == Tally.of_pairs(n=1, harm=0, benefit=0)
    assert shown(arm="control", tier="bf16") == Tally()
    release(database, [slow], owner=slow)  # given up is not settled
    assert shown().n == 1
    assert lease(database, [slow], owner="next", now=2000.0) == [slow]  # and keeps its place
    assert shown().n == 1
    put(database, unit_of(slow, "pf"))
    assert (shown().n, shown().harm, shown().benefit, shown().both_failed) == (5, 1, 1, 1)
    assert shown(arm="control", tier="bf16").n == 1


def test_a_capture_of_another_model_or_one_that_expired_holds_nothing_up(database, unit_of, shown):
    other, gone, quick = capture_id("p", 1, "m2"), capture_id("p", 2, "m"), capture_id("p", 3, "m")
    for name in (other, gone, quick):
        lease(database, [name], owner=name, now=1000.0)
    put(database, unit_of(quick, "pp"))
    assert shown().n == 0
    expire(database, [gone], at=2000.0)
    assert shown().n == 1


def test_a_capture_that_ends_every_worker_does_not_hold_up_the_evidence_for_ever(database, unit_of, shown):
    poison, quick = capture_id("p", 1, "m"), capture_id("p", 2, "m")
    for time in range(4):
        assert shown().n == 0
        lease(database, [poison], owner=f"dies {time}", now=1000.0 + 200 * time)
        lease(database, [quick], owner="w", now=1000.0, seconds=10_000)
        put(database, unit_of(quick, "pp"))
    assert shown().n == 1


def test_recent_pairs_are_newest_first_and_of_candidates_only(database, unit_of):
    put(database, unit_of("c1", ["pp", "pf"], at=10.0))
    put(database, unit_of("c2", "pp", at=30.0), unit_of("c2", "pf", arm="control", at=30.0))
    put(database, unit_of("c3", "u", at=20.0))
    found = recent_pairs(database, "m", "w8a8")
    assert [(each.capture_id, each.pair.item) for each in found] == [
        ("c2", 0),
        ("c3", 0),
        ("c1", 0),
        ("c1", 1),
    ]
    assert found[3].pair.candidate_label == "not_json"
    assert found[3].pair.candidate_reason == "expected JSON, found prose"
    assert found[0].pair == unit_of("c2", "pp").rows[0]
    assert [each.at for each in recent_pairs(database, "m", "w8a8", limit=2)] == [30.0, 20.0]
    with pytest.raises(ValueError, match="at least 1"):
        recent_pairs(database, "m", "w8a8", limit=0)


def test_discordant_pairs_only_are_those_whose_arms_differ(database, unit_of):
    put(database, unit_of("c1", ["pp", "pf", "fp", "ff", "u"]))
    put(database, unit_of("c2", ["pp", "ff"]))
    found = recent_pairs(database, "m", "w8a8", discordant_only=True)
    assert [(each.capture_id, each.pair.item) for each in found] == [("c1", 1), ("c1", 2)]


def test_a_verdict_is_read_in_one_pass_over_the_tiers_own_rows(sqlite_url):
    asked = []

    def listen(connection, cursor, statement, parameters, context, executemany):
        asked.append((statement, parameters))

    database = open_database(sqlite_url)
    event.listen(Engine, "before_cursor_execute", listen)
    try:
        read(database)
    finally:
        event.remove(Engine, "before_cursor_execute", listen)
    ((statement, parameters),) = [each for each in asked if "tallies" in each[0]]
    with database.read() as connection:
        plan = str(connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).fetchall())
    database.close()
    assert "PRIMARY KEY (model=? AND tier=? AND arm=? AND epoch=?)" in plan
    assert "TEMP B-TREE" not in plan
