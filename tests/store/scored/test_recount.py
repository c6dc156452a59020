"""The counts are what the pairs say, whoever added them in whatever order, and a recount notices when not."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, select, update

from service.store.scored.evidence import read_tallies
from service.store.scored.leases import lease
from service.store.scored.pairs import record
from service.store.scored.recount import TABLES, rebuild, recount
from service.store.sql.schema import metadata, pair_ledger, pairs
from service.store.sql.tally_tables import takings, tallies
from service.store.traffic.closing import close_idle
from service.strata import DEPTHS

JUDGED = st.sampled_from(["pp", "pf", "fp", "ff", "u", "n", "o"])
UNITS = st.lists(
    st.tuples(
        st.lists(JUDGED, min_size=1, max_size=4),
        st.sampled_from(["w8a8", "w4a16"]),
        st.sampled_from(["candidate", "control"]),
        st.sampled_from(["talk 1", "talk 2", "talk 3"]),
        st.sampled_from(["short", "long"]),
        st.sampled_from(["language=zh", "language=en", ""]),
        st.sampled_from(["d1", "d2", "d3", ""]),
        st.sampled_from(["counted", "waits", "shown"]),
    ),
    max_size=12,
)
PROPERTY = settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def clear(database):
    with database.write() as connection:
        for table in metadata.sorted_tables:
            if table.name != "schema_version":
                connection.execute(delete(table))


def counts_in(database):
    """Every row of every table of counts that is not zero."""
    with database.read() as connection:
        return {
            (table.name, tuple(row))
            for table in TABLES
            for row in connection.execute(select(table))
            if any(row._mapping[column.name] for column in table.columns if not column.primary_key)
        }


def in_depths(unit):
    """Its pairs, each in a stratum of its own, as recall questions are."""
    rows = (replace(row, own_stratum=f"depth={DEPTHS[row.item % 2]}") for row in unit.rows)
    return replace(unit, rows=tuple(rows))


def units_from(unit_of, made):
    plain = [
        unit_of(
            f"c{number}",
            judged,
            tier=tier,
            arm=arm,
            conversation=conversation,
            stratum=stratum,
            marginals=(marginal,) if marginal else (),
            tenant=conversation,
            digest=digest,
            epoch="e2" if asks == "waits" else "e1",  # a policy with another rule of units is another epoch
            counted=asks == "counted",
            waits=asks == "waits",
        )
        for number, (judged, tier, arm, conversation, stratum, marginal, digest, asks) in enumerate(made)
    ]
    return [in_depths(unit) if number % 2 else unit for number, unit in enumerate(plain)]


@PROPERTY
@given(made=UNITS, order=st.randoms(use_true_random=False))
def test_a_recount_equals_the_counts_whatever_was_recorded_and_how_often(database, unit_of, made, order):
    clear(database)
    deliveries = units_from(unit_of, made) * 2
    order.shuffle(deliveries)
    for number, unit in enumerate(deliveries):
        record(database, capture_id=unit.capture_id, owner="w", units=[unit], at=float(number))
        if order.random() < 0.2:
            close_idle(database, "m", idle_seconds=2.0, now=float(number))
    counted = recount(database)
    assert counted.differences == ()
    assert counted.units == len(made)
    assert counted.pairs == sum(len(judged) for judged, *_ in made)
    close_idle(database, "m", idle_seconds=2.0, now=1000.0)
    assert recount(database).equal


@PROPERTY
@given(made=UNITS, order=st.randoms(use_true_random=False))
def test_every_order_of_recording_gives_the_same_counts(database, unit_of, made, order):
    """Of units whose claims do not compete: who is first to claim, counts, in any order but one."""
    apart = []
    for number, (judged, tier, arm, conversation, stratum, marginal, _, asks) in enumerate(made):
        own = f"{conversation} {number}" if asks == "counted" else conversation
        apart.append((judged, tier, arm, own, stratum, marginal, "", asks))
    units = units_from(unit_of, apart)
    found = []
    for shuffled in (units, order.sample(units, len(units))):
        clear(database)
        for unit in shuffled:
            record(database, capture_id=unit.capture_id, owner="w", units=[unit], at=1.0)
        close_idle(database, "m", idle_seconds=1.0, now=1000.0)
        found.append(counts_in(database))
    assert found[0] == found[1]


def test_workers_that_share_the_captures_count_what_one_worker_counts(database, unit_of):
    """Each records its part at the same time, and sometimes what another has recorded already."""
    kinds = ["pp", "pf", "fp", "ff", "u"]
    units = [
        unit_of(
            f"c{number}",
            [kinds[number % 5], "pp"],
            conversation=f"talk {number // 2}",
            counted=False,
            waits=True,
            digest="",
            marginals=("language=zh",) if number % 3 else ("language=en",),
        )
        for number in range(40)
    ]

    def work(worker):
        for unit in units[worker::4] + units[worker::8]:
            record(database, capture_id=unit.capture_id, owner=str(worker), units=[unit], at=1.0)
        return close_idle(database, "m", idle_seconds=1.0, now=1.0)

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(work, range(4))) == 0
        assert sum(pool.map(lambda _: close_idle(database, "m", idle_seconds=1.0, now=9.0), range(4))) == 20
    shared = counts_in(database)
    assert recount(database).equal
    clear(database)
    for unit in units:
        record(database, capture_id=unit.capture_id, owner="one", units=[unit], at=1.0)
    close_idle(database, "m", idle_seconds=1.0, now=9.0)
    assert counts_in(database) == shared


def test_a_recount_names_each_row_that_differs(database, unit_of):
    record(
        database,
        capture_id="c1",
        owner="w",
        units=[unit_of("c1", "pf"), unit_of("c1", "n", tier="x")],
        at=1.0,
    )
    assert recount(database).equal
    with database.write() as connection:
        connection.execute(update(tallies).values(amount=tallies.c.amount + 1))
        connection.execute(update(pair_ledger).where(pair_ledger.c.outcome == "due").values(amount=7))
        connection.execute(delete(takings))
    found = recount(database)
    assert not found.equal
    assert [(each.table, each.stored, each.recounted) for each in found.differences] == [
        ("tallies", {"amount": 2}, {"amount": 1}),
        ("takings", {"amount": 0}, {"amount": 1}),
        ("pair_ledger", {"amount": 7}, {"amount": 1}),
        ("pair_ledger", {"amount": 7}, {"amount": 1}),
    ]
    assert found.differences[0].row["kind"] == "unit"
    assert [each.row.get("tier") for each in found.differences[2:]] == ["w8a8", "x"]


def test_a_recount_notices_pairs_that_are_gone(database, unit_of):
    record(database, capture_id="c1", owner="w", units=[unit_of("c1", "pf")], at=1.0)
    with database.write() as connection:
        connection.execute(delete(pairs))
    found = recount(database).differences
    assert found
    assert {amount for each in found for amount in each.recounted.values()} == {0}


def test_what_was_counted_again_can_take_the_place_of_what_is_there(database, unit_of):
    for number, judged in enumerate(["pf", "fp", "ff", "pp", "u"]):
        unit = unit_of(f"c{number}", judged, marginals=("turns=1",))
        record(database, capture_id=f"c{number}", owner="w", units=[unit], at=1.0)
    before = counts_in(database)
    with database.write() as connection:
        for table in TABLES:
            connection.execute(delete(table))
    assert not recount(database).equal
    with database.write() as connection:
        assert rebuild(database, connection) == 5
    assert counts_in(database) == before
    assert recount(database).equal


def test_a_long_recount_tells_how_far_it_is(database, unit_of, recwarn):
    heard = []
    for number in range(3):
        record(database, capture_id=f"c{number}", owner="w", units=[unit_of(f"c{number}", "pp")], at=1.0)
    recount(database, told=lambda done, total: heard.append((done, total)), every=1)
    assert heard == [(1, 3), (2, 3), (3, 3)]


def test_a_recount_sees_what_overtook_although_a_verdict_does_not(database, unit_of):
    lease(database, ["p-1-6f8f5771"], owner="slow", now=0.0)
    record(database, capture_id="c1", owner="w", units=[unit_of("c1", "pp")], at=1.0)
    assert recount(database).equal
    assert read_tallies(database, model="m", tier="w8a8", arm="candidate", epoch="e1")
