"""Shadow jobs: begin, watch, cancel; their manifests. The guard and the load worker do the rest."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from service.approval.access import Caller, Scope, require
from service.approval.desk import CallerOf, Desk
from service.approval.errors import Problem, echo
from service.approval.job_schemas import (
    BlockOut,
    JobBody,
    JobDetailOut,
    JobOut,
    JobPlanBody,
    JobProgressOut,
    JobsOut,
    ManifestOut,
)
from service.approval.names import find_ladder
from service.approval.narrowing import check_model
from service.approval.schemas import storable
from service.moments import moment
from service.store.load.job_terms import CannotBegin, JobTerms, begin
from service.store.load.jobs import Cause, Job, cancel_job, list_jobs, read_job
from service.store.load.load_blocks import Block, read_blocks
from service.store.load.manifest import JobPlan, Manifest, plan_document

MOST_JOBS = 200


def job_routes(desk: Desk) -> APIRouter:
    """What begins, shows and ends shadow jobs."""
    router = APIRouter(tags=["shadow jobs"])

    @router.post("/models/{model:path}/shadow-jobs", status_code=201, summary="Begin a shadow job")
    def begin_job(model: str, caller: CallerOf, body: JobBody) -> JobOut:
        """One at a time for a model. It needs a service level, a corpus, and backends that serve nobody."""
        return JobOut(**job_fields(begin_asked(desk, caller, model, body)))

    @router.get("/shadow-jobs", summary="Shadow jobs")
    def jobs(
        model: Annotated[str | None, Query(description="Of one model alone.")] = None,
        after: Annotated[str, Query(max_length=64, description="A job: those older than it.")] = "",
        limit: Annotated[int, Query(ge=1, le=MOST_JOBS)] = 50,
    ) -> JobsOut:
        """The latest first, with how far each is."""
        if model is not None:
            find_ladder(desk.config.ladders, model)
        known = find_job(desk, after) if after else None
        found = list_jobs(desk.db, model, limit=limit + 1, after=known)
        return JobsOut(
            jobs=[JobOut(**job_fields(job)) for job in found[:limit]],
            next_after=found[limit - 1].job_id if len(found) > limit else None,
        )

    @router.get("/shadow-jobs/{job}", summary="One shadow job with its blocks")
    def job(job: str) -> JobDetailOut:
        """How far it is, and what each block showed. The first characters of its name suffice."""
        found = find_job(desk, job)
        blocks = [block_out(block) for block in read_blocks(desk.db, found.job_id, done=False)]
        return JobDetailOut(**job_fields(found), blocks=blocks)

    @router.get("/shadow-jobs/{job}/manifest", summary="What is needed to repeat it")
    def manifest(job: str) -> ManifestOut:
        """Model, tiers, engines, corpus, arrivals, seeds, SLO, prices, policy."""
        found = find_job(desk, job).manifest
        return ManifestOut(digest=found.digest, manifest=dict(found.document))

    @router.delete("/shadow-jobs/{job}", summary="Cancel a shadow job")
    def cancel(job: str, caller: CallerOf) -> JobOut:
        """A block that is being run is broken off within seconds. One that is over stays as it is."""
        return JobOut(**job_fields(cancel_asked(desk, caller, job)))

    return router


def terms_of(desk: Desk) -> JobTerms:
    """What shadow jobs are held to; without any in the configuration, none can begin."""
    return desk.config.jobs or JobTerms(ladders=desk.config.ladders)


def begin_asked(desk: Desk, caller: Caller, model: str, body: JobBody) -> Job:
    """Begin the job that the caller asks for; Problem says what stands in the way."""
    require(caller, Scope.APPROVE, "beginning a shadow job")
    if body.i_own_this_capacity:
        require(caller, Scope.ADMIN, "loading backends that serve clients")
    find_ladder(desk.config.ladders, model)
    repeats, terms = _manifest(model, body), terms_of(desk)
    try:
        return begin(
            desk.db,
            terms,
            model,
            cause=Cause.REQUEST if repeats is None else Cause.REPLAY,
            actor=caller.name,
            now=desk.now(),
            own_capacity=body.i_own_this_capacity,
            plan=plan_asked(terms.plan, body.plan) if repeats is None else None,
            repeats=repeats,
        )
    except CannotBegin as error:
        raise Problem(409, error.code, str(error), hint=error.hint, reasons=error.reasons or None) from error


def cancel_asked(desk: Desk, caller: Caller, job: str) -> Job:
    """Cancel a job for the caller, and tell how it is now; one that is over stays as it is."""
    require(caller, Scope.APPROVE, "cancelling a shadow job")
    found = find_job(desk, job)
    return cancel_job(desk.db, found.job_id, actor=caller.name, now=desk.now())


def job_fields(job: Job) -> dict[str, Any]:
    """The fields of `JobOut`."""
    plan = job.manifest.plan
    return {
        "job": job.job_id,
        "model": job.model,
        "state": job.state,
        "part": job.part,
        "cause": job.cause,
        "actor": job.actor,
        "i_own_this_capacity": job.own_capacity,
        "created_at": moment(job.created_at),
        "started_at": _moment(job.started_at),
        "ended_at": _moment(job.ended_at),
        "cancelled_by": job.cancelled_by,
        "reason": job.reason,
        "remarks": list(job.remarks),
        "manifest": job.manifest.digest,
        "replay_of": job.replay_of,
        "differences": list(job.differences),
        "progress": JobProgressOut(
            share=job.progress,
            blocks_done=job.blocks_done,
            blocks_expected=job.outlook.blocks,
            seconds_done=job.seconds_done,
            seconds_expected=job.outlook.seconds,
            seconds_spent=job.seconds_spent,
            seconds_budget=plan.budget_seconds,
            tokens_spent=job.tokens_spent,
            tokens_budget=plan.budget_tokens,
        ),
        "findings": None if job.findings is None else dict(job.findings),
    }


def block_out(block: Block) -> BlockOut:
    """One block, with the figures that a table has room for."""
    figures = block.figures or {}

    def quantile(name: str) -> float | None:
        found = figures.get(name)
        return None if found is None else found["p95"]

    return BlockOut(
        number=block.number,
        part=block.part,
        tier=block.tier,
        state=block.state,
        attempts=block.leases,
        rate=block.plan["rate"],
        concurrency=block.plan["concurrency"],
        started_at=_moment(block.started_at),
        ended_at=_moment(block.ended_at),
        offered=figures.get("offered"),
        passed=figures.get("passed"),
        goodput=figures.get("goodput"),
        ttft_p95=quantile("ttft"),
        tpot_p95=quantile("tpot"),
        invalid=None if block.figures is None else list(figures["invalid"]),
    )


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else moment(seconds)


def find_job(desk: Desk, job: str) -> Job:
    """The job of that name, or of a name that begins so; 404 without one that the caller may know of."""
    try:
        found = read_job(desk.db, storable(job))
        check_model(found.model)
    except (KeyError, Problem):
        raise Problem(
            404,
            "unknown_job",
            f"no shadow job is called {echo(job)}, or several begin so",
            hint="`tiergate shadow list` shows them",
        ) from None
    return found


def _manifest(model: str, body: JobBody) -> Manifest | None:
    if body.manifest is None:
        return None
    if body.plan.model_dump(exclude_none=True):
        raise Problem(422, "invalid_request", "a manifest brings its own plan: leave `plan` out")
    try:
        manifest = Manifest.of(body.manifest)
    except ValueError as error:
        raise Problem(422, "invalid_manifest", str(error)) from None
    if manifest.model != model:
        raise Problem(
            409, "other_model", f"the manifest is of a job of {echo(manifest.model)}, not of {echo(model)}"
        )
    return manifest


def plan_asked(configured: JobPlan, body: JobPlanBody) -> JobPlan:
    """The configured plan with what the caller wants otherwise; 422 where they do not go together."""
    asked = body.model_dump(exclude_none=True)
    try:
        return JobPlan.of({**plan_document(configured), **asked})
    except ValueError as error:
        raise Problem(422, "invalid_plan", str(error)) from None
