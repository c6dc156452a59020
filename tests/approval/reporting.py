"""An API whose reports are written as `tiergate api` writes them, over one job that is over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from service.report.forms import Form, Written, written
from service.report.gathering.kept import report_of
from service.report.words import Language
from service.store.load.jobs import Job
from service.store.redis.captures import Captures
from service.store.sql.database import Database
from tests.approval.live import LiveApi, live_api
from tests.report.gathering.jobs import NOW, job_over, run, sources


@contextmanager
def reporting_api(db: Database, captures: Captures) -> Iterator[tuple[LiveApi, Job]]:
    """The API and the job of model `m`."""
    known = sources(db)
    manifest, blocks = run()
    job = job_over(db, manifest, blocks)

    def make(job_id: str, form: str, language: str, now: float) -> Written:
        return written(report_of(known, job_id, now=NOW + 90_000), Form(form), Language(language))

    with live_api(db, captures, ladder=known.ladders["m"], reports=make) as api:
        yield api, job
