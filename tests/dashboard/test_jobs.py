"""`/jobs`: the schedule with its next run, jobs under way, runs that are over, and who may see which."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from service.store.load.jobs import Cause, JobState, begin_job, end_job
from service.store.load.manifest import Manifest
from service.store.redis.captures import Captures
from service.store.sql.database import Database
from tests.approval.live import LiveApi
from tests.dashboard.house import CHAT, CODE, House, browser
from tests.dashboard.visiting import logged_in, words_of
from tests.dashboard.working import working_site
from tests.store.load.test_job_terms import terms
from tests.store.load.test_manifest import document


@pytest.fixture
def site(sqlite_database: Database, captures: Captures) -> Iterator[LiveApi]:
    with working_site(sqlite_database, captures) as running:
        yield running


def over(api: LiveApi, number: int) -> str:
    """A job that was done, `number` hours after the first."""
    at = api.clock() + 3600 * number
    told = {**document(), "model": "m"}
    job = begin_job(api.db, manifest=Manifest.of(told), cause=Cause.SCHEDULE, actor="schedule", now=at)
    end_job(api.db, job.job_id, JobState.DONE, reason="", now=at + 600)
    return job.job_id


def test_the_next_run_is_told_in_its_time_zone_and_in_utc(site: LiveApi) -> None:
    page = logged_in(site, "read").get("/jobs").text
    text = words_of(page)
    assert "Next run 2023-11-20 03:00 Asia/Shanghai 2023-11-19 19:00:00 UTC" in text
    assert '<time datetime="2023-11-19T19:00:00Z">' in page
    assert "0 3 * * 1 Asia/Shanghai" in text


def test_without_a_schedule_it_says_how_to_have_one(sqlite_database: Database, captures: Captures) -> None:
    with working_site(sqlite_database, captures, schedule=None) as api:
        text = words_of(logged_in(api, "read").get("/jobs").text)
    assert "No schedule is set" in text
    assert "Set shadow_job.cron in tiergate.yaml" in text
    assert "No run is over yet. Begin one above" in text


def test_whether_a_job_could_begin_is_asked_without_reading_the_corpus(
    sqlite_database: Database, captures: Captures
) -> None:
    """It may have a hundred thousand requests, and the page asks for itself every few seconds."""
    read: list[str] = []

    def corpus_of(model: str) -> dict[str, object]:
        read.append(model)
        return {"digest": "c", "requests": 1}

    with working_site(sqlite_database, captures, jobs=terms(corpus_of=corpus_of)) as api:
        told = words_of(logged_in(api, "approve").get("/jobs").text)
    assert "Begin a job of m" in told
    assert read == []


def test_what_hinders_a_job_is_told_with_what_to_do(sqlite_database: Database, captures: Captures) -> None:
    with working_site(sqlite_database, captures, jobs=terms(slo={})) as api:
        text = words_of(logged_in(api, "approve").get("/jobs").text)
    assert "No job could begin now: 'm' has no service level" in text
    assert "give it one: slo: {ttft: 1500ms, tpot: 80ms} under the model" in text


def test_backends_that_serve_are_named_and_only_an_admin_goes_on(
    sqlite_database: Database, captures: Captures
) -> None:
    with working_site(sqlite_database, captures, shadow=False) as api:
        approver = logged_in(api, "approve").get("/jobs").text
        admin = logged_in(api, "admin").get("/jobs").text
    assert "bf16: http://a:1 serves clients as m/bf16" in words_of(approver)
    assert 'href="/jobs/begin?model=m"' not in approver
    assert "Begin a job of m needs scope admin" in words_of(approver)
    assert 'href="/jobs/begin?model=m"' in admin


def test_who_may_not_begin_one_sees_which_scope_is_missing(site: LiveApi) -> None:
    assert "Begin a job of m needs scope approve" in words_of(logged_in(site, "read").get("/jobs").text)
    assert 'href="/jobs/begin?model=m"' in logged_in(site, "approve").get("/jobs").text


def test_jobs_under_way_show_how_far_they_are(seen_site: LiveApi, house: House) -> None:
    page = browser(seen_site, "approve").get("/jobs").text
    under_way = page[page.index('data-live="now"') : page.index('data-live="schedule"')]
    assert house.running_job in under_way
    assert re.search(r'<progress value="[\d.]+" max="1" aria-label="How far', under_way)
    assert f'href="/job/cancel?id={house.running_job}"' in under_way
    assert house.done_job not in under_way


def test_runs_that_are_over_can_be_ticked_and_are_not_those_under_way(
    seen_site: LiveApi, house: House
) -> None:
    page = browser(seen_site, "read").get("/jobs").text
    ticked = re.findall(r'<input type="checkbox" form="runs-beside" name="run" value="([^"]+)"', page)
    assert ticked == [house.done_job, house.failed_job]
    assert "block 4 ended its workers twice" in words_of(page)


def test_a_token_for_one_model_sees_its_jobs_alone(seen_site: LiveApi, house: House) -> None:
    client = browser(seen_site, "chat")
    page = client.get("/jobs").text
    assert house.done_job in page
    assert house.running_job not in page
    assert CODE not in page
    assert client.get("/jobs", params={"model": CODE}).status_code == 403
    assert client.get("/jobs", params={"model": CHAT, "after": house.running_job}).status_code == 404


def test_many_runs_come_in_parts(site: LiveApi) -> None:
    names = [over(site, number) for number in range(23)]
    client = logged_in(site, "read")
    first = client.get("/jobs").text
    listed = re.findall(r'name="run" value="([^"]+)"', first)
    assert listed == names[:2:-1]
    older = re.search(r'<a rel="next" href="([^"]+)"', first)
    assert older is not None
    second = client.get(older[1].replace("&amp;", "&")).text
    assert re.findall(r'name="run" value="([^"]+)"', second) == names[2::-1]
    assert 'data-live="schedule"' not in second
    assert "The latest" in words_of(second)


def test_it_is_told_in_chinese(seen_site: LiveApi) -> None:
    text = words_of(browser(seen_site, "read").get("/jobs", params={"lang": "zh"}).text)
    assert "影子任务" in text
    assert "已结束的运行" in text


@pytest.mark.parametrize("lacking", [{"shadow": False}, {"jobs": terms(slo={})}], ids=["capacity", "slo"])
def test_what_hinders_is_shown_without_any_markup_of_ours(
    lacking: dict[str, Any], sqlite_database: Database, captures: Captures
) -> None:
    with working_site(sqlite_database, captures, **lacking) as api:
        client = logged_in(api, "admin")
        pages = [client.get(path).text for path in ("/jobs", "/jobs/begin?model=m", "/ledger")]
    assert not any(mark in page for page in pages for mark in ("{{", "}}", "{%", "%}"))
