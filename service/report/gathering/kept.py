"""A job's report: the one that was kept when it ended, or made now.

A verdict is of the moment at which it is read, so the report of a job that is over is kept as it was made
first: a week later it still says what was decided then, and the next one can say what changed.
"""

from __future__ import annotations

from service.report.changes import as_earlier
from service.report.document import DocumentError, Earlier, Report, from_json, to_json
from service.report.gathering.composing import Sources, compose
from service.store.load.jobs import Job, JobState, list_jobs, read_job
from service.store.load.reports import jobs_to_report, keep_report, read_report

MOST_JOBS = 1000
"""How far back the run before is looked for."""
DAY = 86_400.0


def report_of(sources: Sources, job_id: str, *, now: float) -> Report:
    """The report of a job by its name, or by how that begins; KeyError when there is none.

    Of a job that is over, the first one made is kept, and is the answer from then on.
    """
    job = read_job(sources.db, job_id)
    kept = _kept(sources, job)
    if kept is not None:
        return kept
    report = compose(sources, job, now=now, earlier=_earlier(sources, job, now=now))
    if job.state.over and job.ended_at is not None:
        keep_report(
            sources.db,
            job.job_id,
            model=job.model,
            ended_at=job.ended_at,
            made_at=now,
            document=to_json(report),
        )
        return _kept(sources, job) or report
    return report


def keep_due(sources: Sources, *, now: float) -> list[str]:
    """Make the reports of jobs that are over and have none yet, so that they say what was decided then.

    The ids of these jobs. Those that ended lately: later, a report is made when it is asked for.
    """
    due = jobs_to_report(sources.db, since=now - DAY)
    for job_id in due:
        report_of(sources, job_id, now=now)
    return due


def _kept(sources: Sources, job: Job) -> Report | None:
    """None too for a document that an older version kept: it is made again from what there is."""
    text = read_report(sources.db, job.job_id)
    if text is None:
        return None
    try:
        return from_json(text)
    except DocumentError:
        return None


def _earlier(sources: Sources, job: Job, *, now: float) -> Earlier | None:
    """The run before this one of the same model that came to its end.

    Where its own report was never kept, its figures are read from its blocks; its verdicts are not known.
    """
    before = next(
        (
            each
            for each in list_jobs(sources.db, job.model, limit=MOST_JOBS)
            if each.state is JobState.DONE and each.created_at < job.created_at
        ),
        None,
    )
    if before is None:
        return None
    kept = _kept(sources, before)
    if kept is not None:
        return as_earlier(kept)
    found = as_earlier(compose(sources, before, now=now, earlier=None))
    return Earlier(id=found.id, ended_at=found.ended_at, figures=found.figures, manifest=found.manifest)
