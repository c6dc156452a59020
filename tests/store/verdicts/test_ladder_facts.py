"""What a ladder's standing needs besides its evidence, read by one statement."""

from __future__ import annotations

from sqlalchemy import Engine, event, insert

from service.decision.evidence import Shown
from service.decision.policy import Gate
from service.fleet import Route
from service.store.decided.approvals import Approval, put_approval
from service.store.decided.holds import Hold, HoldKind, begin_hold, end_hold
from service.store.decided.interventions import Kind, intervene
from service.store.decided.routes import current_route, set_route
from service.store.redis.capture import capture_id
from service.store.redis.counters import Count, ledger_key
from service.store.scored.leases import MOST_AWAITED, lease
from service.store.sql.database import open_database
from service.store.sql.schema import epoch_plans, epoch_starts, epochs, ledger_counters
from service.store.sql.tally_tables import takings
from service.store.verdicts.epochs import Epochs, epochs_of
from service.store.verdicts.ladder_facts import MOST_TENANTS, OTHERS, read_facts
from service.store.verdicts.measurements import Measurement, put_measurement


def facts(database, model="m", epochs=()):
    with database.one_moment() as connection:
        return read_facts(connection, model, epochs)


def add(database, table, **row):
    with database.write() as connection:
        connection.execute(insert(table).values(**row))


def measurement(**changes):
    told = {
        "model": "m",
        "tier": "w8a8",
        "gate": Gate.SLO,
        "epoch": "e1",
        "at": 1.0,
        "shown": Shown.PASSED,
        "reason": "p .01",
        "numbers": {"margin": 0.01, "requests": 5},
    }
    return Measurement(**{**told, **changes})


def test_of_nothing_there_is_nothing(database):
    found = facts(database)
    assert found.route is None
    assert found.awaited is None
    assert found.epochs == Epochs()
    empty = found.approvals, found.holds, found.measurements, found.traffic, found.taken
    assert not any(empty)


def test_routes_and_approvals_are_those_in_force(database):
    set_route(database, Route.only("m", "w8a8"), at=1.0, actor="a", action="promote")
    set_route(database, Route.only("n", "x"), at=1.0, actor="a", action="promote")
    approval = Approval(
        model="m",
        tier="w8a8",
        actor="ci",
        at=5.0,
        epoch="e1",
        policy_digest="d",
        verdict={"decision": "accept"},
        evaluators={"refusal": "1"},
    )
    put_approval(database, approval)
    found = facts(database)
    assert found.route == current_route(database, "m")
    assert found.approvals == {"w8a8": approval}
    assert facts(database, "n").approvals == {}


def test_holds_come_in_their_order_ended_ones_as_well(database):
    for kind, at in ((HoldKind.SLO_LOST, 3.0), (HoldKind.ROLLED_BACK, 2.0)):
        begin_hold(
            database, model="m", tier="w8a8", epoch="e1", kind=kind, reason=f"r {at}", at=at, actor="guard"
        )
    end_hold(
        database,
        model="m",
        tier="w8a8",
        epoch="e1",
        kind=HoldKind.SLO_LOST,
        reason="kept",
        at=4.0,
        actor="guard",
    )
    assert facts(database).holds == {
        ("w8a8", "e1"): (
            Hold(kind=HoldKind.ROLLED_BACK, reason="r 2.0", at=2.0),
            Hold(kind=HoldKind.SLO_LOST, reason="r 3.0", at=3.0, ended_at=4.0),
        )
    }


def test_epochs_are_those_that_are_read_where_they_are_fixed(database):
    place = {"model": "m", "tier": "w8a8", "epoch": "e1"}
    add(database, epochs, **place, attempt=2)
    add(database, epoch_starts, **place, first_pair_at=7.5)
    planned = {"max_pairs": 8020, "pairs": 300, "discordant": 4, "control_discordance": 0.0}
    add(database, epoch_plans, **place, evaluator="refusal", **planned)
    add(database, epochs, **{**place, "model": "n"}, attempt=1)
    intervene(
        database, Kind.SKIP, model="m", tier="w8a8", epoch="e1", reason="given up", actor="admin", at=9.0
    )
    with database.read() as connection:
        expected = epochs_of(connection, "m")
    assert facts(database).epochs == expected
    assert expected.plans == {("w8a8", "e1"): {"refusal": 8020}}
    assert expected.skipped("w8a8", "e1") is not None


def test_of_every_tier_epoch_and_gate_the_latest_measurement_is_found_however_old(database):
    for at in (1.0, 3.0, 2.0):
        put_measurement(database, measurement(at=at, run=int(at)))
    put_measurement(database, measurement(at=9.0, tier="w4a16"))
    put_measurement(database, measurement(at=8.0, epoch="e2", gate=Gate.MONEY))
    put_measurement(database, measurement(at=9.0, model="n"))
    assert facts(database).measurements == {
        ("w8a8", "e1", Gate.SLO): measurement(at=3.0, run=3),
        ("w4a16", "e1", Gate.SLO): measurement(at=9.0, tier="w4a16"),
        ("w8a8", "e2", Gate.MONEY): measurement(at=8.0, epoch="e2", gate=Gate.MONEY),
    }


def test_what_is_still_being_replayed_is_awaited_a_few_times(database):
    names = [capture_id("p", number, "m") for number in (1, 2)]
    lease(database, [capture_id("p", 3, "n")], owner="w", now=1.0)
    lease(database, names[:1], owner="w", now=5.0)
    lease(database, names[1:], owner="w", now=6.0)
    assert facts(database).awaited == 5.0
    for again in range(MOST_AWAITED):
        lease(database, names[:1], owner="w", now=1000.0 * (again + 1), seconds=1.0)
    assert facts(database).awaited == 6.0


def test_traffic_is_summed_over_instances_of_that_model_alone(database):
    rows = [
        ("i", "m", "short", 3),
        ("j", "m", "short", 4),
        ("i", "m", "8k-32k/structured/stream", 1),
        ("i", "mm", "short", 9),
    ]
    for instance, model, stratum, amount in rows:
        counter = ledger_key(Count.TRAFFIC, model, stratum)
        add(database, ledger_counters, instance=instance, counter=counter, amount=amount)
    assert facts(database).traffic == {"short": 7, "8k-32k/structured/stream": 1}


def test_signs_in_a_models_name_are_no_wildcards(database):
    for model, amount in (("a_b/c", 1), ("axb/c", 2), ("a%b", 4), ("axxb", 8)):
        counter = ledger_key(Count.TRAFFIC, model, "short")
        add(database, ledger_counters, instance="i", counter=counter, amount=amount)
    assert facts(database, "a_b/c").traffic == {"short": 1}
    assert facts(database, "a%b").traffic == {"short": 4}


def test_the_smallest_tenants_are_one(database):
    for number in range(MOST_TENANTS + 10):
        add(database, takings, model="m", stratum=f"tenant=t{number:03}", amount=1000 - number)
    add(database, takings, model="m", stratum="language=zh", amount=7)
    add(database, takings, model="n", stratum="tenant=other", amount=10**6)
    taken = facts(database).taken
    assert taken["language=zh"] == 7
    assert (taken["tenant=t000"], taken[f"tenant=t{MOST_TENANTS - 1:03}"]) == (1000, 1001 - MOST_TENANTS)
    assert len(taken) == 1 + MOST_TENANTS + 1
    assert taken[OTHERS] == sum(1000 - number for number in range(MOST_TENANTS, MOST_TENANTS + 10))


def test_it_is_one_statement(sqlite_url):
    asked = []

    def listen(connection, cursor, statement, parameters, context, executemany):
        asked.append(statement)

    database = open_database(sqlite_url)
    event.listen(Engine, "before_cursor_execute", listen)
    try:
        facts(database)
    finally:
        event.remove(Engine, "before_cursor_execute", listen)
        database.close()
    assert len([each for each in asked if "UNION ALL" in each]) == 1
    assert len([each for each in asked if each.startswith("SELECT")]) == 1
