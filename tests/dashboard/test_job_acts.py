"""Beginning, repeating and cancelling jobs: told first, then done as the API does it, by whoever may."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest

from service.dashboard.job_acts import least_seconds
from service.store.decided import decisions
from service.store.load.jobs import Cause, JobState, active_job, end_job, read_job
from service.store.load.manifest import TOGETHER, JobPlan
from service.store.redis.captures import Captures
from service.store.sql.database import Database
from tests.approval.live import LiveApi
from tests.dashboard.visiting import csrf_of, logged_in, words_of
from tests.dashboard.working import working_site

BEGIN = "/jobs/begin"


@pytest.fixture
def site(sqlite_database: Database, captures: Captures) -> Iterator[LiveApi]:
    with working_site(sqlite_database, captures) as running:
        yield running


def sent(client: httpx.Client, path: str, fields: Mapping[str, Any], **asked: str) -> httpx.Response:
    """The form of that page, with these fields."""
    csrf = csrf_of(client.get(path, params=asked).text)
    return client.post(path, data={"csrf": csrf, **fields})


def begun(client: httpx.Client, **fields: Any) -> str:
    """The id of a job that was begun."""
    answer = sent(client, BEGIN, {"model": "m", "parts": ["slo", "sweep"], **fields}, model="m")
    assert answer.status_code == 303, words_of(answer.text)
    location = httpx.URL(answer.headers["location"])
    assert (location.path, location.params["note"]) == ("/job", "job_begun")
    return location.params["id"]


def test_the_page_tells_which_backends_are_loaded_and_what_it_may_spend(site: LiveApi) -> None:
    page = logged_in(site, "approve").get(BEGIN, params={"model": "m"}).text
    text = words_of(page)
    assert "bf16 http://spare:1 serves nobody" in text
    assert "w8a8 http://b:1 serves nobody" in text
    assert "The job ends after 6 h 0 min of load at the latest." in text
    assert "The job's record will say that test-approve began it." in text
    assert 'name="rate" inputmode="decimal" size="10" value="4"' in page


def test_a_job_is_begun_as_its_form_says(site: LiveApi) -> None:
    client = logged_in(site, "approve")
    job_id = begun(client, rate="2", window_seconds="60", budget_tokens="5,000,000", settle_seconds="")
    job = read_job(site.db, job_id)
    assert (job.state, job.cause, job.actor) == (JobState.WAITING, Cause.REQUEST, "test-approve")
    assert job.manifest.plan == JobPlan(
        parts=("slo", "sweep"), rate=2.0, window_seconds=60.0, budget_tokens=5_000_000
    )
    shown = words_of(client.get("/job", params={"id": job_id, "note": "job_begun"}).text)
    assert "The job is begun." in shown


def test_one_at_a_time(site: LiveApi) -> None:
    client = logged_in(site, "approve")
    page = client.get(BEGIN, params={"model": "m"}).text
    first = begun(client)
    again = client.post(BEGIN, data={"csrf": csrf_of(page), "model": "m", "parts": ["slo"]})
    assert again.status_code == 409
    assert first in words_of(again.text)
    told = words_of(client.get(BEGIN, params={"model": "m"}).text)
    assert f"there is one at a time: {first}" in told


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"rate": "fast"}, "rate: 'fast' is no number that can be meant"),
        ({"rate": "0"}, "rate: '0' is no number"),
        ({"rate": "nan"}, "rate: 'nan' is no number"),
        ({"blocks": "8.5"}, "blocks: '8.5' is no number"),
        ({"blocks": "3"}, "blocks must be from 8"),
        ({"parts": ["cost"]}, "the part cost needs the sweep"),
        ({"parts": []}, "parts: none is ticked"),
        ({"arrivals": "never"}, "arrivals: 'never' is none of poisson"),
    ],
)
def test_a_plan_that_cannot_be_meant_is_refused_and_what_was_typed_stays(
    fields: dict[str, Any], words: str, site: LiveApi
) -> None:
    client = logged_in(site, "approve")
    answer = sent(
        client, BEGIN, {"model": "m", "parts": ["slo"], "window_seconds": "123", **fields}, model="m"
    )
    assert answer.status_code == 422
    assert words in words_of(answer.text)
    assert 'name="window_seconds" inputmode="decimal" size="10" value="123"' in answer.text
    assert active_job(site.db, "m") is None


def test_without_the_scope_the_button_says_what_is_missing_and_the_form_is_refused(site: LiveApi) -> None:
    client = logged_in(site, "read")
    page = client.get(BEGIN, params={"model": "m"}).text
    assert "Begin the job needs scope approve" in words_of(page)
    answer = client.post(BEGIN, data={"csrf": csrf_of(page), "model": "m", "parts": ["slo"]})
    assert answer.status_code == 403
    assert active_job(site.db, "m") is None


def test_a_form_of_another_session_changes_nothing(site: LiveApi) -> None:
    other = csrf_of(logged_in(site, "admin").get(BEGIN, params={"model": "m"}).text)
    client = logged_in(site, "approve")
    answer = client.post(BEGIN, data={"csrf": other, "model": "m", "parts": ["slo"]})
    assert answer.status_code == 403
    assert active_job(site.db, "m") is None


def test_loading_backends_that_serve_takes_an_admin_who_says_so(
    sqlite_database: Database, captures: Captures
) -> None:
    with working_site(sqlite_database, captures, shadow=False) as api:
        approver, admin = logged_in(api, "approve"), logged_in(api, "admin")
        told = words_of(approver.get(BEGIN, params={"model": "m"}).text)
        assert "serves clients as m/bf16" in told
        assert "Begin the job needs scope admin" in told
        fields = {"model": "m", "parts": ["slo"], "own": "yes"}
        csrf = csrf_of(approver.get(BEGIN, params={"model": "m"}).text)
        assert approver.post(BEGIN, data={"csrf": csrf, **fields}).status_code == 403
        assert sent(admin, BEGIN, {**fields, "own": ""}, model="m").status_code == 409
        assert "I own this capacity" in words_of(admin.get(BEGIN, params={"model": "m"}).text)
        job_id = begun(admin, own="yes")
        assert read_job(api.db, job_id).own_capacity
        assert [entry.action for entry in decisions.read(api.db, "m")][-1] == "load_own_capacity"


def test_a_job_is_repeated_with_its_plan_and_seed_and_differences_are_told_before(site: LiveApi) -> None:
    client = logged_in(site, "approve")
    first = read_job(site.db, begun(client, rate="2"))
    end_job(site.db, first.job_id, JobState.DONE, reason="", now=site.clock())
    site.clock.at += 60
    page = client.get(BEGIN, params={"repeats": first.job_id}).text
    assert "Nothing differs from then." in words_of(page)
    assert 'name="rate"' not in page
    answer = client.post(BEGIN, data={"csrf": csrf_of(page), "model": "m", "repeats": first.job_id})
    assert answer.status_code == 303
    second = active_job(site.db, "m")
    assert second is not None
    assert (second.cause, second.replay_of) == (Cause.REPLAY, first.manifest.digest)
    assert (second.manifest.plan, second.manifest.seed) == (first.manifest.plan, first.manifest.seed)


def test_a_job_is_cancelled_after_its_page_said_what_that_means(site: LiveApi) -> None:
    client = logged_in(site, "approve")
    job_id = begun(client)
    page = client.get("/job/cancel", params={"id": job_id}).text
    assert "The job's record will say that it was cancelled by test-approve." in words_of(page)
    answer = client.post("/job/cancel", data={"csrf": csrf_of(page), "id": job_id})
    assert httpx.URL(answer.headers["location"]).params["note"] == "job_cancelled"
    job = read_job(site.db, job_id)
    assert (job.state, job.reason) == (JobState.CANCELLED, "cancelled by test-approve")
    again = words_of(client.get("/job/cancel", params={"id": job_id}).text)
    assert "The job is over already: cancelled. Nothing would change." in again


def test_who_may_only_read_cancels_nothing(site: LiveApi) -> None:
    job_id = begun(logged_in(site, "approve"))
    client = logged_in(site, "read")
    page = client.get("/job/cancel", params={"id": job_id}).text
    assert "Cancel the job needs scope approve" in words_of(page)
    assert client.post("/job/cancel", data={"csrf": csrf_of(page), "id": job_id}).status_code == 403
    assert read_job(site.db, job_id).state is JobState.WAITING


def test_load_of_the_slo_part_alone_is_reckoned_by_arms_that_take_turns() -> None:
    plan = JobPlan(warm_up_seconds=10.0, settle_seconds=1.0, window_seconds=80.0, blocks=8, rate=4.0)
    assert least_seconds(plan, 3) == 3 * (10 + 80 + 7)
    together = JobPlan(
        warm_up_seconds=10.0, settle_seconds=1.0, window_seconds=80.0, blocks=8, rate=4.0, arms=TOGETHER
    )
    assert least_seconds(together, 3) == 97
    assert least_seconds(JobPlan(parts=("sweep",)), 3) == 0
