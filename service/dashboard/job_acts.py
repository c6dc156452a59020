"""`/jobs/begin` and `/job/cancel`: what would happen, exactly, and then doing it as the API does."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from starlette.responses import Response
from starlette.routing import BaseRoute

from service.approval.access import Scope
from service.approval.errors import Problem, echo
from service.approval.job_schemas import JobBody, JobPlanBody
from service.approval.jobs import begin_asked, cancel_asked, find_job, terms_of
from service.approval.names import find_ladder
from service.dashboard.site import Site
from service.dashboard.upcoming import hindrance
from service.dashboard.visit import Form, Visit
from service.store.load.job_terms import CannotBegin, compose
from service.store.load.jobs import Job, active_job
from service.store.load.manifest import ARRIVALS, INTERLEAVED, PARTS, TOGETHER, JobPlan, differences
from service.store.redis.addresses import address_of
from service.store.verdicts.serving import serving_now, targets_of

NUMBERS = ("rate", "window_seconds", "warm_up_seconds", "settle_seconds", "budget_seconds")
WHOLE = ("blocks", "budget_tokens")
MAY_BE_NONE = ("warm_up_seconds", "settle_seconds")
ARMS = (INTERLEAVED, TOGETHER)
BEGINNING = "beginning a shadow job"
CANCELLING = "cancelling a shadow job"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One backend that load would be sent to."""

    tier: str
    url: str
    serves: str
    """Whom it serves, in a sentence; empty for one that serves nobody."""


def job_act_routes(site: Site) -> Sequence[BaseRoute]:
    """A page that tells, and a form that does, for each."""

    def ask_begin(visit: Visit) -> Response:
        return _begin_page(site, visit, {})

    def begin(visit: Visit, form: Form) -> Response:
        site.require(visit, Scope.APPROVE, BEGINNING)
        model = form.needed("model")
        find_ladder(site.desk.config.ladders, model)
        repeated = form.text("repeats")
        try:
            body = JobBody(
                plan=JobPlanBody() if repeated else _plan_of(form),
                manifest=dict(find_job(site.desk, repeated).manifest.document) if repeated else None,
                i_own_this_capacity=form.text("own") == "yes",
            )
            job = begin_asked(site.desk, visit.caller, model, body)
        except Problem as problem:
            if problem.status == 422:  # what was typed is still there to be mended
                return _begin_page(site, visit, form.mapping, problem, ticked=form.all("parts"))
            raise
        return site.see("/job", id=job.job_id, note="job_begun")

    def ask_cancel(visit: Visit) -> Response:
        return site.page(visit, "job_cancel.html", job=find_job(site.desk, visit.needed("id")))

    def cancel(visit: Visit, form: Form) -> Response:
        site.require(visit, Scope.APPROVE, CANCELLING)
        job = cancel_asked(site.desk, visit.caller, form.needed("id"))
        return site.see("/job", id=job.job_id, note="job_cancelled" if job.state.over else "job_cancelling")

    return [
        site.get("/jobs/begin", ask_begin),
        site.post("/jobs/begin", begin),
        site.get("/job/cancel", ask_cancel),
        site.post("/job/cancel", cancel),
    ]


def _begin_page(
    site: Site,
    visit: Visit,
    typed: Mapping[str, str],
    problem: Problem | None = None,
    *,
    ticked: Sequence[str] = (),
) -> Response:
    desk = site.desk
    repeated = typed.get("repeats") or visit.asked("repeats")
    then = find_job(desk, repeated) if repeated else None
    model = then.model if then is not None else typed.get("model") or visit.needed("model")
    find_ladder(desk.config.ladders, model)
    terms = terms_of(desk)
    plan = terms.plan if then is None else then.manifest.plan
    # How tiers share the time can still be chosen where no plan is repeated.
    chosen = plan if then is not None else replace(plan, arms=INTERLEAVED)
    stands = hindrance(desk, model, plan=chosen, own_capacity=True)
    targets = _targets(site, model)
    return site.page(
        visit,
        "job_begin.html",
        status=200 if problem is None else problem.status,
        problem=problem,
        model=model,
        plan=plan,
        typed=typed,
        ticked=ticked or plan.parts,
        parts=PARTS,
        choices={"arrivals": ARRIVALS, "arms": ARMS},
        numbers=(*NUMBERS, *WHOLE),
        targets=targets,
        serving=[each for each in targets if each.serves],
        hindrance=stands,
        running=active_job(desk.db, model),
        repeats=then,
        differences=() if then is None or stands is not None else _since(site, then),
        least_seconds=least_seconds(plan, len(desk.config.ladders[model].tiers)),
    )


def _targets(site: Site, model: str) -> list[Target]:
    """Every backend that load for the model would go to, along the ladder."""
    desk = site.desk
    serving = serving_now(desk.db, desk.config.ladders)
    return [
        Target(tier=tier.name, url=backend.url, serves=serving.get(address_of(backend), ""))
        for tier in desk.config.ladders[model].tiers
        for backend in targets_of(tier)
    ]


def _since(site: Site, then: Job) -> tuple[str, ...]:
    """What is not as it was when that job began, in sentences; empty too where a new one could not begin."""
    manifest = then.manifest
    try:
        now = compose(site.desk.db, terms_of(site.desk), then.model, plan=manifest.plan, seed=manifest.seed)
    except (CannotBegin, KeyError):
        return ()
    return differences(manifest, now)


def least_seconds(plan: JobPlan, arms: int) -> float:
    """Of load in the SLO part alone; 0 where it is not asked for."""
    if "slo" not in plan.parts:
        return 0.0
    after_one_another = 1 if plan.arms == TOGETHER else arms
    return after_one_another * (
        plan.warm_up_seconds + plan.window_seconds + (plan.blocks - 1) * plan.settle_seconds
    )


def _plan_of(form: Form) -> JobPlanBody:
    """What the form wants otherwise than configured; an empty field is as configured. 422 for no number."""
    asked: dict[str, object] = {}
    for name in NUMBERS:
        if text := form.text(name):
            asked[name] = _number(name, text)
    for name in WHOLE:
        if text := form.text(name):
            number = _number(name, text)
            if number != int(number):
                raise _no_number(name, text)
            asked[name] = int(number)
    for name, choices in (("arrivals", ARRIVALS), ("arms", ARMS)):
        if text := form.text(name):
            if text not in choices:
                raise Problem(422, "invalid_plan", f"{name}: {echo(text)} is none of {', '.join(choices)}")
            asked[name] = text
    asked["parts"] = [part for part in PARTS if part in form.all("parts")]
    if not asked["parts"]:
        raise Problem(422, "invalid_plan", "parts: none is ticked, so there is nothing to measure")
    return JobPlanBody.model_validate(asked)


def _number(name: str, text: str) -> float:
    try:
        number = float(text.replace(",", "").replace(" ", ""))
    except ValueError:
        raise _no_number(name, text) from None
    if not math.isfinite(number) or number < 0 or (number == 0 and name not in MAY_BE_NONE):
        raise _no_number(name, text)
    return number


def _no_number(name: str, text: str) -> Problem:
    return Problem(422, "invalid_plan", f"{name}: {echo(text)} is no number that can be meant")
