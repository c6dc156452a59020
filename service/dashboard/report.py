"""`/report`: a job's report within the page, and as a file in each form and language.

The report is a document of its own under its own policy, which admits no script: it is shown in a frame
without any rights. Only this page may frame it.
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import Response
from starlette.routing import BaseRoute

from service.approval.jobs import find_job
from service.approval.reports import written_report
from service.dashboard import render
from service.dashboard.jobs import STATE_TONES
from service.dashboard.site import Site
from service.dashboard.visit import Visit
from service.report.forms import Form
from service.report.words import Language


def report_routes(site: Site) -> Sequence[BaseRoute]:
    """One page; with `form` the report itself, with `save` as a file."""

    def report(visit: Visit) -> Response:
        job = find_job(site.desk, visit.needed("job"))
        language = visit.one_of("language", [each.value for each in Language], visit.language.value)
        form = visit.one_of("form", [each.value for each in Form])
        if form:
            return _itself(site, job.job_id, form, language, save=bool(visit.asked("save")))
        if site.desk.config.reports is None:
            written_report(site.desk, job.job_id, Form.JSON.value, language)  # says that there are none
        return site.page(
            visit,
            "report.html",
            job=job,
            forms=[each.value for each in Form],
            shown_in=Language(language),
            tones=STATE_TONES,
        )

    return [site.get("/report", report)]


def _itself(site: Site, job_id: str, form: str, language: str, *, save: bool) -> Response:
    made = written_report(site.desk, job_id, form, language)
    if save or not made.policy:
        return render.attached(made.text, made.media_type, made.file_name)
    return Response(
        made.text.encode(),
        media_type=made.media_type,
        headers={
            "Content-Language": language,
            "Cache-Control": "no-store",
            "Content-Security-Policy": f"{made.policy}; frame-ancestors 'self'; sandbox",
            "X-Frame-Options": "SAMEORIGIN",
        },
    )
