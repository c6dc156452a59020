from __future__ import annotations

import dataclasses
import itertools
import threading
from collections import Counter
from dataclasses import replace

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis.backoff import NoBackoff
from redis.retry import Retry

from service.decision.evidence import Attribution
from service.decision.policy import Gate, OnHarm
from service.decision.verdict import Decision
from service.fleet import Limits, Route
from service.store.decided.decisions import read, verify
from service.store.decided.holds import HoldKind
from service.store.decided.routes import current_route, set_route
from service.store.redis.captures import Captures
from service.store.sql.database import Database
from service.store.verdicts import detectors
from service.store.verdicts.detectors import Place, read_watch
from service.store.verdicts.rung import Rung
from service.store.verdicts.standing import read_standing
from tests.workers.guarding import (
    DOWN,
    NOW,
    Backends,
    GuardMaker,
    actions,
    approve,
    epoch_of,
    guard_over,
    judged,
    log_of,
    serving,
)
from tests.workers.scripted import Reply
from workers.guard import watch_serving
from workers.watching import Guard, lacks_room

UNSEEN = 0.9
"""A margin that no verdict can show to be exceeded: what rings is the e-detector."""


def rung(guard: Guard, tier: str, *, now: float = NOW) -> Rung:
    return read_standing(guard.db, guard.ladders["m"], guard.question, now=now).rung(tier)


def worsened(guard: Guard, tier: str = "w8a8", *, clean: int = 100, harm: int = 26) -> None:
    """A tier that was fine for so long that the verdict does not reject it when it breaks."""
    judged(guard.db, tier, harm=False, count=clean, at=NOW + 1)
    judged(guard.db, tier, harm=True, count=harm, at=NOW + 2)


def test_a_tier_that_becomes_worse_is_rolled_back_by_the_e_detector_while_the_verdict_still_accepts(
    guard_of: GuardMaker, up: str
) -> None:
    guard = guard_of(up, up, up)
    approve(guard.db, "w8a8")
    worsened(guard, clean=220)
    before = rung(guard, "w8a8").verdict
    assert before is not None
    assert before.decision is Decision.ACCEPT
    watch_serving(guard, now=NOW + 3)
    assert serving(guard) == {"bf16": 100}
    entry = read(guard.db, "m")[-1]
    assert (entry.actor, entry.action, entry.tier) == ("guard", "roll_back", "bf16")
    assert (entry.detail["because"], entry.detail["from"]) == ("alarm", "w8a8")
    assert "structured_output: e-detector" in entry.detail["reasons"][0]
    assert ">= 100000" in entry.detail["reasons"][0]


def test_where_the_policy_says_ask_an_alarm_is_logged_once(sqlite_guard_of: GuardMaker, up: str) -> None:
    guard = sqlite_guard_of(up, up, up, on_harm=OnHarm.ASK)
    approve(guard.db, "w8a8")
    worsened(guard)
    for _ in range(3):
        watch_serving(guard, now=NOW + 3)
    assert serving(guard) == {"w8a8": 100}
    assert actions(guard).count(("guard", "alarm")) == 1
    assert dict(guard.acted) == {("alarm", "m"): 1}


def test_an_alarm_is_told_and_moves_nobody_while_the_stack_may_be_at_fault(
    sqlite_guard_of: GuardMaker, up: str
) -> None:
    gates = (Gate.ATTRIBUTION,)
    unsettled = Attribution(unsettled="w8a8: its backends disagree")
    guard = sqlite_guard_of(up, up, up, gates=gates, attribution=unsettled)
    approve(guard.db, "w8a8")
    worsened(guard)
    watch_serving(guard, now=NOW + 3)
    watch_serving(guard, now=NOW + 3)
    assert serving(guard) == {"w8a8": 100}
    [told] = log_of(guard, "alarm")
    assert told.detail["reasons"][1] == "attribution: w8a8: its backends disagree"
    watch_serving(sqlite_guard_of(up, up, up, gates=gates, attribution=Attribution()), now=NOW + 4)
    assert serving(guard) == {"bf16": 100}


def test_what_came_before_the_promotion_is_not_watched(sqlite_guard_of: GuardMaker, up: str) -> None:
    guard = sqlite_guard_of(up, up, up)
    judged(guard.db, "w8a8", harm=True, count=30, at=NOW - 10)
    judged(guard.db, "w8a8", harm=False, count=220, at=NOW - 9)
    approve(guard.db, "w8a8")
    watch_serving(guard, now=NOW + 3)
    assert serving(guard) == {"w8a8": 100}
    criterion = guard.question.policy.criteria[0]
    watch = read_watch(guard.db, Place(model="m", tier="w8a8", epoch=epoch_of("m", "w8a8")), criterion)
    assert watch is not None
    assert watch.units == 0


def test_a_detector_survives_a_restart_of_the_guard(guard_of: GuardMaker, up: str) -> None:
    first = guard_of(up, up, up, margin=UNSEEN)
    approve(first.db, "w8a8")
    criterion = first.question.policy.criteria[0]
    place = Place(model="m", tier="w8a8", epoch=epoch_of("m", "w8a8"))
    for step in range(1, 4):
        judged(first.db, "w8a8", harm=True, count=10, at=NOW + step)
        watch_serving(guard_of(up, up, up, margin=UNSEEN), now=NOW + step)
    watch = read_watch(first.db, place, criterion)
    assert watch is not None
    assert watch.units == 30


def test_a_rollback_withdraws_the_approval_and_bars_the_tier_for_the_epoch(
    guard_of: GuardMaker, up: str
) -> None:
    guard = guard_of(up, up, up)
    approve(guard.db, "w8a8")
    judged(guard.db, "w8a8", harm=True)
    watch_serving(guard, now=NOW + 5)
    now = rung(guard, "w8a8")
    assert now.approval is None
    assert [hold.kind for hold in now.barred] == [HoldKind.ROLLED_BACK]
    assert "rolled_back: " in now.sentence
    assert verify(guard.db) is None


def test_clean_evidence_afterwards_does_not_lift_the_bar(sqlite_guard_of: GuardMaker, up: str) -> None:
    guard = sqlite_guard_of(up, up, up)
    approve(guard.db, "w8a8")
    judged(guard.db, "w8a8", harm=True, count=20)
    watch_serving(guard, now=NOW + 5)
    judged(guard.db, "w8a8", harm=False, count=220, at=NOW + 6)
    now = rung(guard, "w8a8")
    assert now.verdict is not None
    assert now.verdict.decision is Decision.ACCEPT
    assert now.barred


def test_another_epoch_is_fresh_evidence(guard_of: GuardMaker, up: str) -> None:
    guard = guard_of(up, up, up)
    approve(guard.db, "w8a8")
    judged(guard.db, "w8a8", harm=True)
    watch_serving(guard, now=NOW + 5)
    anew = guard_of(up, up, up, epoch_of=lambda model, tier: f"next of {tier}")
    assert not rung(anew, "w8a8").barred
    approve(guard.db, "w8a8", at=NOW + 6, epoch="next of w8a8")
    judged(guard.db, "w8a8", harm=False, at=NOW + 7, epoch="next of w8a8")
    watch_serving(anew, now=NOW + 8)
    assert serving(guard) == {"w8a8": 100}


def test_an_approval_against_the_rollback_stands(sqlite_guard_of: GuardMaker, up: str) -> None:
    guard = sqlite_guard_of(up, up, up)
    approve(guard.db, "w8a8")
    worsened(guard)
    watch_serving(guard, now=NOW + 5)
    approve(guard.db, "w8a8", override=True, decision="accept", at=NOW + 6)
    assert not rung(guard, "w8a8", now=NOW + 6).barred
    judged(guard.db, "w8a8", harm=True, count=60, at=NOW + 7)
    watch_serving(guard, now=NOW + 8)
    assert serving(guard) == {"w8a8": 100}
    assert len(log_of(guard, "roll_back")) == 1


def test_an_approval_against_the_rollback_stands_though_the_clock_was_set_back(
    sqlite_guard_of: GuardMaker, up: str
) -> None:
    guard = sqlite_guard_of(up, up, up)
    approve(guard.db, "w8a8")
    worsened(guard)
    watch_serving(guard, now=NOW + 5)
    watch_serving(guard, now=NOW + 7)
    before = NOW - 3600
    approve(guard.db, "w8a8", override=True, decision="accept", at=before)
    assert not rung(guard, "w8a8", now=before).barred
    for seconds in range(0, 10, 2):
        watch_serving(guard, now=before + seconds)
    assert serving(guard) == {"w8a8": 100}
    assert len(log_of(guard, "roll_back")) == 1


def test_what_rang_before_does_not_ring_again_when_clocks_are_apart(
    sqlite_guard_of: GuardMaker, up: str
) -> None:
    """The guard's clock is a minute ahead of that of the API, by which the tier is put in service anew."""
    guard = sqlite_guard_of(up, up, up)
    approve(guard.db, "w8a8")
    worsened(guard)
    set_route(guard.db, Route.only("m", "bf16"), at=NOW + 3, actor="somebody")
    watch_serving(guard, now=NOW + 65)
    approve(guard.db, "w8a8", at=NOW + 10)
    watch_serving(guard, now=NOW + 75)
    assert serving(guard) == {"w8a8": 100}


def test_two_rungs_down_are_two_rollbacks_and_then_the_baseline_stays(guard_of: GuardMaker, up: str) -> None:
    guard = guard_of(up, up, up)
    approve(guard.db, "w8a8")
    approve(guard.db, "w4a16")
    judged(guard.db, "w4a16", harm=True)
    watch_serving(guard, now=NOW + 5)
    assert serving(guard) == {"w8a8": 100}
    judged(guard.db, "w8a8", harm=True, at=NOW + 6)
    watch_serving(guard, now=NOW + 7)
    watch_serving(guard, now=NOW + 8)
    assert serving(guard) == {"bf16": 100}
    assert [entry.detail["from"] for entry in log_of(guard, "roll_back")] == ["w4a16", "w8a8"]


@pytest.mark.parametrize(
    ("rooms", "limits", "target"),
    [
        ((64, 64, 64), Limits(), "w8a8"),
        ((64, 63, 64), Limits(), "bf16"),  # the tier that serves may have 64 at once
        ((64, None, 64), Limits(), "w8a8"),  # undeclared: being up is enough
        ((64, 63, None), Limits(), "w8a8"),
        ((64, 63, 64), Limits(concurrency=60), "w8a8"),  # the model never has more
        ((60, 59, 64), Limits(concurrency=60), "bf16"),
        ((1, 1, 64), Limits(), None),
    ],
)
def test_it_goes_only_where_there_is_declared_room(
    rooms: tuple[int | None, ...], limits: Limits, target: str | None, sqlite_guard_of: GuardMaker, up: str
) -> None:
    guard = sqlite_guard_of(up, up, up, rooms=rooms, limits=limits)
    approve(guard.db, "w8a8")
    judged(guard.db, "w8a8", harm=False)
    approve(guard.db, "w4a16")
    judged(guard.db, "w4a16", harm=True)
    watch_serving(guard, now=NOW + 5)
    assert serving(guard) == {target or "w4a16": 100}
    if target is None:
        [refused] = log_of(guard, "roll_back_refused")
        assert "take 1 requests at once (max_concurrency) < 64" in refused.detail["down"]["w8a8"]
        assert guard.acted["roll_back_refused", "m"] == 1


def test_a_refused_rollback_is_made_up_for_when_there_is_room(guard_of: GuardMaker, up: str) -> None:
    guard = guard_of(DOWN, up, up)
    approve(guard.db, "w4a16")
    judged(guard.db, "w4a16", harm=True)
    watch_serving(guard, now=NOW + 5)
    assert serving(guard) == {"w4a16": 100}
    watch_serving(guard_of(up, up, up), now=NOW + 6)
    assert serving(guard) == {"bf16": 100}


def test_a_clock_that_is_set_back_makes_no_rollback_wait(guard_of: GuardMaker, backend: Backends) -> None:
    answers = [503]
    baseline = backend(lambda asked: Reply(text="", status=answers[-1])).url
    guard = guard_of(baseline, DOWN, DOWN)
    approve(guard.db, "w4a16")
    judged(guard.db, "w4a16", harm=True)
    watch_serving(guard, now=NOW + 5)
    assert serving(guard) == {"w4a16": 100}
    answers.append(200)
    watch_serving(guard, now=NOW - 3600)
    assert serving(guard) == {"bf16": 100}


def test_a_rung_whose_detector_rings_takes_over_from_nobody(sqlite_guard_of: GuardMaker, up: str) -> None:
    guard = sqlite_guard_of(up, up, up)
    approve(guard.db, "w8a8")
    approve(guard.db, "w4a16", weight=50)
    worsened(guard, "w8a8", clean=220)
    judged(guard.db, "w4a16", harm=True)
    watch_serving(guard, now=NOW + 5)
    assert serving(guard) == {"bf16": 50, "w8a8": 50}
    watch_serving(guard, now=NOW + 6)
    assert serving(guard) == {"bf16": 100}
    assert [entry.detail["because"] for entry in log_of(guard, "roll_back")] == ["harm", "alarm"]


def test_a_detector_that_is_far_behind_keeps_no_rollback_waiting(
    sqlite_guard_of: GuardMaker, up: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detectors, "AT_ONCE", 3)
    guard = replace(sqlite_guard_of(up, up, up), begin=lambda: lambda: False)
    approve(guard.db, "w8a8")
    judged(guard.db, "w8a8", harm=True, at=NOW + 1)
    watch_serving(guard, now=NOW + 5)
    assert serving(guard) == {"bf16": 100}
    assert log_of(guard, "roll_back")[0].detail["because"] == "harm"
    place = Place(model="m", tier="w8a8", epoch=epoch_of("m", "w8a8"))
    watch = read_watch(guard.db, place, guard.question.policy.criteria[0])
    assert watch is not None
    assert watch.units == 2, "it is not brought up to date before"


def test_guards_that_race_roll_back_once(guard_of: GuardMaker, up: str) -> None:
    guard = guard_of(up, up, up)
    approve(guard.db, "w8a8")
    approve(guard.db, "w4a16")
    judged(guard.db, "w4a16", harm=True)
    start = threading.Barrier(4)
    failed: list[BaseException] = []

    def look() -> None:
        try:
            start.wait()
            watch_serving(guard_of(up, up, up), now=NOW + 5)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert serving(guard) == {"w8a8": 100}
    assert len(log_of(guard, "roll_back")) == 1


def test_a_redis_that_is_away_keeps_no_rollback_back(guard_of: GuardMaker, up: str) -> None:
    guard = guard_of(up, up, up)
    approve(guard.db, "w8a8")
    judged(guard.db, "w8a8", harm=True)
    with redis.Redis(port=9, retry=Retry(NoBackoff(), 0)) as away:
        watch_serving(replace(guard, captures=Captures(away)), now=NOW + 5)
    assert serving(guard) == {"bf16": 100}


@settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_it_never_flaps(data: st.DataObject, db: Database, redis_client: redis.Redis, up: str) -> None:
    """Whatever evidence comes and whoever approves in between: one rollback of a tier in an epoch at most."""
    run = next(_runs)
    start = NOW + 100 * run
    guard = guard_over(db, redis_client, up, up, up, epoch_of=lambda model, tier: f"{run} of {tier}")
    set_route(db, Route.only("m", "bf16"), at=start, actor="somebody")
    overridden: Counter[str] = Counter()
    already = len(log_of(guard, "roll_back"))
    for tier in ("w8a8", "w4a16"):
        judged(db, tier, harm=False, count=25, at=start, epoch=f"{run} of {tier}")
        approve(db, tier, at=start, epoch=f"{run} of {tier}")
    for step in range(1, data.draw(st.integers(4, 9), label="steps")):
        now = start + step
        tier = data.draw(st.sampled_from(["w8a8", "w4a16"]), label="tier")
        epoch = f"{run} of {tier}"
        stands = rung(guard, tier, now=now)
        assert stands.verdict is not None
        match data.draw(st.sampled_from(["clean", "harm", "approve", "override"]), label="what"):
            case "clean":
                judged(db, tier, harm=False, count=25, at=now, epoch=epoch)
            case "harm":
                judged(db, tier, harm=True, count=25, at=now, epoch=epoch)
            case "approve":
                if stands.verdict.decision is Decision.ACCEPT and not stands.barred:
                    approve(db, tier, at=now, epoch=epoch)
            case "override":
                overridden[tier] += 1
                decision = stands.verdict.decision.value
                approve(db, tier, at=now, epoch=epoch, override=True, decision=decision)
        watch_serving(guard, now=now)
    rolled: Counter[str] = Counter(
        str(entry.detail["from"]) for entry in log_of(guard, "roll_back")[already:]
    )
    route = current_route(db, "m")
    assert route is not None
    for tier, times in rolled.items():
        assert times <= 1 + overridden[tier]
        if not overridden[tier]:
            assert not route.weights.get(tier)


_runs = itertools.count(1)


def test_a_tier_without_room_is_asked_less_and_less_often_and_told_once(
    sqlite_guard_of: GuardMaker, up: str, caplog: pytest.LogCaptureFixture
) -> None:
    guard = sqlite_guard_of(DOWN, up, up)
    approve(guard.db, "w4a16")
    judged(guard.db, "w4a16", harm=True)
    asked = []
    for second in range(0, 300, 2):
        before = guard.waits.get(("m", "bf16"))
        watch_serving(guard, now=NOW + second)
        if guard.waits["m", "bf16"] is not before:
            asked.append(second)
    assert asked[:6] == [0, 2, 6, 14, 30, 60]
    assert {later - sooner for sooner, later in itertools.pairwise(asked[4:])} == {30}
    assert len([line for line in caplog.messages if "cannot take more clients" in line]) == 1
    standing = read_standing(guard.db, guard.ladders["m"], guard.question, now=NOW)
    moved = dataclasses.replace(standing, route=dataclasses.replace(standing.route, version=99))
    known = guard.waits["m", "bf16"]
    assert lacks_room(guard, moved, Route.only("m", "bf16"), "bf16", now=NOW + 299) is not None
    assert guard.waits["m", "bf16"] is not known, "another route is another question"
