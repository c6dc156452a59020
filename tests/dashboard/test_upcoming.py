"""When the next job begins, what hinders it, and how long one still takes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.dashboard.upcoming import Upcoming, ahead
from service.store.load.jobs import Cause, Job, JobState, Outlook
from service.store.load.manifest import Manifest
from tests.store.load.test_manifest import document

NOW = 1_800_000_000.0


def job(**changes: object) -> Job:
    told = {
        "job_id": "20270115-080000-aaaaaa",
        "model": "m",
        "state": JobState.RUNNING,
        "part": "slo",
        "cause": Cause.REQUEST,
        "actor": "ann",
        "created_at": NOW - 700,
        "started_at": NOW - 600,
        "manifest": Manifest.of(document()),
        "outlook": Outlook(blocks=10, seconds=1000.0),
        "seconds_done": 400.0,
    }
    return Job(**told | changes)  # type: ignore[arg-type]


def test_what_is_left_goes_on_at_the_pace_so_far() -> None:
    found = ahead(job(), NOW)
    assert found is not None
    assert found.seconds == 600.0
    assert found.until == NOW + 900.0, "400 s of load took 600 s"


def test_before_the_first_block_nobody_knows_when_it_is_over() -> None:
    found = ahead(job(seconds_done=0.0), NOW)
    assert found is not None
    assert (found.seconds, found.until) == (1000.0, None)


@pytest.mark.parametrize("changes", [{"state": JobState.DONE}, {"outlook": Outlook()}])
def test_nothing_is_ahead_of_a_job_that_is_over_or_not_opened(changes: dict[str, object]) -> None:
    assert ahead(job(**changes), NOW) is None


def test_a_job_that_took_longer_than_expected_has_nothing_left() -> None:
    found = ahead(job(seconds_done=1200.0), NOW)
    assert found is not None
    assert (found.seconds, found.until) == (0.0, NOW)


def test_the_next_run_is_told_by_its_own_clock() -> None:
    planned = Upcoming(cron="0 3 * * 1", timezone="Asia/Shanghai", at=1_800_212_400.0)
    assert planned.local == "2027-01-18 03:00"
    assert replace(planned, at=None).local == ""
