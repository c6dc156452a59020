"""When the walk goes on, when it ends, and when it gives up."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from service.client.connection import TiergateClient
from service.decision.verdict import Decision
from service.demo import walk as walking
from service.demo.driver import Driver
from service.demo.plan import CLIENT_MODEL, QUICK, DemoPlan
from service.demo.walk import Position, WalkBroken, Walked, walk
from service.demo.workload import Load, workload
from tests.demo.scripted import Scripted, serving

SMALL = replace(QUICK, load=Load(extractions=8, notes=8, questions=8, sentences=11, facts=3))


def shortly(seconds: float) -> None:
    """Looks every 20 ms instead of every other second."""
    walking.time.sleep(min(seconds, 0.02))


@contextmanager
def clients(server: Scripted, plan: DemoPlan) -> Iterator[tuple[Driver, TiergateClient]]:
    prompts = workload(plan.load, 1)
    with (
        Driver(prompts, proxy_url=server.url, model=CLIENT_MODEL, clients=plan.clients) as driver,
        TiergateClient(server.url) as client,
    ):
        yield driver, client


def walked(server: Scripted, plan: DemoPlan, seen: list[Position], seconds: float = 0.0) -> Walked:
    """A walk on a clock that moves by so much at every look."""
    ticks = itertools.count()
    with clients(server, plan) as (driver, client):
        return walk(
            plan, driver, client, show=seen.append, clock=lambda: next(ticks) * seconds, sleep=shortly
        )


def answering(scripted: Scripted) -> Scripted:
    scripted.answers.set()
    return scripted


def test_it_ends_when_every_tier_is_decided() -> None:
    def decide(tier: str, judged: int) -> str:
        if tier == "q2_k":
            return "reject" if judged >= 4 else "undecided"
        return "accept" if judged >= 10 else "undecided"

    seen: list[Position] = []
    with serving(answering(Scripted(decide=decide))) as server:
        end = walked(server, SMALL, seen)
    assert end.last.ending == "every tier is decided"
    assert 10 <= len(server.bodies) < SMALL.load.total
    assert end.last.judged == len(server.bodies) == end.last.answered == end.last.sent
    assert [reading.verdict.decision for reading in end.last.verdicts] == [Decision.ACCEPT, Decision.REJECT]
    assert end.ledger["balanced"] is True
    assert seen[-1] == end.last


def test_it_ends_when_every_prompt_was_sent_and_judged() -> None:
    with serving(answering(Scripted())) as server:
        end = walked(server, SMALL, [])
    assert end.last.ending == "every prompt was sent"
    assert end.last.judged == SMALL.load.total
    assert not end.last.decided


def test_it_ends_when_its_time_is_over() -> None:
    with serving(answering(Scripted())) as server:
        end = walked(server, replace(SMALL, traffic_seconds=100), [], seconds=30)
    assert end.last.ending == "100 s are over"
    assert end.last.judged == len(server.bodies) < SMALL.load.total


def test_the_clients_wait_for_a_worker_that_falls_behind() -> None:
    with serving(answering(Scripted(worker_stopped=True))) as server:
        with pytest.raises(WalkBroken, match=r"6 captures are not judged yet; the ledger says"):
            walked(server, replace(SMALL, traffic_seconds=100), [], seconds=10)
        assert len(server.bodies) == SMALL.backlog


def test_it_gives_up_when_requests_fail() -> None:
    with (
        serving(answering(Scripted(status=502))) as server,
        pytest.raises(WalkBroken, match="requests were not answered: status 502"),
    ):
        walked(server, SMALL, [])
