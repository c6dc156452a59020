"""Reports as texts: the first that is kept of a job stays."""

from __future__ import annotations

from service.store.load.jobs import JobState, end_job
from service.store.load.reports import jobs_to_report, keep_report, read_report
from service.store.sql.database import Database
from tests.store.load.test_jobs import NOW, begun


def test_the_first_stays(database: Database) -> None:
    assert read_report(database, "j1") is None
    text = '{"a": "中文 ' + "x" * 100_000 + '"}'
    assert keep_report(database, "j1", model="m", ended_at=1.0, made_at=2.0, document=text)
    assert not keep_report(database, "j1", model="m", ended_at=1.0, made_at=3.0, document="{}")
    assert read_report(database, "j1") == text
    assert read_report(database, "j2") is None


def test_jobs_that_are_over_and_have_no_report_are_due_for_a_while(database: Database) -> None:
    first, second = begun(database), begun(database, model="n", now=NOW + 1)
    assert jobs_to_report(database, since=0) == []
    for place, job in enumerate((first, second)):
        end_job(database, job.job_id, JobState.DONE, reason="", now=NOW + 10 + place)
    assert jobs_to_report(database, since=NOW) == [first.job_id, second.job_id]
    assert jobs_to_report(database, since=NOW + 11) == [second.job_id]
    keep_report(database, first.job_id, model="m", ended_at=NOW + 10, made_at=NOW + 20, document="{}")
    assert jobs_to_report(database, since=NOW) == [second.job_id]
