"""The last load run that counts for a tier, from the reports of shadow jobs that are over."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from threading import Lock

from service.approval.desk import Desk
from service.report.document import Report, TierReport
from service.report.gathering.composing import Sources
from service.report.gathering.kept import report_of
from service.store.load.jobs import JobState, list_jobs

MOST_JOBS = 6
"""How far back a load run is looked for."""
MOST_KEPT = 32
"""Reports held in memory: a page asks for the same ones every few seconds, and they do not change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRun:
    """One job's report, of the baseline and one tier alone."""

    report: Report

    @property
    def job(self) -> str:
        return self.report.run.id

    @property
    def ended_at(self) -> float:
        """Unix seconds."""
        return self.report.run.ended_at or self.report.made_at

    @property
    def tier(self) -> TierReport:
        return self.report.candidates[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRuns:
    """The latest of each kind; None where there is none."""

    slo: LoadRun | None = None
    """Baseline and tier under the same arrivals, with blocks that may be used."""
    money: LoadRun | None = None
    """With what both cost; the latest that knows the net benefit, or else the latest of all."""
    passed_over: tuple[tuple[str, str], ...] = ()
    """Later jobs whose blocks of the tier may not be used, and why of the first of them."""


class Runs:
    """Finds load runs; holds reports that are kept. Its callers may be threads."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._held: OrderedDict[str, Report] = OrderedDict()
        self._lock = Lock()

    def of(self, model: str, baseline: str, tier: str, *, now: float) -> LoadRuns:
        """The last ones of a tier."""
        slo = money = incomplete = None
        passed_over: list[tuple[str, str]] = []
        for report in self._reports(model, now=now):
            found = _narrowed(report, baseline, tier)
            if found is None:
                continue
            if slo is None and (load := found.tier.load) is not None:
                if load.blocks and load.offered:
                    slo = found
                else:
                    passed_over.append((found.job, next(iter(load.invalid), "")))
            if money is None and (told := found.tier.money) is not None:
                if told.net_benefit is not None:
                    money = found
                else:
                    incomplete = incomplete or found
            if slo is not None and money is not None:
                break
        return LoadRuns(slo=slo, money=money or incomplete, passed_over=tuple(passed_over))

    def _reports(self, model: str, *, now: float) -> Iterator[Report]:
        """Of jobs that came to their end, the latest first; one by one, since mostly the first will do."""
        desk = self._desk
        sources = Sources(
            db=desk.db, captures=desk.captures, ladders=desk.config.ladders, question=desk.question
        )
        for job in list_jobs(desk.db, model, limit=MOST_JOBS):
            if job.state is not JobState.DONE:
                continue
            with self._lock:
                held = self._held.get(job.job_id)
                if held is not None:
                    self._held.move_to_end(job.job_id)
            yield held or self._read(sources, job.job_id, now=now)

    def _read(self, sources: Sources, job: str, *, now: float) -> Report:
        found = report_of(sources, job, now=now)
        with self._lock:
            self._held[job] = found
            while len(self._held) > MOST_KEPT:
                self._held.popitem(last=False)
        return found


def _narrowed(report: Report, baseline: str, tier: str) -> LoadRun | None:
    """The report of both tiers; None where the run had another baseline, or not this tier."""
    names = {each.name: each for each in report.tiers}
    first, second = names.get(baseline), names.get(tier)
    if first is None or second is None or not first.baseline or second.baseline:
        return None
    return LoadRun(report=replace(report, tiers=(first, second)))
