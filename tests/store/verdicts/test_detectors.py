from __future__ import annotations

import random
import threading
from collections.abc import Callable

import pytest

from service.decision.policy import Criterion, Hypothesis
from service.decision.watch import Watch
from service.store.redis.capture import capture_id
from service.store.scored import leases
from service.store.scored.pairs import record
from service.store.scored.units import Unit
from service.store.sql.database import Database
from service.store.sql.schema import detector_units
from service.store.traffic.closing import close_idle
from service.store.verdicts.detectors import SLACK_SECONDS, Place, feed, read_watch, stop_others

UnitOf = Callable[..., Unit]
PLACE = Place(model="m", tier="w8a8", epoch="e1")
CRITERION = Criterion(evaluator="structured_output", margin=0.01)
PROMOTED = 1000.0


def counted(db: Database, unit_of: UnitOf, name: str, judged: str | list[str], *, at: float) -> None:
    """A unit of a capture that was taken up at this moment."""
    record(db, capture_id=name, owner="w", units=(unit_of(name, judged),), at=at)


def fed(db: Database, *, now: float = 2000.0, criterion: Criterion = CRITERION) -> Watch:
    return feed(db, PLACE, criterion, promoted_at=PROMOTED, now=now)


def after(*differences: float, criterion: Criterion = CRITERION) -> Watch:
    return Watch.of(criterion).after(differences)


def test_it_begins_with_the_promotion(database: Database, unit_of: UnitOf) -> None:
    counted(database, unit_of, "before", "pf", at=PROMOTED - 1)
    counted(database, unit_of, "c1", "fp", at=PROMOTED)
    counted(database, unit_of, "c2", "pf", at=PROMOTED + 1)
    assert fed(database) == after(-1, 1)


def test_feeding_again_changes_nothing(database: Database, unit_of: UnitOf) -> None:
    counted(database, unit_of, "c1", "pf", at=PROMOTED)
    once = fed(database)
    assert fed(database) == once
    assert fed(database, now=9000.0) == once
    counted(database, unit_of, "c2", "pp", at=8000.0)
    assert fed(database, now=9000.0) == after(1, 0)


def test_only_counted_units_of_the_tier_epoch_and_criterion_enter(
    database: Database, unit_of: UnitOf
) -> None:
    others: dict[str, dict[str, object]] = {
        "other tier": {"tier": "w4a16"},
        "other epoch": {"epoch": "e2"},
        "control": {"arm": "control", "tier": "bf16"},
        "not counted": {"counted": False},
        "other criterion": {"evaluator": "refusal"},
    }
    for name, changes in others.items():
        unit = unit_of(name, "pf", **changes)
        record(database, capture_id=name, owner="w", units=(unit,), at=PROMOTED)
    counted(database, unit_of, "unscored", "u", at=PROMOTED)
    assert fed(database).units == 0
    counted(database, unit_of, "c1", "pf", at=1900.0)
    assert fed(database) == after(1)


def test_a_unit_of_several_pairs_is_their_mean(database: Database, unit_of: UnitOf) -> None:
    counted(database, unit_of, "c1", ["pf", "pp", "pp", "u"], at=PROMOTED)
    assert fed(database) == after(1 / 3)


def test_order_is_that_of_taking_up_not_of_recording(database: Database, unit_of: UnitOf) -> None:
    for name, judged, at in (("c3", "pf", 1003.0), ("c1", "pp", 1001.0), ("c2", "fp", 1002.0)):
        counted(database, unit_of, name, judged, at=at)
    watch = fed(database)
    assert watch == after(0, -1, 1)
    assert watch != after(1, 0, -1)


def test_what_overtakes_a_capture_under_way_waits_for_it(database: Database, unit_of: UnitOf) -> None:
    slow = capture_id("proxy", 1, "m")
    leases.lease(database, [slow], owner="w", now=1001.0)
    counted(database, unit_of, "early", "pp", at=1000.0)
    counted(database, unit_of, "overtakes", "pp", at=1002.0)
    assert fed(database) == after(0)
    record(database, capture_id=slow, owner="w", units=(unit_of(slow, "pf"),), at=1003.0)
    assert fed(database) == after(0, 1, 0)


def test_one_that_nobody_could_wait_for_enters_when_it_comes(database: Database, unit_of: UnitOf) -> None:
    """A capture whose workers die again and again is waited for three times."""
    deadly = capture_id("proxy", 1, "m")
    for attempt in range(5):
        leases.lease(database, [deadly], owner="w", now=1001.0 + 200 * attempt)
    counted(database, unit_of, "c2", "fp", at=1500.0)
    far = 1500.0 + 10 * SLACK_SECONDS
    assert fed(database, now=far) == after(-1)
    counted(database, unit_of, "c3", "pp", at=far)
    assert fed(database, now=far) == after(-1, 0)
    record(database, capture_id=deadly, owner="w", units=(unit_of(deadly, "pf"),), at=far)
    assert fed(database, now=far) == after(-1, 0, 1)
    assert fed(database, now=far) == after(-1, 0, 1)


def test_a_late_clock_hides_no_unit(database: Database, unit_of: UnitOf) -> None:
    """Another worker's clock is behind: its unit sorts before those that were fed."""
    counted(database, unit_of, "c1", "pp", at=5000.0)
    assert fed(database, now=5000.0).units == 1
    counted(database, unit_of, "behind", "pf", at=5000.0 - SLACK_SECONDS + 1)
    assert fed(database, now=5001.0) == after(0, 1)


def test_a_guard_whose_clock_runs_ahead_hides_no_unit(database: Database, unit_of: UnitOf) -> None:
    counted(database, unit_of, "c1", "pp", at=5000.0)
    assert fed(database, now=5000.0 + 10 * SLACK_SECONDS).units == 1
    counted(database, unit_of, "c2", "pf", at=5001.0)
    assert fed(database, now=5002.0) == after(0, 1)


def test_the_list_of_units_seen_stays_short(database: Database, unit_of: UnitOf) -> None:
    for number in range(20):
        counted(database, unit_of, f"c{number}", "pp", at=1000.0 + number)
    fed(database, now=1100.0)
    assert seen(database) == 20
    counted(database, unit_of, "last", "pp", at=9000.0)
    assert fed(database, now=9000.0).units == 21
    assert seen(database) == 1


def seen(db: Database) -> int:
    with db.read() as connection:
        return len(connection.execute(detector_units.select()).fetchall())


def test_it_ends_at_its_alarm(database: Database, unit_of: UnitOf) -> None:
    criterion = Criterion(evaluator="structured_output", margin=0.01)
    for number in range(60):
        counted(database, unit_of, f"c{number:02}", "pf", at=1000.0 + number)
    watch = fed(database, criterion=criterion)
    assert watch.alarm
    assert 10 < watch.units < 60
    assert ">= 100000" in watch.reason
    assert fed(database, criterion=criterion) == watch


def test_where_harm_is_both_ways_both_ways_alarm(database: Database, unit_of: UnitOf) -> None:
    both_ways = Criterion(evaluator="structured_output", margin=0.01, hypothesis=Hypothesis.EQUIVALENT)
    for number in range(60):
        counted(database, unit_of, f"c{number:02}", "fp", at=1000.0 + number)
    assert fed(database, criterion=both_ways).alarm


def test_where_it_is_not_fewer_failures_alarm_nobody(database: Database, unit_of: UnitOf) -> None:
    for number in range(60):
        counted(database, unit_of, f"c{number:02}", "fp", at=1000.0 + number)
    assert not fed(database).alarm


def test_it_goes_on_in_an_epoch_that_comes_back_and_begins_anew_with_a_promotion(
    database: Database, unit_of: UnitOf
) -> None:
    counted(database, unit_of, "c1", "pf", at=1001.0)
    fed(database)
    stop_others(database, "m", set(), at=2000.0)
    assert feed(database, PLACE, CRITERION, promoted_at=PROMOTED, now=2100.0) == after(1)
    stop_others(database, "m", {("w8a8", "e1")}, at=2200.0)
    stop_others(database, "m", set(), at=2300.0)
    counted(database, unit_of, "c2", "fp", at=2600.0)
    assert feed(database, PLACE, CRITERION, promoted_at=2500.0, now=2700.0) == after(-1)


def test_an_alarm_of_an_earlier_time_of_service_does_not_outlive_it(
    database: Database, unit_of: UnitOf
) -> None:
    for number in range(60):
        counted(database, unit_of, f"c{number:02}", "pf", at=1000.0 + number)
    assert fed(database).alarm
    stop_others(database, "m", set(), at=2000.0)
    assert fed(database).alarm, "an epoch that comes back was not approved anew"
    counted(database, unit_of, "later", "pf", at=2600.0)
    assert feed(database, PLACE, CRITERION, promoted_at=2500.0, now=2700.0) == after(1)


def test_guards_that_feed_at_once_count_nothing_twice(database: Database, unit_of: UnitOf) -> None:
    for number in range(30):
        counted(database, unit_of, f"c{number:02}", "pp", at=1000.0 + number)
    threads = [threading.Thread(target=fed, args=(database,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    watch = read_watch(database, PLACE, CRITERION)
    assert watch is not None
    assert watch.units == 30


@pytest.mark.parametrize("at_once", [1, 7, 40, 41])
def test_many_units_may_take_several_transactions(at_once: int, database: Database, unit_of: UnitOf) -> None:
    values = {"pp": 0.0, "pf": 1.0, "fp": -1.0}
    judged = random.Random(7).choices(list(values), weights=[90, 4, 6], k=40)
    for number, each in enumerate(judged):
        counted(database, unit_of, f"c{number:02}", each, at=1000.0 + number)
    watch = feed(database, PLACE, CRITERION, promoted_at=PROMOTED, now=2000.0, at_once=at_once)
    assert watch == after(*(values[each] for each in judged))


def test_one_that_is_far_behind_is_brought_on_by_later_calls(database: Database, unit_of: UnitOf) -> None:
    judged = ["pp", "pf", "pp", "fp", "pp"]
    for number, each in enumerate(judged):
        counted(database, unit_of, f"c{number}", each, at=1000.0 + number)
    later = {"promoted_at": PROMOTED, "now": 2000.0}
    seen = [feed(database, PLACE, CRITERION, **later, at_once=3, more=lambda: False).units for _ in range(4)]
    assert seen == [2, 4, 5, 5], "the last conversation of a full turn comes first next time"
    assert fed(database) == after(0, 1, 0, -1, 0)


def test_a_conversation_enters_whole_when_it_is_closed_however_late(
    database: Database, unit_of: UnitOf
) -> None:
    for number, judged in enumerate(("pf", "pp", "pp", "pp")):
        name = capture_id("proxy", number, "m")
        unit = unit_of(name, judged, conversation="talk", counted=False, waits=True, digest="")
        leases.lease(database, [name], owner="w", now=PROMOTED + number)
        record(database, capture_id=name, owner="w", units=(unit,), at=PROMOTED + number)
    late = PROMOTED + 100 * SLACK_SECONDS
    assert fed(database, now=late).units == 0
    assert close_idle(database, "m", idle_seconds=60.0, now=late) == 1
    assert fed(database, now=late) == after(1 / 4)
    assert fed(database, now=2 * late) == after(1 / 4)
