from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import redis

from service.decision.evidence import Attribution
from service.decision.policy import Gate, OnHarm
from service.decision.verdict import Decision
from service.fleet import Route
from service.store.decided.decisions import read
from service.store.decided.routes import set_route
from service.store.sql.schema import detectors
from service.store.verdicts.standing import issued_route, read_standing, route_of
from tests.workers.guarding import (
    DOWN,
    NOW,
    Backends,
    GuardMaker,
    actions,
    approve,
    judged,
    log_of,
    serving,
)
from tests.workers.scripted import Reply
from workers.guard import publish_routes, watch_serving
from workers.rollback import does_harm
from workers.watching import Guard


def test_a_route_that_redis_does_not_have_is_published(guard_of: GuardMaker, up: str) -> None:
    guard = guard_of(up, up, up)
    route = set_route(guard.db, Route.only("m", "w8a8"), at=NOW, actor="somebody")
    publish_routes(guard)
    assert guard.captures.read_route("m") == route


@pytest.mark.parametrize(
    "there",
    [
        b"not json",
        b'{"model": "m", "weights": {"bf16": 100}, "version": 0}',
        b'{"model": "m", "weights": {"w8a8": 100}, "version": 1, "issued_at": 1e15}',
        b'{"model": "m", "weights": {"w8a8": 100}, "version": 1}',
        b'{"model": "m", "weights": {"w4a16": 100}, "version": 1000000000000000000}',
    ],
)
def test_a_route_that_redis_has_wrong_is_published_again(
    there: bytes, guard_of: GuardMaker, up: str, redis_client: redis.Redis
) -> None:
    guard = guard_of(up, up, up)
    route = set_route(guard.db, Route.only("m", "w8a8"), at=NOW, actor="somebody")
    redis_client.hset("tiergate:routes", "m", there)
    publish_routes(guard)
    published = guard.captures.read_route("m")
    assert published == route
    assert published.issued_at == route.issued_at


def test_a_later_route_in_redis_is_kept_and_told(
    guard_of: GuardMaker, up: str, caplog: pytest.LogCaptureFixture
) -> None:
    guard = guard_of(up, up, up)
    set_route(guard.db, Route.only("m", "w8a8"), at=NOW, actor="somebody")
    newer = Route(model="m", weights={"w4a16": 100}, version=1, issued_at=time.time())
    assert newer.issued_at > NOW
    guard.captures.publish_route(newer)
    publish_routes(guard)
    assert guard.captures.read_route("m") == newer
    assert "restored from a backup" in caplog.text


def test_a_tier_that_serves_and_does_harm_is_rolled_back_and_proxies_are_told(
    guard_of: GuardMaker, up: str
) -> None:
    guard = guard_of(up, up, up)
    approve(guard.db, "w8a8")
    judged(guard.db, "w8a8", harm=True)
    watch_serving(guard, now=NOW)
    assert serving(guard) == {"bf16": 100}
    told = guard.captures.read_route("m")
    assert told is not None
    assert told.serving == "bf16"
    entry = read(guard.db, "m")[-1]
    assert (entry.actor, entry.action, entry.tier) == ("guard", "roll_back", "bf16")
    assert entry.detail["from"] == "w8a8"
    assert entry.detail["because"] == "harm"
    assert entry.detail["reasons"]
    watch_serving(guard, now=NOW)
    assert len(read(guard.db, "m")) == entry.seq


def test_a_tier_that_serves_and_does_no_harm_stays(guard_of: GuardMaker, up: str) -> None:
    guard = guard_of(up, up, up)
    approve(guard.db, "w8a8")
    judged(guard.db, "w8a8", harm=False)
    judged(guard.db, "w4a16", harm=True)  # it serves nobody
    watch_serving(guard, now=NOW)
    assert serving(guard) == {"w8a8": 100}


def test_only_the_share_of_the_harmful_tier_moves(guard_of: GuardMaker, up: str) -> None:
    guard = guard_of(up, up, up)
    set_route(guard.db, Route(model="m", weights={"bf16": 75, "w4a16": 25}), at=NOW, actor="somebody")
    judged(guard.db, "w4a16", harm=True)
    watch_serving(guard, now=NOW)
    assert serving(guard) == {"bf16": 100}


def test_it_goes_back_one_rung_where_that_one_is_approved(guard_of: GuardMaker, up: str) -> None:
    guard = guard_of(up, up, up)
    approve(guard.db, "w8a8")
    judged(guard.db, "w8a8", harm=False)
    approve(guard.db, "w4a16")
    judged(guard.db, "w4a16", harm=True)
    watch_serving(guard, now=NOW)
    assert serving(guard) == {"w8a8": 100}


@pytest.mark.parametrize("what", ["not approved", "harmful too", "down"])
def test_a_rung_that_may_not_serve_is_passed_over(what: str, guard_of: GuardMaker, up: str) -> None:
    guard = guard_of(up, DOWN if what == "down" else up, up)
    if what != "not approved":
        approve(guard.db, "w8a8")
    judged(guard.db, "w8a8", harm=what == "harmful too")
    approve(guard.db, "w4a16")
    judged(guard.db, "w4a16", harm=True)
    watch_serving(guard, now=NOW)
    assert serving(guard) == {"bf16": 100}


def test_without_a_healthy_rung_the_route_stays_and_that_is_logged_once(
    guard_of: GuardMaker, up: str
) -> None:
    guard = guard_of(DOWN, DOWN, up)
    approve(guard.db, "w4a16")
    judged(guard.db, "w4a16", harm=True)
    watch_serving(guard, now=NOW)
    watch_serving(guard, now=NOW)
    assert serving(guard) == {"w4a16": 100}
    assert actions(guard).count(("guard", "roll_back_refused")) == 1


def three_serve(guard: Guard) -> None:
    """The two candidates have half of the clients each."""
    approve(guard.db, "w8a8")
    approve(guard.db, "w4a16", weight=50)


def test_a_rung_that_waits_for_a_person_keeps_none_below_it_in_service(guard_of: GuardMaker, up: str) -> None:
    """Of the upper one the engines are not settled: what rings there may be the stack."""
    guard = guard_of(up, up, up, gates=(Gate.ATTRIBUTION,), attribution=Attribution())
    unsettled = {"w4a16": Attribution(unsettled="w4a16: its backends disagree")}
    question = replace(guard.question, attribution_of=lambda model, tier: unsettled.get(tier, Attribution()))
    guard = replace(guard, question=question)
    three_serve(guard)
    judged(guard.db, "w4a16", harm=True, count=40, at=NOW + 1)
    judged(guard.db, "w8a8", harm=True, at=NOW + 1)
    watch_serving(guard, now=NOW + 2)
    assert serving(guard) == {"bf16": 50, "w4a16": 50}
    assert [entry.tier for entry in log_of(guard, "alarm")] == ["w4a16"]


def test_where_the_policy_says_ask_every_harmful_tier_is_told(guard_of: GuardMaker, up: str) -> None:
    guard = guard_of(up, up, up, on_harm=OnHarm.ASK)
    three_serve(guard)
    for tier in ("w8a8", "w4a16"):
        judged(guard.db, tier, harm=True)
    watch_serving(guard, now=NOW)
    assert [entry.tier for entry in log_of(guard, "harm")] == ["w4a16", "w8a8"]


def test_every_harmful_tier_that_cannot_be_rolled_back_is_told(guard_of: GuardMaker, up: str) -> None:
    guard = guard_of(DOWN, up, up)
    three_serve(guard)
    for tier in ("w8a8", "w4a16"):
        judged(guard.db, tier, harm=True)
    watch_serving(guard, now=NOW)
    assert serving(guard) == {"w8a8": 50, "w4a16": 50}
    assert [entry.tier for entry in log_of(guard, "roll_back_refused")] == ["w4a16", "w8a8"]


def test_where_the_policy_says_ask_harm_is_logged_once_across_restarts(guard_of: GuardMaker, up: str) -> None:
    guard = guard_of(up, up, up, on_harm=OnHarm.ASK)
    approve(guard.db, "w8a8")
    judged(guard.db, "w8a8", harm=True)
    watch_serving(guard, now=NOW)
    watch_serving(guard, now=NOW)
    watch_serving(guard_of(up, up, up, on_harm=OnHarm.ASK), now=NOW)
    assert serving(guard) == {"w8a8": 100}
    assert actions(guard).count(("guard", "harm")) == 1


def test_an_approval_given_in_full_knowledge_of_the_harm_stands(guard_of: GuardMaker, up: str) -> None:
    guard = guard_of(up, up, up)
    judged(guard.db, "w8a8", harm=True)
    approve(guard.db, "w8a8", override=True, decision="reject")
    watch_serving(guard, now=NOW)
    assert serving(guard) == {"w8a8": 100}


def test_an_override_of_an_undecided_verdict_does_not_cover_harm_shown_later(
    guard_of: GuardMaker, up: str
) -> None:
    guard = guard_of(up, up, up)
    approve(guard.db, "w8a8", override=True, decision="undecided")
    judged(guard.db, "w8a8", harm=True)
    watch_serving(guard, now=NOW)
    assert serving(guard) == {"bf16": 100}


def test_a_rejection_for_latency_or_money_is_for_a_person(guard_of: GuardMaker, up: str) -> None:
    guard = guard_of(up, up, up)
    judged(guard.db, "w8a8", harm=False)
    ladder = guard.ladders["m"]
    rung = read_standing(guard.db, ladder, guard.question, now=NOW).rung("w8a8")
    assert rung.verdict is not None
    slow = replace(rung, verdict=replace(rung.verdict, decision=Decision.REJECT))
    assert not does_harm(slow)


def test_a_route_that_somebody_else_changes_meanwhile_is_left_to_the_next_look(
    guard_of: GuardMaker, backend: Backends
) -> None:
    def meanwhile(asked: object) -> Reply:
        # Answers the health check of the rung to go back to.
        set_route(guard.db, Route.only("m", "w8a8"), at=NOW, actor="somebody")
        return Reply(text="ok")

    guard = guard_of(backend(meanwhile).url, DOWN, DOWN)
    approve(guard.db, "w4a16")
    judged(guard.db, "w4a16", harm=True)
    watch_serving(guard, now=NOW)
    assert serving(guard) == {"w8a8": 100}
    assert ("guard", "roll_back") not in actions(guard)


def test_while_a_tier_that_is_not_configured_any_more_is_routed_to_the_baseline_is_what_serves(
    guard_of: GuardMaker, up: str
) -> None:
    """As for proxies, which do not follow such a route; it stays published, in case the tier comes back."""
    guard = guard_of(up, up, up)
    approve(guard.db, "w8a8", weight=10)
    approve(guard.db, "w4a16", weight=80)
    judged(guard.db, "w8a8", harm=True)
    ladder = replace(guard.ladders["m"], tiers=guard.ladders["m"].tiers[:2])
    assert dict(route_of(guard.db, ladder).weights) == {"bf16": 100}
    shrunk = replace(guard, ladders={"m": ladder})
    watch_serving(shrunk, now=NOW + 5)
    publish_routes(shrunk)
    assert dict(issued_route(guard.db, ladder).weights) == {"bf16": 10, "w8a8": 10, "w4a16": 80}
    assert guard.captures.read_route("m") == issued_route(guard.db, ladder)
    assert "roll_back" not in [action for _, action in actions(guard)]
    watch_serving(guard, now=NOW + 6)
    assert serving(guard) == {"bf16": 20, "w4a16": 80}


def test_what_is_broken_about_one_model_keeps_no_other_from_being_rolled_back(
    guard_of: GuardMaker, up: str
) -> None:
    guard = guard_of(up, up, up)
    approve(guard.db, "w8a8")
    judged(guard.db, "w8a8", harm=True)
    set_route(guard.db, Route.only("another", "w8a8"), at=NOW, actor="somebody")
    with guard.db.write() as connection:
        connection.execute(
            detectors.insert().values(
                model="another",
                tier="w8a8",
                epoch=guard.question.epoch_of("another", "w8a8"),
                criterion="structured_output",
                state="{}",
                started_at=NOW,
                stopped_at=None,
                floor=NOW,
            )
        )
    both = {"another": replace(guard.ladders["m"], model="another"), **guard.ladders}
    with pytest.raises(ExceptionGroup) as failed:
        watch_serving(replace(guard, ladders=both), now=NOW + 5)
    assert failed.value.exceptions[0].__notes__ == ["while another was watched"]
    assert serving(guard) == {"bf16": 100}


def test_who_approves_a_tier_anew_is_told_anew_of_its_harm(guard_of: GuardMaker, up: str) -> None:
    guard = guard_of(up, up, up, on_harm=OnHarm.ASK)
    approve(guard.db, "w8a8")
    judged(guard.db, "w8a8", harm=True)
    watch_serving(guard, now=NOW + 5)
    approve(guard.db, "w8a8", at=NOW + 10)
    for seconds in (11, 12, 13):
        watch_serving(guard, now=NOW + seconds)
    assert [action for _, action in actions(guard)].count("harm") == 2


def test_of_guards_that_look_at_once_one_tells(guard_of: GuardMaker, up: str) -> None:
    guard = guard_of(up, up, up, on_harm=OnHarm.ASK)
    approve(guard.db, "w8a8")
    judged(guard.db, "w8a8", harm=True)
    guards = [guard_of(up, up, up, on_harm=OnHarm.ASK) for _ in range(4)]
    with ThreadPoolExecutor(len(guards)) as pool:
        list(pool.map(lambda each: watch_serving(each, now=NOW + 5), guards))
    assert [action for _, action in actions(guard)].count("harm") == 1
