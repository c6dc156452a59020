from __future__ import annotations

from typing import Any

import pytest

from service.store.load.jobs import (
    BlockState,
    Cause,
    Job,
    JobState,
    Outlook,
    begin_job,
    cancel_job,
    read_job,
)
from service.store.load.load_blocks import (
    Block,
    Outcome,
    break_off,
    finish_block,
    finish_blocks,
    forget_columns,
    give_back,
    hold_on,
    lease_block,
    read_blocks,
    to_enqueue,
)
from service.store.load.manifest import Manifest
from service.store.load.turns import Ending, Turn, settle_dropped, take_turn, waiting_for_turn
from service.store.sql.database import Database
from tests.store.load.test_manifest import document

NOW = 1_800_000_000.0
PLAN: dict[str, Any] = {
    "tier": "w8a8",
    "part": "slo",
    "arrivals": "poisson",
    "rate": 4.0,
    "concurrency": None,
    "seed": 1,
    "warm_up_seconds": 1.0,
    "window_seconds": 3.0,
    "cool_down_seconds": 0.0,
}
FIGURES: dict[str, Any] = {
    "plan": PLAN,
    "offered": 2,
    "passed": 1,
    "goodput": 2.5,
    "invalid": [],
    "columns": {"met": [True, False], "ttft": [0.1, None]},
}
OUTLOOK = Outlook(blocks=3, seconds=12.0)


def turn(**more: Any) -> Turn:
    return Turn(**{"then": PLAN, "outlook": OUTLOOK, **more})


@pytest.fixture
def job(database: Database) -> Job:
    return begin_job(
        database, manifest=Manifest.of(document()), cause=Cause.SCHEDULE, actor="schedule", now=NOW
    )


def leased(db: Database, job: Job, *, owner: str = "w", now: float = NOW, number: int = 0) -> Block:
    block = lease_block(db, job.job_id, number, owner=owner, now=now, seconds=120.0)
    assert block is not None
    return block


def test_a_job_without_a_block_waits_for_its_turn_which_is_taken_once(database: Database, job: Job) -> None:
    assert waiting_for_turn(database) == [job.job_id]
    assert take_turn(database, job.job_id, 0, turn(remarks=["so it is"], findings={"opening": {}}), now=NOW)
    assert not take_turn(database, job.job_id, 0, turn(), now=NOW)
    assert waiting_for_turn(database) == []
    found = read_job(database, job.job_id)
    assert (found.outlook, found.remarks, found.findings) == (OUTLOOK, ("so it is",), {"opening": {}})
    [block] = read_blocks(database, job.job_id, done=False)
    assert (block.number, block.tier, block.part, block.plan) == (0, "w8a8", "slo", PLAN)
    assert block.state is BlockState.DUE


def test_a_block_is_held_by_one_and_by_another_only_when_the_lease_ran_out(
    database: Database, job: Job
) -> None:
    take_turn(database, job.job_id, 0, turn(), now=NOW)
    first = leased(database, job, owner="a")
    assert lease_block(database, job.job_id, 0, owner="b", now=NOW + 119) is None
    assert lease_block(database, job.job_id, 0, owner="a", now=NOW + 1) is None, "a message delivered twice"
    assert hold_on(database, first, now=NOW + 100).held
    assert lease_block(database, job.job_id, 0, owner="b", now=NOW + 130) is None
    second = leased(database, job, owner="b", now=NOW + 221)
    assert second.leases == 2
    assert not hold_on(database, first, now=NOW + 222).held
    assert not finish_block(database, first, figures=FIGURES, tokens=9, now=NOW + 223)
    assert not give_back(database, first)
    assert not break_off(database, first, Ending(state=JobState.FAILED, reason="x"), now=NOW + 223)
    assert finish_block(database, second, figures=FIGURES, tokens=9, now=NOW + 224)
    assert lease_block(database, job.job_id, 0, owner="c", now=NOW + 999) is None, "settled"
    assert len(read_blocks(database, job.job_id)) == 1


def test_what_a_block_showed_comes_back_with_or_without_its_requests(database: Database, job: Job) -> None:
    take_turn(database, job.job_id, 0, turn(), now=NOW)
    assert finish_block(database, leased(database, job), figures=FIGURES, tokens=7, clients=3, now=NOW + 4)
    [plain] = read_blocks(database, job.job_id)
    assert plain.figures == {**FIGURES, "columns": {}}
    assert (plain.tokens, plain.clients, plain.started_at, plain.ended_at) == (7, 3, NOW, NOW + 4)
    [whole] = read_blocks(database, job.job_id, columns=True)
    assert whole.figures == FIGURES
    assert forget_columns(database, before=NOW + 4) == 0
    assert forget_columns(database, before=NOW + 5) == 1
    assert read_blocks(database, job.job_id, columns=True) == [plain]


def test_the_turn_after_a_block_is_taken_by_whoever_comes_first(database: Database, job: Job) -> None:
    take_turn(database, job.job_id, 0, turn(), now=NOW)
    assert finish_block(database, leased(database, job), figures=FIGURES, tokens=7, now=NOW + 4)
    assert waiting_for_turn(database) == [job.job_id], "its worker may have died just now"
    assert take_turn(database, job.job_id, 1, turn(then={**PLAN, "tier": "bf16"}), now=NOW + 5)
    assert not take_turn(database, job.job_id, 1, turn(), now=NOW + 5)
    assert [block.tier for block in read_blocks(database, job.job_id, done=False)] == ["w8a8", "bf16"]
    leased(database, job, number=1, now=NOW + 6)
    end = turn(then=Ending(state=JobState.DONE))
    assert not take_turn(database, job.job_id, 1, end, now=NOW + 7)


def test_a_turn_may_end_the_job(database: Database, job: Job) -> None:
    assert take_turn(
        database, job.job_id, 0, turn(then=Ending(state=JobState.FAILED, reason="no backend")), now=NOW + 1
    )
    found = read_job(database, job.job_id)
    assert (found.state, found.reason, found.ended_at) == (JobState.FAILED, "no backend", NOW + 1)
    assert not take_turn(database, job.job_id, 0, turn(), now=NOW + 2), "it is over"
    assert waiting_for_turn(database) == []


def test_the_broker_is_told_once_and_again_when_nobody_came(database: Database, job: Job) -> None:
    take_turn(database, job.job_id, 0, turn(), now=NOW)
    due = [(job.job_id, 0)]
    assert to_enqueue(database, now=NOW, again_after=120.0) == due
    assert to_enqueue(database, now=NOW + 119, again_after=120.0) == []
    assert to_enqueue(database, now=NOW + 121, again_after=120.0) == due
    block = leased(database, job, now=NOW + 122)
    assert to_enqueue(database, now=NOW + 241, again_after=1.0) == []
    assert to_enqueue(database, now=NOW + 243, again_after=1.0) == due, "its holder died"
    second = leased(database, job, now=NOW + 244, owner="b")
    assert give_back(database, second)
    assert to_enqueue(database, now=NOW + 245, again_after=120.0) == due, "given back: at once"
    third = leased(database, job, now=NOW + 246)
    assert third.leases == 2, "the one that was given back does not count"
    assert block.leases == 1


def test_a_holder_hears_of_a_cancellation_and_a_dropped_block_ends_without_one(
    database: Database, job: Job
) -> None:
    take_turn(database, job.job_id, 0, turn(), now=NOW)
    block = leased(database, job)
    cancel_job(database, job.job_id, actor="bob", now=NOW + 1)
    grip = hold_on(database, block, now=NOW + 2)
    assert (grip.held, grip.cancelled_by) == (True, "bob")
    assert settle_dropped(database, now=NOW + 3) == []
    assert settle_dropped(database, now=NOW + 123) == [job.job_id]
    found = read_job(database, job.job_id)
    assert (found.state, found.reason) == (JobState.CANCELLED, "cancelled by bob")
    [left] = read_blocks(database, job.job_id, done=False)
    assert left.state is BlockState.ABANDONED
    assert lease_block(database, job.job_id, 0, owner="c", now=NOW + 999) is None


def test_a_holder_may_end_the_job_in_the_middle(database: Database, job: Job) -> None:
    take_turn(database, job.job_id, 0, turn(), now=NOW)
    block = leased(database, job)
    ending = Ending(state=JobState.ABORTED, reason="clients lose their SLO")
    assert break_off(database, block, ending, now=NOW + 2)
    found = read_job(database, job.job_id)
    assert (found.state, found.reason, found.blocks_done) == (JobState.ABORTED, "clients lose their SLO", 0)


def beside(**more: Any) -> Turn:
    return turn(beside=[{**PLAN, "tier": "bf16"}], **more)


def finished(db: Database, *blocks: Block, now: float) -> bool:
    return finish_blocks(db, [Outcome(block=each, figures=FIGURES, tokens=7) for each in blocks], now=now)


@pytest.mark.parametrize("number", [0, 1])
def test_blocks_of_one_turn_are_leased_kept_and_settled_together_whichever_is_told(
    number: int, database: Database, job: Job
) -> None:
    assert take_turn(database, job.job_id, 0, beside(), now=NOW)
    assert to_enqueue(database, now=NOW, again_after=120.0) == [(job.job_id, 0)]
    assert to_enqueue(database, now=NOW + 1, again_after=120.0) == []
    block = leased(database, job, number=number)
    assert [(each.number, each.tier) for each in block.together] == [(0, "w8a8"), (1, "bf16")]
    assert {each.leases for each in block.together} == {1}
    for each in (0, 1):
        assert lease_block(database, job.job_id, each, owner="other", now=NOW + 1) is None
    assert hold_on(database, block, now=NOW + 100, seconds=120.0).held
    assert {each.lease_until for each in read_blocks(database, job.job_id, done=False)} == {NOW + 220}
    assert finished(database, *block.together, now=NOW + 104)
    assert [each.state for each in read_blocks(database, job.job_id)] == [BlockState.DONE] * 2
    assert waiting_for_turn(database) == [job.job_id]
    assert not take_turn(database, job.job_id, 1, turn(), now=NOW + 105), "two are there by now"
    assert take_turn(database, job.job_id, 2, turn(), now=NOW + 105)


def test_blocks_of_one_turn_that_a_dead_worker_leaves_are_begun_anew_together(
    database: Database, job: Job
) -> None:
    take_turn(database, job.job_id, 0, beside(), now=NOW)
    lost = leased(database, job, owner="dies")
    found = leased(database, job, owner="lives", now=NOW + 121, number=1)
    assert {each.leases for each in found.together} == {2}
    assert not hold_on(database, lost, now=NOW + 122).held
    assert not finished(database, *lost.together, now=NOW + 123)
    assert read_blocks(database, job.job_id) == []
    assert give_back(database, found)
    assert {each.state for each in read_blocks(database, job.job_id, done=False)} == {BlockState.DUE}
    again = leased(database, job, owner="third", now=NOW + 124)
    assert finished(database, *again.together, now=NOW + 128)


def test_a_cancelled_job_leaves_none_of_the_blocks_of_its_turn(database: Database, job: Job) -> None:
    take_turn(database, job.job_id, 0, beside(), now=NOW)
    block = leased(database, job)
    assert break_off(database, block, Ending(state=JobState.CANCELLED, reason="x"), now=NOW + 2)
    left = read_blocks(database, job.job_id, done=False)
    assert [each.state for each in left] == [BlockState.ABANDONED] * 2
    assert not finished(database, *block.together, now=NOW + 3)
