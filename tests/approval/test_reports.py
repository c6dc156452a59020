"""Reports over HTTP: the form and the language asked for, under a policy of their own."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from service.approval.reports import preferred
from service.report.document import from_json
from service.store.load.jobs import Job
from service.store.redis.captures import Captures, open_captures
from service.store.sql.database import Database, open_database
from tests.approval.live import LiveApi, live_api
from tests.approval.reporting import reporting_api
from tests.conftest import ValkeyServer

PATH = "/api/v1/shadow-jobs/{}/report"


@pytest.fixture(scope="module")
def reporting(
    tmp_path_factory: pytest.TempPathFactory, valkey_server: ValkeyServer
) -> Iterator[tuple[LiveApi, Job]]:
    database = open_database(f"sqlite:///{tmp_path_factory.mktemp('api') / 'tiergate.db'}")
    captures = open_captures(valkey_server.url, timeout=2)
    try:
        with reporting_api(database, captures) as running:
            yield running
    finally:
        captures.close()
        database.close()


def test_a_report_is_a_page_that_may_not_be_framed_and_runs_nothing(reporting: tuple[LiveApi, Job]) -> None:
    api, job = reporting
    answer = api.client().get(PATH.format(job.job_id))
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-language"] == "en"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert policy.endswith("frame-ancestors 'none'")
    assert "unsafe" not in policy
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["cache-control"] == "no-store"
    assert "<h1>Shadow report: m</h1>" in answer.text


def test_it_comes_in_every_form_by_the_first_characters_of_its_name(reporting: tuple[LiveApi, Job]) -> None:
    api, job = reporting
    path = PATH.format(job.job_id[:-2])
    told = api.client().get(path, params={"format": "json"})
    assert told.headers["content-type"] == "application/json"
    assert from_json(told.content).run.id == job.job_id
    assert json.loads(told.content)["schema"] == "tiergate.report/2"
    markdown = api.client().get(path, params={"format": "md", "lang": "zh"})
    assert markdown.headers["content-type"] == "text/markdown; charset=utf-8"
    assert markdown.text.startswith("# 影子验收报告：m\n")


def test_a_browser_gets_its_language_and_may_ask_for_another(reporting: tuple[LiveApi, Job]) -> None:
    api, job = reporting
    client = api.client(**{"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.8"})
    first = client.get(PATH.format(job.job_id))
    assert first.headers["content-language"] == "zh"
    assert first.headers["vary"] == "Accept-Language"
    assert 'lang="zh-Hans"' in first.text
    assert client.get(PATH.format(job.job_id), params={"lang": "en"}).headers["content-language"] == "en"


def test_it_can_be_saved_under_a_name_of_its_own(reporting: tuple[LiveApi, Job]) -> None:
    api, job = reporting
    answer = api.client().get(PATH.format(job.job_id), params={"download": "true"})
    assert answer.headers["content-disposition"] == f'attachment; filename="tiergate-{job.job_id}.en.html"'


def test_the_latest_of_a_model_is_found_by_its_name(reporting: tuple[LiveApi, Job]) -> None:
    api, job = reporting
    told = api.client().get("/api/v1/models/m/shadow-report", params={"format": "json"})
    assert from_json(told.content).run.id == job.job_id


@pytest.mark.parametrize(
    ("path", "code"),
    [
        (PATH.format("nobody"), "unknown_job"),
        ("/api/v1/models/nobody/shadow-report", "unknown_model"),
    ],
)
def test_what_is_not_there_is_told_with_a_hint(reporting: tuple[LiveApi, Job], path: str, code: str) -> None:
    api, _ = reporting
    refused = api.client().get(path)
    assert refused.status_code == 404
    assert refused.json()["code"] == code
    assert refused.json()["hint"]


@pytest.mark.parametrize("asked", [{"format": "pdf"}, {"lang": "fr"}])
def test_a_form_or_language_that_there_is_not_is_refused(
    reporting: tuple[LiveApi, Job], asked: dict[str, str]
) -> None:
    api, job = reporting
    assert api.client().get(PATH.format(job.job_id), params=asked).status_code == 422


def test_a_model_without_a_job_says_how_to_begin_one(sqlite_database: Database, captures: Captures) -> None:
    with live_api(sqlite_database, captures) as api:
        refused = api.client().get("/api/v1/models/org%2Fmodel/shadow-report")
        assert refused.status_code == 404
        assert refused.json()["hint"] == "`tiergate shadow run MODEL` begins one"
        assert api.client().get(PATH.format("x")).status_code == 404


@pytest.mark.parametrize(
    ("told", "language"),
    [
        ("", "en"),
        ("zh", "zh"),
        ("zh-TW;q=0.8, en;q=0.9", "en"),
        ("fr, de;q=0.9, zh;q=0.1", "zh"),
        ("zh;q=0, en;q=0.1", "en"),
        ("zh;q=much", "en"),
        ("*", "en"),
    ],
)
def test_of_the_languages_that_a_browser_asks_for_the_first_of_ours_is_taken(
    told: str, language: str
) -> None:
    assert preferred(told) == language
