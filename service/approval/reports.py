"""`GET .../report`: what a shadow job found, for people and programs, in English or Chinese."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query, Response

from service.approval.config import WrittenReport
from service.approval.desk import Desk
from service.approval.errors import Problem, echo
from service.approval.jobs import find_job
from service.approval.names import find_ladder
from service.store.load.jobs import JobState, list_jobs

Form = Annotated[
    Literal["html", "md", "json"],
    Query(alias="format", description="One self-contained page, Markdown, or the document itself."),
]
LanguageAsked = Annotated[
    Literal["en", "zh"] | None,
    Query(alias="lang", description="Of the page and the Markdown; as Accept-Language says when left out."),
]
Download = Annotated[bool, Query(description="Whether a browser is to save it.")]
AcceptLanguage = Annotated[str, Header(include_in_schema=False)]
MOST_JOBS = 200
SHOWN = {
    200: {
        "description": "The report.",
        "content": {
            "text/html": {"schema": {"type": "string"}},
            "text/markdown": {"schema": {"type": "string"}},
            "application/json": {"schema": {"type": "object", "description": "tiergate.report/2"}},
        },
    }
}


def report_routes(desk: Desk) -> APIRouter:
    """Reports by job, and the latest of a model."""
    router = APIRouter(tags=["shadow jobs"])

    @router.get(
        "/shadow-jobs/{job}/report",
        summary="The report of a shadow job",
        response_class=Response,
        responses=SHOWN,  # type: ignore[arg-type]
    )
    def report(
        job: str,
        form: Form = "html",
        language: LanguageAsked = None,
        download: Download = False,
        accept_language: AcceptLanguage = "",
    ) -> Response:
        """As it was made when the job was over; of one that runs, as far as it is."""
        return _answer(desk, job, form, language or preferred(accept_language), download=download)

    @router.get(
        "/models/{model:path}/shadow-report",
        summary="The latest report of a model",
        response_class=Response,
        responses=SHOWN,  # type: ignore[arg-type]
    )
    def latest(
        model: str,
        form: Form = "html",
        language: LanguageAsked = None,
        download: Download = False,
        accept_language: AcceptLanguage = "",
    ) -> Response:
        """Of its last job that is done, or else of its last one."""
        find_ladder(desk.config.ladders, model)
        jobs = list_jobs(desk.db, model, limit=MOST_JOBS)
        if not jobs:
            raise Problem(
                404,
                "no_report",
                f"{echo(model)} has had no shadow job",
                hint="`tiergate shadow run MODEL` begins one",
            )
        found = next((job for job in jobs if job.state is JobState.DONE), jobs[0])
        return _answer(desk, found.job_id, form, language or preferred(accept_language), download=download)

    return router


def preferred(accept_language: str) -> str:
    """The first of our languages that a browser asks for (RFC 9110 12.5.4); English otherwise."""
    weighted = []
    for place, part in enumerate(accept_language[:1000].split(",")):
        tag, _, weight = part.strip().partition(";q=")
        try:
            liking = float(weight) if weight else 1.0
        except ValueError:
            liking = 0.0
        language = tag.partition("-")[0].lower()
        if language in ("en", "zh") and liking > 0:
            weighted.append((-liking, place, language))
    return min(weighted)[2] if weighted else "en"


def written_report(desk: Desk, job: str, form: str, language: str) -> WrittenReport:
    """A job's report in that form and language; 404 without a job, or without reports."""
    make, found = desk.config.reports, find_job(desk, job)
    if make is None:
        raise Problem(404, "no_report", "reports of shadow jobs are not written here")
    return make(found.job_id, form, language, desk.now())


def _answer(desk: Desk, job: str, form: str, language: str, *, download: bool) -> Response:
    made = written_report(desk, job, form, language)
    headers = {"Content-Language": language, "Vary": "Accept-Language"}
    if made.policy:
        headers["Content-Security-Policy"] = f"{made.policy}; frame-ancestors 'none'"
    if download:
        headers["Content-Disposition"] = f'attachment; filename="{made.file_name}"'
    return Response(made.text.encode(), headers=headers, media_type=made.media_type)
