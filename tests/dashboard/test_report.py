"""`/report`: a job's report in a frame without rights, and as a file in every form and language."""

from __future__ import annotations

import re

import pytest

from service.report.document import from_json
from tests.approval.live import LiveApi
from tests.dashboard.house import House, browser
from tests.dashboard.visiting import words_of


def test_it_is_shown_in_a_frame_without_any_rights(seen_site: LiveApi, house: House) -> None:
    client = browser(seen_site, "read")
    page = client.get("/report", params={"job": house.done_job})
    assert page.headers["x-frame-options"] == "DENY"
    assert "frame-src 'self'" in page.headers["content-security-policy"]
    frame = re.search(
        r'<iframe class="report" sandbox title="[^"]+" lang="en" src="([^"]+)"></iframe>', page.text
    )
    assert frame is not None
    framed = client.get(frame[1].replace("&amp;", "&"))
    assert framed.headers["content-type"] == "text/html; charset=utf-8"
    assert framed.headers["x-frame-options"] == "SAMEORIGIN"
    policy = framed.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "script-src" not in policy
    assert "unsafe" not in policy
    assert policy.endswith("frame-ancestors 'self'; sandbox")
    assert "<h1>Shadow report:" in framed.text


@pytest.mark.parametrize(
    ("form", "media_type"),
    [
        ("html", "text/html; charset=utf-8"),
        ("md", "text/markdown; charset=utf-8"),
        ("json", "application/json"),
    ],
)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_it_can_be_saved_in_every_form_and_language(
    form: str, media_type: str, language: str, seen_site: LiveApi, house: House
) -> None:
    answer = browser(seen_site, "read").get(
        "/report", params={"job": house.done_job, "form": form, "language": language, "save": "1"}
    )
    assert answer.headers["content-type"] == media_type
    ending = form if form == "json" else f"{language}.{form}"
    name = f"tiergate-{house.done_job}.{ending}"
    assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'
    if form == "json":
        assert from_json(answer.text).run.id == house.done_job
    else:
        assert ("影子验收报告" in answer.text) is (language == "zh")


def test_its_links_lead_to_every_form(seen_site: LiveApi, house: House) -> None:
    client = browser(seen_site, "read")
    page = client.get("/report", params={"job": house.done_job}).text
    links = {each.replace("&amp;", "&") for each in re.findall(r'href="(/report\?[^"]+)"', page)}
    files = [each for each in links if "save=1" in each]
    assert len(files) == 5, "HTML and Markdown in both languages, and JSON"
    assert all(client.get(each).status_code == 200 for each in links)


def test_of_a_job_that_runs_it_is_as_far_as_it_is(seen_site: LiveApi, house: House) -> None:
    page = browser(seen_site, "read").get("/report", params={"job": house.running_job})
    assert page.status_code == 200
    assert "It is not over: the report is as of now." in words_of(page.text)


def test_only_known_jobs_forms_and_languages_have_one(seen_site: LiveApi, house: House) -> None:
    client = browser(seen_site, "chat")
    assert client.get("/report", params={"job": "nobody"}).status_code == 404
    assert client.get("/report", params={"job": house.running_job, "form": "json"}).status_code == 404
    assert client.get("/report", params={"job": house.done_job, "form": "pdf"}).status_code == 422
    assert client.get("/report", params={"job": house.done_job, "language": "fr"}).status_code == 422
    assert client.get("/report").status_code == 422
