from __future__ import annotations

from typing import Any

import pytest

from service.store.decided.decisions import read
from service.store.load.jobs import (
    Cause,
    Job,
    JobRuns,
    JobState,
    Outlook,
    active_job,
    begin_job,
    cancel_job,
    end_job,
    list_jobs,
    read_job,
)
from service.store.load.load_blocks import finish_block, lease_block
from service.store.load.manifest import Manifest
from service.store.load.turns import Turn, take_turn
from service.store.sql.database import Database
from tests.store.load.test_load_blocks import FIGURES, PLAN
from tests.store.load.test_manifest import document

NOW = 1_800_000_000.0


def begun(db: Database, *, now: float = NOW, model: str = "m", **more: Any) -> Job:
    return begin_job(
        db, manifest=Manifest.of(document(model=model)), cause=Cause.REQUEST, actor="ann", now=now, **more
    )


def test_a_job_begins_with_nothing_done(database: Database) -> None:
    job = begun(database)
    assert job.state is JobState.WAITING
    assert (job.part, job.progress, job.blocks_done, job.findings) == ("", 0.0, 0, None)
    assert job.manifest.digest == Manifest.of(document()).digest
    assert read_job(database, job.job_id) == job
    assert active_job(database, "m") == job
    assert active_job(database, "n") is None


def test_a_model_has_one_job_at_a_time_and_another_one_its_own(database: Database) -> None:
    first = begun(database)
    with pytest.raises(JobRuns, match=first.job_id):
        begun(database, now=NOW + 1)
    begun(database, model="n", now=NOW + 2)
    end_job(database, first.job_id, JobState.FAILED, reason="gone", now=NOW + 3)
    second = begun(database, now=NOW + 4)
    assert [job.job_id for job in list_jobs(database, "m")] == [second.job_id, first.job_id]
    assert len(list_jobs(database)) == 3
    assert [job.job_id for job in list_jobs(database, limit=1)] == [second.job_id]


def test_a_job_is_found_by_how_its_name_begins_unless_two_begin_so(database: Database) -> None:
    first = begun(database)
    second = begun(database, model="n", now=NOW + 1)
    assert read_job(database, first.job_id[:-2]) == first
    with pytest.raises(KeyError):
        read_job(database, "2")
    with pytest.raises(KeyError):
        read_job(database, "%")
    assert read_job(database, second.job_id).model == "n"


def test_one_that_nobody_works_on_is_cancelled_at_once_and_stays_so(database: Database) -> None:
    job = begun(database)
    ended = cancel_job(database, job.job_id, actor="bob", now=NOW + 5)
    assert (ended.state, ended.reason, ended.ended_at) == (JobState.CANCELLED, "cancelled by bob", NOW + 5)
    again = cancel_job(database, job.job_id, actor="eve", now=NOW + 6)
    assert again == ended
    with pytest.raises(KeyError):
        cancel_job(database, "nobody", actor="bob", now=NOW)


def test_one_whose_block_is_being_run_is_cancelled_by_its_holder(database: Database) -> None:
    job = begun(database)
    take_turn(database, job.job_id, 0, Turn(then=PLAN, outlook=Outlook(blocks=2, seconds=8.0)), now=NOW)
    block = lease_block(database, job.job_id, 0, owner="w", now=NOW)
    assert block is not None
    told = cancel_job(database, job.job_id, actor="bob", now=NOW + 1)
    assert (told.state, told.cancelled_by) == (JobState.RUNNING, "bob")
    assert finish_block(database, block, figures=FIGURES, tokens=3, now=NOW + 2)
    take_turn(database, job.job_id, 1, Turn(then=PLAN, outlook=Outlook(blocks=2, seconds=8.0)), now=NOW + 2)
    ended = read_job(database, job.job_id)
    assert (ended.state, ended.blocks_done) == (JobState.CANCELLED, 1)


def test_progress_counts_what_is_done_and_what_was_spent_attempts_that_died_included(
    database: Database,
) -> None:
    job = begun(database)
    outlook = Outlook(blocks=4, seconds=16.0)
    take_turn(database, job.job_id, 0, Turn(then=PLAN, outlook=outlook), now=NOW)
    assert lease_block(database, job.job_id, 0, owner="dies", now=NOW, seconds=10.0) is not None
    block = lease_block(database, job.job_id, 0, owner="lives", now=NOW + 11)
    assert block is not None
    assert finish_block(database, block, figures=FIGURES, tokens=50, now=NOW + 15)
    found = read_job(database, job.job_id)
    assert (found.blocks_done, found.seconds_done, found.seconds_spent, found.tokens_spent) == (
        1,
        4.0,
        8.0,
        100,
    )
    assert found.progress == 0.25
    take_turn(database, job.job_id, 1, Turn(then=PLAN, outlook=outlook), now=NOW + 15)
    late = lease_block(database, job.job_id, 1, owner="waits", now=NOW + 15)
    assert late is not None
    assert finish_block(database, late, figures=FIGURES, tokens=0, now=NOW + 195)
    assert read_job(database, job.job_id).seconds_spent == pytest.approx(8.0 + 180.0), "not what was planned"
    assert (found.started_at, found.part, found.state) == (NOW, "slo", JobState.RUNNING)


def test_loading_backends_that_serve_is_in_the_decision_log(database: Database) -> None:
    job = begun(database, own_capacity=True)
    [entry] = read(database, "m", after=0, limit=10)
    assert (entry.action, entry.actor, entry.detail["job"]) == ("load_own_capacity", "ann", job.job_id)


def test_no_job_ends_in_the_middle(database: Database) -> None:
    job = begun(database)
    with pytest.raises(ValueError, match="running is no end"):
        end_job(database, job.job_id, JobState.RUNNING, reason="", now=NOW)
