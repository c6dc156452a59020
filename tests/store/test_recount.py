"""The tallies are what the pairs say, and a recount notices when they are not."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, update

from service.store.evidence import read_tallies
from service.store.pairs import record
from service.store.recount import recount
from service.store.schema import metadata, pair_ledger, pairs, tallies

JUDGED = st.sampled_from(["pp", "pf", "fp", "ff", "u", "n", "o"])
UNITS = st.lists(
    st.tuples(
        st.lists(JUDGED, min_size=1, max_size=4),
        st.sampled_from(["w8a8", "w4a16"]),
        st.sampled_from(["candidate", "control"]),
        st.sampled_from(["talk 1", "talk 2", "talk 3"]),
        st.sampled_from(["short", "long"]),
        st.sampled_from(["d1", "d2", "d3", ""]),
        st.booleans(),
    ),
    max_size=12,
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(made=UNITS, order=st.randoms(use_true_random=False))
def test_a_recount_equals_the_tallies_whatever_was_recorded_and_how_often(database, unit_of, made, order):
    with database.write() as connection:
        for table in metadata.sorted_tables:
            if table.name != "schema_version":
                connection.execute(delete(table))
    deliveries = [
        unit_of(
            f"c{number}",
            judged,
            tier=tier,
            arm=arm,
            conversation=conversation,
            stratum=stratum,
            digest=digest,
            counted=counted,
        )
        for number, (judged, tier, arm, conversation, stratum, digest, counted) in enumerate(made)
    ] * 2
    order.shuffle(deliveries)
    for unit in deliveries:
        record(database, capture_id=unit.capture_id, owner="w", units=[unit], at=1.0)
    counted = recount(database)
    assert counted.differences == ()
    assert counted.units == len(made)
    assert counted.pairs == sum(len(judged) for judged, *_ in made)


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
    found = recount(database)
    assert not found.equal
    (tally, *ledger) = found.differences
    assert (tally.row.kind, tally.stored, tally.recounted) == ("unit", 2, 1)
    assert [(each.row.tier, each.stored, each.recounted) for each in ledger] == [
        ("w8a8", 7, 1),
        ("x", 7, 1),
    ]


def test_a_recount_notices_pairs_that_are_gone(database, unit_of):
    record(database, capture_id="c1", owner="w", units=[unit_of("c1", "pf")], at=1.0)
    with database.write() as connection:
        connection.execute(delete(pairs))
    assert {each.recounted for each in recount(database).differences} == {0}


def test_tallies_of_two_databases_add_up_to_the_tallies_of_one(database, unit_of):
    place = {"model": "m", "tier": "w8a8", "arm": "candidate", "epoch": "e1"}
    parts = []
    for number, judged in enumerate(["pf", "fp", "ff", "pp", "u"]):
        name = f"c{number}"
        record(database, capture_id=name, owner="w", units=[unit_of(name, judged)], at=1.0)
        parts.append(read_tallies(database, **place)["structured_output"])
    # Each reading minus the one before it is one capture's part; parts add in any order.
    total = parts[-1]
    assert (total.n, total.harm, total.benefit, total.both_failed) == (4, 1, 1, 1)
    assert (parts[1] + parts[2]).n == parts[1].n + parts[2].n
