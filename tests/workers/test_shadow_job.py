"""A whole shadow job in this process: real engines of declared speed, a real database, no Celery."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis

from service.decision.policy import Gate
from service.fleet import Backend, Ladder, Route
from service.load.figures import BlockFigures
from service.settings import Settings
from service.store.decided.routes import set_route
from service.store.load.jobs import BlockState, Job, JobState, cancel_job, read_job
from service.store.load.load_blocks import hold_on, lease_block, read_blocks
from service.store.load.turns import waiting_for_turn
from service.store.redis.worker_counts import WorkerCounts
from service.store.sql.database import Database
from service.store.verdicts.measurements import latest_measurement
from tests.conftest import ValkeyServer
from tests.ports import free_port
from tests.workers.load_walk import IMPATIENT, Engines, begin_by_hand, fill_corpus, run_all, settings_of
from tests.workers.test_load_heart import Proxy
from tests.workers.walk import MODEL
from workers.metrics import LOAD_BLOCKS, LOAD_LAG, LOAD_REQUESTS
from workers.shadow_job import MOST_ATTEMPTS, LoadRoom, run_load_block, turn

QUICK = {
    "warm_up": "200ms",
    "settle": "100ms",
    "window": "3200ms",
    "blocks": 8,
    "rate": "20/s",
    "arrivals": "constant",
}
"""Blocks of 0.4 s."""
TOGETHER = {**QUICK, "rate": "8/s", "arms": "together"}
"""The next request is due long after a scheduler in trouble has come to this one."""


@pytest.fixture
def configured(tmp_path: Path, valkey: ValkeyServer, sqlite_url: str) -> Callable[..., Settings]:
    def make(baseline: str, candidate: str, **more: Any) -> Settings:
        return settings_of(
            tmp_path,
            redis_url=valkey.url,
            database_url=sqlite_url,
            tiers=[("bf16", baseline, 60.0), ("w8a8", candidate, 60.0)],
            **{"plan": QUICK, **more},
        )

    return make


def test_a_tier_that_is_late_fails_the_slo_gate_though_its_answers_are_the_same(
    configured: Callable[..., Settings], room_of: Callable[..., LoadRoom], engines: Engines, db: Database
) -> None:
    """Its tokens are 1.5 s apart, where 0.3 s are promised and the baseline's come at once."""
    fill_corpus(db)
    settings = configured(engines(tokens=2), engines(tokens=2, rate=0, pause=1.5), plan=TOGETHER)
    job = run_all(room_of(settings), begin_by_hand(settings, db, time.time(), parts=("slo",)))
    assert (job.state, job.reason) == (JobState.DONE, "")
    findings = job.findings
    assert findings is not None
    gate = next(each for each in findings["gates"] if each["tier"] == "w8a8")
    blocks = [BlockFigures.of(block.figures or {}) for block in read_blocks(db, job.job_id, columns=True)]
    assert all(len(each.columns.met) == each.offered for each in blocks)
    assert gate["shown"] == "failed", gate["reason"]
    arms = {arm["tier"]: arm for arm in findings["slo"]["arms"]}
    assert arms["w8a8"]["passed"] == 0
    assert arms["bf16"]["passed"] == arms["bf16"]["offered"] == arms["w8a8"]["offered"] > 0
    assert {each.mean_output_tokens for each in blocks} == {2.0}, "but for the time they are the same"
    kept = latest_measurement(db, MODEL, "w8a8", Gate.SLO, gate["epoch"], since=0.0)
    assert kept is not None
    assert kept.run == 1


def test_a_route_that_changes_under_a_job_aborts_it_naming_the_backend(
    configured: Callable[..., Settings], room_of: Callable[..., LoadRoom], engines: Engines, db: Database
) -> None:
    fill_corpus(db)
    fast = engines(seconds=0.02)
    settings = configured(fast, engines(seconds=0.02))
    job = begin_by_hand(settings, db, time.time(), parts=("slo",))
    room = room_of(settings)
    turn(room, job.job_id)
    assert run_load_block(room, job.job_id, 0) == "done"
    set_route(db, Route(model=MODEL, weights={"bf16": 95, "w8a8": 5}), at=time.time(), actor="ann")
    assert run_load_block(room, job.job_id, 1) == "aborted"
    ended = read_job(db, job.job_id)
    candidate = settings.ladders[MODEL].tier("w8a8").backends[0].url
    assert ended.state is JobState.ABORTED
    assert f"w8a8: {candidate} serves clients as {MODEL}/w8a8" in ended.reason
    assert ended.blocks_done == 1


def test_a_block_that_is_held_is_not_run_and_one_that_ends_its_workers_ends_the_job(
    configured: Callable[..., Settings], room_of: Callable[..., LoadRoom], engines: Engines, db: Database
) -> None:
    fill_corpus(db)
    fast = engines(seconds=0.02)
    settings = configured(fast, fast)
    job = begin_by_hand(settings, db, time.time(), parts=("slo",))
    room = room_of(settings)
    turn(room, job.job_id)
    long_ago = time.time() - 1000
    for attempt in range(MOST_ATTEMPTS):
        held = lease_block(db, job.job_id, 0, owner="dies", now=long_ago + 200 * attempt)
        assert held is not None
    hold_on(db, held, now=time.time())
    assert run_load_block(room, job.job_id, 0) == "not_ours"
    hold_on(db, held, now=long_ago, seconds=1.0)
    assert run_load_block(room, job.job_id, 0) == "failed"
    assert "was begun 3 times and never ended" in read_job(db, job.job_id).reason


def test_a_worker_that_is_to_stop_gives_its_block_back_as_if_it_had_never_begun(
    configured: Callable[..., Settings], room_of: Callable[..., LoadRoom], engines: Engines, db: Database
) -> None:
    fill_corpus(db)
    fast = engines(seconds=0.02)
    settings = configured(fast, fast, plan={**QUICK, "window": "10m"})
    job = begin_by_hand(settings, db, time.time(), parts=("slo",))
    turn(room_of(settings), job.job_id)
    assert run_load_block(room_of(settings, stopping=lambda: True), job.job_id, 0) == "given_back"
    [block] = read_blocks(db, job.job_id, done=False)
    assert (block.state, block.leases) == (BlockState.DUE, 0)


def test_a_cancelled_job_ends_in_the_middle_of_its_block(
    configured: Callable[..., Settings], room_of: Callable[..., LoadRoom], engines: Engines, db: Database
) -> None:
    fill_corpus(db)
    fast = engines(seconds=0.02)
    settings = configured(fast, fast, plan={**QUICK, "window": "10m"})
    job = begin_by_hand(settings, db, time.time(), parts=("slo",))
    cancelling: list[Job] = []

    def cancel_soon() -> bool:
        if not cancelling and read_job(db, job.job_id).state is JobState.RUNNING:
            cancelling.append(cancel_job(db, job.job_id, actor="bob", now=time.time()))
        return False

    room = room_of(settings, stopping=cancel_soon)
    turn(room, job.job_id)
    assert run_load_block(room, job.job_id, 0) == "cancelled"
    ended = read_job(db, job.job_id)
    assert (ended.state, ended.reason, ended.blocks_done) == (JobState.CANCELLED, "cancelled by bob", 0)


def test_a_turn_that_a_dead_worker_left_is_taken_by_whoever_looks(
    configured: Callable[..., Settings], room_of: Callable[..., LoadRoom], engines: Engines, db: Database
) -> None:
    fill_corpus(db)
    fast = engines(seconds=0.02)
    settings = configured(fast, fast)
    job = begin_by_hand(settings, db, time.time(), parts=("slo",))
    room = room_of(settings)
    assert waiting_for_turn(db) == [job.job_id]
    assert turn(room, job.job_id)
    assert not turn(room, job.job_id), "there is a block by now"
    assert run_load_block(room, job.job_id, 0) == "done"
    assert [block.number for block in read_blocks(db, job.job_id, done=False)] == [0, 1]


def test_a_job_whose_tier_was_taken_out_of_the_configuration_ends_and_says_so(
    configured: Callable[..., Settings], room_of: Callable[..., LoadRoom], engines: Engines, db: Database
) -> None:
    fill_corpus(db)
    fast = engines(seconds=0.02)
    settings = configured(fast, fast)
    job = begin_by_hand(settings, db, time.time(), parts=("slo",))
    for changed, words in (({}, "no model is called"), (settings.ladders, "")):
        room = room_of(settings, ladders=changed)
        assert turn(room, job.job_id) is True
        ended = read_job(db, job.job_id)
        assert words in ended.reason
        assert ended.state.over == bool(words)
        if words:
            job = begin_by_hand(settings, db, time.time() + 1, parts=("slo",))
    other = moved_elsewhere(settings)
    assert run_load_block(room_of(settings, ladders=other), job.job_id, 0) == "failed"
    assert "backends of 'w8a8' for load are not those" in read_job(db, job.job_id).reason


def moved_elsewhere(settings: Settings) -> dict[str, Ladder]:
    """Ladders whose candidate has moved."""
    ladder = settings.ladders[MODEL]
    moved = replace(ladder.tiers[1], backends=(Backend(url="http://127.0.0.1:9999"),))
    return {MODEL: replace(ladder, tiers=(ladder.tiers[0], moved))}


def test_a_tier_that_is_down_ends_the_job_and_says_so(
    configured: Callable[..., Settings], room_of: Callable[..., LoadRoom], engines: Engines, db: Database
) -> None:
    fill_corpus(db)
    settings = configured(engines(seconds=0.02), f"http://127.0.0.1:{free_port()}")
    job = run_all(room_of(settings), begin_by_hand(settings, db, time.time(), parts=("slo",)))
    assert job.state is JobState.FAILED
    assert "w8a8 answered nothing in 2 blocks in a row" in job.reason
    assert (job.findings or {})["gates"] == []


def test_a_tier_that_takes_requests_and_never_answers_ends_the_job_in_its_sweep(
    configured: Callable[..., Settings], room_of: Callable[..., LoadRoom], engines: Engines, db: Database
) -> None:
    """However long an answer may be waited for: a sweep waits for nobody beyond the SLO's TTFT."""
    fill_corpus(db)
    settings = configured(engines(seconds=0.02), engines(seconds=36_000), slo=IMPATIENT)
    job = run_all(room_of(settings), begin_by_hand(settings, db, time.time(), parts=("sweep",)))
    assert job.state is JobState.FAILED
    assert "w8a8 answered nothing in 2 blocks in a row (given_up" in job.reason
    blocks = [BlockFigures.of(block.figures or {}) for block in read_blocks(db, job.job_id)]
    hung = [each for each in blocks if each.plan.tier == "w8a8"]
    assert [each.answered for each in hung] == [0, 0]
    assert hung[1].plan.rate is not None
    assert hung[0].plan.rate is not None
    assert hung[1].plan.rate < hung[0].plan.rate


def test_clients_are_watched_on_capacity_that_serves_and_without_a_proxy_to_ask_nothing_is_loaded(
    configured: Callable[..., Settings], room_of: Callable[..., LoadRoom], engines: Engines, db: Database
) -> None:
    fill_corpus(db)
    fast = engines(seconds=0.02)
    nowhere = f"http://127.0.0.1:{free_port()}"
    settings = configured(fast, fast, plan={**QUICK, "watch": [nowhere]})
    job = begin_by_hand(settings, db, time.time(), own_capacity=True)
    room = room_of(settings)
    turn(room, job.job_id)
    assert run_load_block(room, job.job_id, 0) == "aborted"
    assert f"the proxy at {nowhere} does not tell how its clients fare" in read_job(db, job.job_id).reason


def test_the_first_breach_of_the_clients_slo_aborts_a_job_on_capacity_that_serves(
    configured: Callable[..., Settings], room_of: Callable[..., LoadRoom], engines: Engines, db: Database
) -> None:
    fill_corpus(db)
    fast = engines(seconds=0.02)
    proxy = Proxy()
    try:
        settings = configured(
            fast, fast, plan={**QUICK, "window": "10m", "watch": [proxy.url]}, slo=IMPATIENT
        )
        job = begin_by_hand(settings, db, time.time(), own_capacity=True)

        def lose_soon() -> bool:
            if read_job(db, job.job_id).state is JobState.RUNNING:
                proxy.counted(in_time=0, answers=100)
            return False

        room = room_of(settings, stopping=lose_soon)
        turn(room, job.job_id)
        assert run_load_block(room, job.job_id, 0) == "aborted"
    finally:
        proxy.stop()
    ended = read_job(db, job.job_id)
    assert ended.state is JobState.ABORTED
    assert f"clients of {MODEL} lose their SLO: of 100 requests of clients 100 began late" in ended.reason
    assert (ended.findings or {})["gates"] == []


def test_gates_of_a_job_whose_backends_clients_used_meanwhile_stay_undecided(
    configured: Callable[..., Settings], room_of: Callable[..., LoadRoom], engines: Engines, db: Database
) -> None:
    fill_corpus(db)
    fast = engines(seconds=0.02)
    proxy = Proxy()
    try:
        settings = configured(fast, fast, plan={**QUICK, "watch": [proxy.url]})
        job = begin_by_hand(settings, db, time.time(), own_capacity=True, parts=("slo",))
        proxy.answers_a_look = 10
        ended = run_all(room_of(settings), job)
    finally:
        proxy.stop()
    assert (ended.state, ended.reason) == (JobState.DONE, "")
    assert sum(block.clients for block in read_blocks(db, job.job_id)) > 100
    gates = (ended.findings or {})["gates"]
    assert {gate["shown"] for gate in gates} == {"undecided"}
    assert "so that it was not equal" in gates[1]["reason"]
    assert latest_measurement(db, MODEL, "w8a8", Gate.SLO, gates[1]["epoch"], since=0.0) is None


def test_arms_with_backends_of_their_own_run_at_the_same_time_and_are_counted(
    configured: Callable[..., Settings],
    room_of: Callable[..., LoadRoom],
    engines: Engines,
    db: Database,
    redis_client: redis.Redis,
) -> None:
    fill_corpus(db)
    settings = configured(engines(seconds=0.02), engines(seconds=0.02), plan={**QUICK, "arms": "together"})
    own = WorkerCounts(redis_client, worker="load@test")
    before = own.read()
    job = run_all(room_of(settings), begin_by_hand(settings, db, time.time(), parts=("slo",)))
    assert (job.state, job.reason) == (JobState.DONE, "")
    blocks = read_blocks(db, job.job_id, columns=True)
    assert len(blocks) >= 16
    figures = [BlockFigures.of(block.figures or {}) for block in blocks]
    for place in range(0, len(blocks), 2):
        one, other = blocks[place : place + 2]
        assert {one.tier, other.tier} == {"bf16", "w8a8"}
        assert (one.started_at, one.ended_at) == (other.started_at, other.ended_at)
        assert figures[place].columns.scheduled == figures[place + 1].columns.scheduled
        assert figures[place].columns.request == figures[place + 1].columns.request
    findings = job.findings
    assert findings is not None
    assert {gate["tier"] for gate in findings["gates"]} == {"bf16", "w8a8"}
    counts = {name: count - before.get(name, 0) for name, count in own.read().items()}

    def counted(series: str, label: str) -> int:
        return sum(
            count for name, count in counts.items() if name.startswith(f"{series}{{") and label in name
        )

    assert counted(LOAD_BLOCKS, 'ending="done"') == len(blocks)
    assert counted(LOAD_REQUESTS, 'count="due"') == sum(each.offered for each in figures)
    assert counts[f"{LOAD_LAG}_count"] >= counted(LOAD_REQUESTS, 'count="due"')


def test_a_job_goes_on_where_nothing_can_be_counted(
    configured: Callable[..., Settings], room_of: Callable[..., LoadRoom], engines: Engines, db: Database
) -> None:
    fill_corpus(db)
    fast = engines(seconds=0.02)
    settings = configured(fast, fast)
    job = begin_by_hand(settings, db, time.time(), parts=("slo",))
    nowhere = replace(settings, redis_url=f"redis://127.0.0.1:{free_port()}/0")
    room = room_of(nowhere)
    turn(room, job.job_id)
    assert run_load_block(room, job.job_id, 0) == "done"
    assert read_job(db, job.job_id).blocks_done == 1
