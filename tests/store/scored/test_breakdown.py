"""Evidence by stratum and by tenant."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, event, insert

from service.decision.eprocess import Differences, log_e_harm
from service.decision.policy import Criterion, Hypothesis, Policy
from service.decision.tally import Tally, Triple
from service.store.redis.capture import capture_id
from service.store.redis.counters import Count, ledger_key
from service.store.scored.breakdown import (
    LEAST_EXCESS,
    read_strata,
    read_tenants,
    suspicious_strata,
)
from service.store.scored.counting import Counts, part_of
from service.store.scored.evidence import Place, overtaking
from service.store.scored.leases import lease
from service.store.scored.pairs import add_counts, record
from service.store.scored.recount import recount
from service.store.sql.database import open_database
from service.store.sql.schema import ledger_counters
from service.store.sql.tally_tables import takings
from service.store.traffic.closing import close_idle
from service.store.verdicts.coverage import read_coverage
from service.store.verdicts.ladder_facts import MOST_TENANTS
from service.strata import marginals

PLACE = Place("w8a8", "candidate", "e1")
POLICY = Policy(criteria=(Criterion(evaluator="structured_output"),))
UNIVERSE = frozenset({"short", "long", "turns=1", "turns=2-5", "language=zh", "language=en"})


def put(database, *units, at=1.0):
    record(database, capture_id=units[0].capture_id, owner="w", units=units, at=at)


def suspicious(database, policy=POLICY, universe=UNIVERSE, place=PLACE):
    with database.read() as connection:
        overtook = overtaking(connection, "m", [place])
        return suspicious_strata(connection, "m", [place], policy, overtook, universe)[place]


def traffic(database, rows):
    with database.write() as connection:
        connection.execute(
            insert(ledger_counters),
            [
                {"instance": instance, "counter": ledger_key(Count.TRAFFIC, model, stratum), "amount": amount}
                for instance, model, stratum, amount in rows
            ],
        )


def test_coverage_compares_crossed_strata_with_all_traffic(database, unit_of):
    traffic(
        database,
        [
            ("i1", "m", "short|json", 10),
            ("i2", "m", "short|json", 5),
            ("i1", "m", "long", 1),
            ("i1", "m2", "long", 100),
            ("i1", "%", "long", 100),
        ],
    )
    put(database, unit_of("c1", ["pf", "pp"], stratum="long"), unit_of("c1", "pp", evaluator="refusal"))
    put(database, unit_of("c2", "pp", stratum="long", counted=False))
    put(database, unit_of("c3", "pp", stratum="long", arm="control"))
    found = read_coverage(database, "m", "w8a8", "e1")
    assert found.traffic == {"short|json": 15, "long": 1, "tenant=t1": 3}
    assert found.evidence == {"long": 1, "short": 1, "tenant=t1": 1}


def test_coverage_compares_what_workers_tell_with_the_captures_taken_up(database, unit_of):
    """Also with those that did not count, once each, though every capture is evidence on several tiers."""
    for number, marginal in enumerate(["language=zh", "language=zh", "language=en", "language=en"]):
        units = [
            unit_of(
                f"c{number}",
                "pp",
                tier=tier,
                evaluator=evaluator,
                counted=number != 1,
                marginals=(marginal,),
                tenant=f"t{number % 2}",
            )
            for tier in ("w8a8", "w4a16")
            for evaluator in ("structured_output", "refusal")
        ]
        put(database, *units)
    put(database, unit_of("other", "pp", model="m2", marginals=("language=zh",)))
    found = read_coverage(database, "m", "w8a8", "e1")
    assert found.traffic == {"language=zh": 2, "language=en": 2, "tenant=t0": 2, "tenant=t1": 2}
    assert found.evidence == {
        "short": 3,
        "language=zh": 1,
        "language=en": 2,
        "tenant=t0": 2,
        "tenant=t1": 1,
    }


def test_a_capture_recorded_again_was_taken_up_once(database, unit_of):
    put(database, unit_of("c1", "pp"))
    put(database, unit_of("c1", "pp"))
    put(database, unit_of("c1", "pp", epoch="e2"))
    assert read_coverage(database, "m", "w8a8", "e1").traffic == {"tenant=t1": 1}


def test_a_request_with_many_needles_covers_its_stratum_once(database, unit_of):
    """Else a fair sample of traffic, half of it long, would leave the short half uncovered."""
    for number in range(4):
        short, long = f"short {number}", f"long {number}"
        put(database, unit_of(short, "pp", evaluator="refusal", stratum="short"))
        put(
            database,
            unit_of(long, "pp", evaluator="refusal", stratum="long"),
            unit_of(long, ["pp"] * 4, evaluator="long_context_recall", stratum="long"),
            unit_of(long, "pp", stratum="long"),
        )
    evidence = read_coverage(database, "m", "w8a8", "e1").evidence
    assert {name: evidence[name] for name in ("short", "long")} == {"short": 4, "long": 4}


def test_every_request_of_a_closed_conversation_covers_its_stratum(database, unit_of):
    """Else the first turns of long conversations would crowd out the late ones, which are most of them."""
    for turn in range(1, 9):
        of_turn = marginals("under-2k/free/whole", constrained=False, language="en", turns=turn)
        unit = unit_of(f"c{turn}", "pp", conversation="talk", marginals=of_turn, counted=False, waits=True)
        put(database, unit, at=float(turn))
    needles = unit_of("c9", ["pp"] * 4, evaluator="long_context_recall", conversation="talk", tenant="t2")
    put(database, dataclasses.replace(needles, counted=False, waits=True), at=9.0)
    close_idle(database, "m", idle_seconds=1.0, now=1e6)
    coverage = read_coverage(database, "m", "w8a8", "e1")
    turns = {name: count for name, count in coverage.evidence.items() if name.startswith("turns=")}
    assert turns == {"turns=1": 1, "turns=2-5": 4, "turns=6-20": 3}
    assert turns == {name: coverage.traffic[name] for name in turns}
    assert {name: coverage.evidence[name] for name in ("tenant=t1", "tenant=t2")} == {
        "tenant=t1": 8,
        "tenant=t2": 1,
    }
    assert recount(database).equal


def test_the_smallest_of_many_tenants_are_covered_together(database, unit_of):
    put(database, *[unit_of("c1", "pp", evaluator=name, tenant="large") for name in ("a", "b")])
    for number in range(3):
        put(database, unit_of(f"s{number}", "pp", evaluator="a", tenant=f"small {number}"))
    with database.write() as connection:
        rows = [{"model": "m", "stratum": f"tenant=x{n:02}", "amount": 5} for n in range(MOST_TENANTS - 1)]
        connection.execute(insert(takings), [*rows, {"model": "m", "stratum": "tenant=many", "amount": 9}])
    found = read_coverage(database, "m", "w8a8", "e1")
    tenants = {name: amount for name, amount in found.traffic.items() if name.startswith("tenant=")}
    assert len(tenants) == MOST_TENANTS + 1
    assert tenants["tenant=many"] == 9
    assert tenants["tenant=(others)"] == 4
    assert found.evidence["tenant=(others)"] == 4


def test_strata_are_read_that_exceed_the_margin_and_those_only(database, unit_of):
    for number in range(8):
        judged = "pf" if number < 5 else "pp"
        put(database, unit_of(f"l{number}", judged, stratum="long", marginals=("language=zh",)))
    for number in range(60):
        put(database, unit_of(f"s{number}", "pp", stratum="short", marginals=("language=en",)))
    put(database, unit_of("s-harm", "pf", stratum="short", marginals=("language=en",)))
    put(database, unit_of("s-unscored", "u", stratum="long", marginals=("turns=1",)))
    assert suspicious(database) == {
        "structured_output": {
            "long": Tally(units={Triple(1, 1, 0): 5, Triple(1, 0, 0): 3}, unscored={"shadow": 1}),
            "language=zh": Tally(units={Triple(1, 1, 0): 5, Triple(1, 0, 0): 3}),
        }
    }


def test_a_stratum_that_nobody_named_beforehand_is_not_tested(database, unit_of):
    for number in range(8):
        put(database, unit_of(f"c{number}", "pf", stratum="after the fact"))
    assert suspicious(database) == {}
    assert list(suspicious(database, universe=UNIVERSE | {"after the fact"})["structured_output"]) == [
        "after the fact"
    ]


@pytest.mark.parametrize(
    ("hypothesis", "judged", "read"),
    [
        (Hypothesis.NON_INFERIOR, "pf", True),
        (Hypothesis.NON_INFERIOR, "fp", False),
        (Hypothesis.EQUIVALENT, "pf", True),
        (Hypothesis.EQUIVALENT, "fp", True),
    ],
)
def test_less_failures_are_suspicious_only_where_they_are_harm(database, unit_of, hypothesis, judged, read):
    for number in range(8):
        put(database, unit_of(f"c{number}", judged, stratum="long"))
    policy = Policy(criteria=(Criterion(evaluator="structured_output", hypothesis=hypothesis),))
    assert bool(suspicious(database, policy)) is read


TRIPLES = st.lists(
    st.tuples(st.integers(1, 5), st.integers(0, 5), st.integers(0, 5), st.integers(1, 30)).filter(
        lambda each: each[1] + each[2] <= each[0]
    ),
    min_size=1,
    max_size=6,
)


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(triples=TRIPLES, margin=st.sampled_from([0.005, 0.01, 0.1]))
def test_no_stratum_that_could_reject_is_left_out(database, unit_of, triples, margin):
    """The bound that leaves strata out is never below the e-value itself."""
    counts = Counts()
    for pairs, harm, benefit, times in triples:
        judged = ["pf"] * harm + ["fp"] * benefit + ["pp"] * (pairs - harm - benefit)
        counts.add_conversation([part_of(unit_of("c", judged, stratum="long", epoch="p"))], times)
    with database.write() as connection:
        for table in ("tallies", "stratum_tallies", "stratum_sums", "tenant_tallies"):
            connection.exec_driver_sql(f"DELETE FROM {table}")
        add_counts(database, connection, counts)
    tally = Tally(units={})
    for pairs, harm, benefit, times in triples:
        tally += Tally(units={Triple(pairs, harm, benefit): times})
    policy = Policy(criteria=(Criterion(evaluator="structured_output", margin=margin),))
    found = suspicious(database, policy, place=Place("w8a8", "candidate", "p"))
    log_e = log_e_harm(Differences.of_tally(tally), margin)
    if log_e > 0.9 * LEAST_EXCESS:
        assert found == {"structured_output": {"long": tally}}
    excess = sum((t.harm - t.benefit) / t.pairs * n - margin * n for t, n in tally.units.items())
    assert log_e <= 0.9 * max(0.0, excess) + 1e-9
    assert math.exp(0.9 * LEAST_EXCESS) < 15


def test_what_overtook_is_in_no_stratum_and_of_no_tenant(database, unit_of):
    slow, *quick = (capture_id("p", number, "m") for number in range(1, 10))
    for number, name in enumerate((slow, *quick)):
        lease(database, [name], owner=name, now=1000.0 + number)
    for name in quick:
        put(database, unit_of(name, "pf", stratum="long", marginals=("turns=1",)))
    put(database, unit_of("early", "pf", stratum="long"), at=999.0)
    counted = Tally(units={Triple(1, 1, 0): 1})
    assert suspicious(database) == {"structured_output": {"long": counted}}
    assert read_tenants(database, "m", "w8a8", "e1") == {"structured_output": {"t1": counted}}
    strata = {each.stratum: each.sums.units for each in read_strata(database, "m", "w8a8", "e1")}
    assert strata == {"long": 1, "turns=1": 0}
    put(database, unit_of(slow, "pp", stratum="long"))
    assert suspicious(database)["structured_output"]["long"].n == 10
    assert read_tenants(database, "m", "w8a8", "e1")["structured_output"]["t1"].n == 10


def test_what_overtook_can_hide_no_stratum(database, unit_of):
    """Benefits that do not count yet are in the sums, and must not make harm look small."""
    slow, *quick = (capture_id("p", number, "m") for number in range(1, 9))
    for number in range(6):
        put(database, unit_of(f"c{number}", "pf", stratum="long"), at=1.0)
    for number, name in enumerate((slow, *quick)):
        lease(database, [name], owner=name, now=1000.0 + number)
    for name in quick:
        put(database, unit_of(name, "fp", stratum="long"))
    assert suspicious(database)["structured_output"]["long"] == Tally(units={Triple(1, 1, 0): 6})


def test_the_heat_map_has_every_stratum_that_was_met(database, unit_of):
    put(database, unit_of("c1", ["pf", "pp"], stratum="long", marginals=("turns=1",)))
    put(database, unit_of("c2", "ff", stratum="long"), unit_of("c2", "u", evaluator="refusal"))
    found = {(each.evaluator, each.stratum): each for each in read_strata(database, "m", "w8a8", "e1")}
    assert list(found) == [
        ("refusal", "short"),
        ("structured_output", "long"),
        ("structured_output", "turns=1"),
    ]
    long = found["structured_output", "long"]
    assert (long.sums.units, long.sums.pairs, long.sums.harm, long.sums.both_failed) == (2, 3, 1, 1)
    assert long.estimate == pytest.approx(0.25)
    assert found["refusal", "short"].estimate is None
    assert found["refusal", "short"].sums.unscored == 1
    assert read_strata(database, "m", "another", "e1") == []


def test_tenants_have_tallies_of_their_own(database, unit_of):
    put(database, unit_of("c1", "pf", tenant="a"))
    put(database, unit_of("c2", "pp", tenant="b"))
    put(database, unit_of("c3", "pp", tenant="b", counted=False))
    put(database, unit_of("c4", "pp", tenant="b", tier="other"))
    assert read_tenants(database, "m", "w8a8", "e1") == {
        "structured_output": {
            "a": Tally(units={Triple(1, 1, 0): 1}),
            "b": Tally(units={Triple(1, 0, 0): 1}, not_counted=1),
        }
    }


def test_coverage_and_suspicion_are_read_in_one_pass_over_the_rows_of_their_tiers(sqlite_url):
    asked = []

    def listen(connection, cursor, statement, parameters, context, executemany):
        asked.append((statement, parameters))

    database = open_database(sqlite_url)
    event.listen(Engine, "before_cursor_execute", listen)
    try:
        read_coverage(database, "m", "w8a8", "e1")
        suspicious(database)
    finally:
        event.remove(Engine, "before_cursor_execute", listen)
    plans = []
    with database.read() as connection:
        for statement, parameters in asked:
            if "stratum_sums" in statement:
                plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
                plans.append(str(plan.fetchall()))
    database.close()
    assert len(plans) == 2
    for plan in plans:
        assert "stratum_sums USING PRIMARY KEY (model=? AND tier=? AND arm=? AND epoch=?" in plan
        assert "TEMP B-TREE" not in plan
