"""A report in one of its forms: JSON for programs, Markdown for a pull request, one HTML file for people."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from service.report.document import Report, to_json
from service.report.html import html, policy
from service.report.markdown import markdown
from service.report.page import page
from service.report.words import Language


class Form(StrEnum):
    """How a report is written; also the ending of its file."""

    HTML = "html"
    MARKDOWN = "md"
    JSON = "json"


MEDIA = {
    Form.HTML: "text/html; charset=utf-8",
    Form.MARKDOWN: "text/markdown; charset=utf-8",
    Form.JSON: "application/json",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A report, ready to be sent or saved."""

    text: str
    media_type: str
    policy: str
    """Content-Security-Policy under which it is shown; empty where it is not shown by a browser."""
    file_name: str
    """ASCII without quotes."""


def written(report: Report, form: Form, language: Language) -> Written:
    """The report in that form; JSON is the same in every language."""
    if form is Form.JSON:
        text = to_json(report)
    else:
        made = page(report, language)
        text = html(made) if form is Form.HTML else markdown(made)
    kept = "".join(
        each if each.isascii() and (each.isalnum() or each in "-_.") else "-" for each in report.run.id
    )
    return Written(
        text=text,
        media_type=MEDIA[form],
        policy=policy() if form is Form.HTML else "",
        file_name=f"tiergate-{kept}.{form.value}"
        if form is Form.JSON
        else f"tiergate-{kept}.{language}.{form}",
    )
