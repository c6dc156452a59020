"""`/jobs`: when shadow jobs begin by themselves, those under way, and those that are over, to compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.responses import Response
from starlette.routing import BaseRoute

from service.approval.jobs import find_job
from service.dashboard.chosen import chosen
from service.dashboard.runs_beside import MOST_RUNS, beside
from service.dashboard.site import Site
from service.dashboard.upcoming import Ahead, ahead, hindrance, upcoming
from service.dashboard.visit import Visit
from service.store.load.job_terms import CannotBegin
from service.store.load.jobs import Job, JobState, active_job, list_jobs

A_PAGE = 20
STATE_TONES = {
    JobState.WAITING: "wait",
    JobState.RUNNING: "wait",
    JobState.DONE: "good",
    JobState.CANCELLED: "",
    JobState.ABORTED: "bad",
    JobState.FAILED: "bad",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderWay:
    """A job that is not over."""

    job: Job
    ahead: Ahead | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """A model of which a job could be begun."""

    model: str
    running: str | None
    """The job of it that is under way: one at a time."""
    hindrance: CannotBegin | None


def jobs_routes(site: Site) -> Sequence[BaseRoute]:
    """The list, and runs side by side."""

    def jobs(visit: Visit) -> Response:
        desk, model = site.desk, chosen(site, visit)
        models = visit.models if model is None else (model,)
        active = {each: job for each in models if (job := active_job(desk.db, each)) is not None}
        before = visit.asked("after")
        found = list_jobs(desk.db, model, limit=A_PAGE + 1, after=find_job(desk, before) if before else None)
        shown = found[:A_PAGE]
        return site.page(
            visit,
            "jobs.html",
            model=model,
            model_path="/jobs",
            whole=visit.caller.models is None,
            upcoming=upcoming(desk, visit.now),
            beginnings=[_beginning(site, each, active.get(each)) for each in models],
            under_way=[UnderWay(job=job, ahead=ahead(job, visit.now)) for job in active.values()],
            over=[job for job in shown if job.state.over],
            tones=STATE_TONES,
            following=shown[-1].job_id if len(found) > A_PAGE else None,
            first=not before,
            most=MOST_RUNS,
        )

    return [site.get("/jobs", jobs), site.get("/jobs/beside", lambda visit: beside(site, visit))]


def _beginning(site: Site, model: str, running: Job | None) -> Beginning:
    if running is not None:
        return Beginning(model=model, running=running.job_id, hindrance=None)
    return Beginning(model=model, running=None, hindrance=hindrance(site.desk, model))
