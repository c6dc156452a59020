"""Shadow jobs to come and under way: when the next begins, what hinders it, how long one still takes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from service.approval.desk import Desk
from service.approval.jobs import terms_of
from service.store.load.job_terms import CannotBegin, check
from service.store.load.jobs import Job
from service.store.load.manifest import JobPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Upcoming:
    """The next time at which the schedule begins jobs."""

    cron: str
    timezone: str
    at: float | None
    """Unix seconds; None when there is none for years."""

    @property
    def local(self) -> str:
        """By the clock of its time zone; empty without a time."""
        if self.at is None:
            return ""
        return datetime.fromtimestamp(self.at, ZoneInfo(self.timezone)).strftime("%Y-%m-%d %H:%M")


def upcoming(desk: Desk, now: float) -> Upcoming | None:
    """None where jobs begin only when somebody asks for one."""
    schedule = desk.config.schedule
    if schedule is None:
        return None
    return Upcoming(cron=schedule.cron, timezone=schedule.timezone, at=schedule.next_after(now))


def hindrance(
    desk: Desk, model: str, *, plan: JobPlan | None = None, own_capacity: bool = False
) -> CannotBegin | None:
    """Why a job of that model, by default as configured, could not begin now; None when it could.

    One that is under way is told apart: it is no fault.
    """
    terms = terms_of(desk)
    try:
        check(desk.db, terms, model, plan=plan or terms.plan, own_capacity=own_capacity)
    except CannotBegin as error:
        return error
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """What is left of a job."""

    seconds: float
    """Of load."""
    until: float | None
    """Unix seconds at which it is over if it goes on as it went; None before its first block is done."""


def ahead(job: Job, now: float) -> Ahead | None:
    """None of a job that is over, or of which nothing is expected yet."""
    if job.state.over or not job.outlook.seconds:
        return None
    left = max(0.0, job.outlook.seconds - job.seconds_done)
    if job.started_at is None or job.seconds_done <= 0:
        return Ahead(seconds=left, until=None)
    # Settling, and waiting for last answers, take time beside the load: by the pace so far, to the minute.
    pace = max(1.0, (now - job.started_at) / job.seconds_done)
    return Ahead(seconds=left, until=60.0 * round((now + left * pace) / 60.0))
