"""Shadow jobs over the API: who may begin and cancel them, what is refused, what is shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from service.store.load.jobs import JobState, Outlook, end_job
from service.store.load.load_blocks import finish_block, lease_block
from service.store.load.manifest import JobPlan
from service.store.load.turns import Turn, take_turn
from service.store.redis.captures import Captures
from service.store.sql.database import Database
from tests.approval.live import LiveApi, live_api
from tests.store.load.test_job_terms import ladder, terms
from tests.store.load.test_load_blocks import FIGURES, PLAN

JOBS = "/api/v1/shadow-jobs"
BEGIN = "/api/v1/models/m/shadow-jobs"
SHOWN = {**FIGURES, "ttft": {"p95": 0.5}, "tpot": {"p95": 0.02}}


@pytest.fixture
def jobs_api(database: Database, captures: Captures) -> Iterator[LiveApi]:
    with live_api(database, captures, ladder=ladder(), jobs=terms()) as running:
        yield running


@pytest.fixture
def serving_api(database: Database, captures: Captures) -> Iterator[LiveApi]:
    """Its baseline has no capacity of its own for load."""
    own = ladder(shadow=False)
    with live_api(database, captures, ladder=own, jobs=terms(ladders={"m": own})) as running:
        yield running


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def begun(api: LiveApi, **body: Any) -> dict[str, Any]:
    answer = api.client("approve").post(BEGIN, json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_job_is_begun_watched_and_cancelled(jobs_api: LiveApi) -> None:
    job = begun(jobs_api)
    assert (job["state"], job["cause"], job["actor"]) == ("waiting", "request", "test-approve")
    assert job["progress"]["share"] == 0.0
    db, now = jobs_api.db, jobs_api.clock()
    take_turn(db, job["job"], 0, Turn(then=PLAN, outlook=Outlook(blocks=2, seconds=8.0)), now=now)
    block = lease_block(db, job["job"], 0, owner="w", now=now)
    assert block is not None
    assert finish_block(db, block, figures=SHOWN, tokens=90, now=now + 4)
    take_turn(db, job["job"], 1, Turn(then=PLAN, outlook=Outlook(blocks=2, seconds=8.0)), now=now + 4)
    seen = jobs_api.client().get(f"{JOBS}/{job['job']}").json()
    assert (seen["state"], seen["part"]) == ("running", "slo")
    assert (seen["progress"]["share"], seen["progress"]["tokens_spent"]) == (0.5, 90)
    first, second = seen["blocks"]
    assert (first["state"], first["offered"], first["passed"], first["ttft_p95"]) == ("done", 2, 1, 0.5)
    assert (second["state"], second["offered"], second["invalid"]) == ("due", None, None)
    [listed] = jobs_api.client().get(JOBS).json()["jobs"]
    assert listed["job"] == job["job"]
    ended = jobs_api.client("approve").delete(f"{JOBS}/{job['job']}").json()
    assert (ended["state"], ended["reason"]) == ("cancelled", "cancelled by test-approve")
    assert jobs_api.client("approve").delete(f"{JOBS}/{job['job']}").json() == ended


@pytest.mark.parametrize("path", ["/%00", "/%00/manifest", "/%00/report", "?after=%00"])
def test_a_name_that_no_database_holds_is_no_job(jobs_api: LiveApi, path: str) -> None:
    assert code(jobs_api.client("read").get(f"{JOBS}{path}")) == (404, "unknown_job")


def test_one_may_read_and_another_begin(jobs_api: LiveApi) -> None:
    assert code(jobs_api.client("read").post(BEGIN, json={})) == (403, "insufficient_scope")
    assert jobs_api.client().post(BEGIN, json={}).status_code == 401
    job = begun(jobs_api)
    assert code(jobs_api.client("read").delete(f"{JOBS}/{job['job']}")) == (403, "insufficient_scope")
    assert jobs_api.client("read").get(f"{JOBS}/{job['job']}").status_code == 200


def test_one_at_a_time(jobs_api: LiveApi) -> None:
    first = begun(jobs_api)
    answer = jobs_api.client("approve").post(BEGIN, json={})
    assert code(answer) == (409, "job_runs")
    assert first["job"] in answer.json()["hint"]


def test_a_plan_stands_in_for_the_configured_one_as_far_as_it_goes(jobs_api: LiveApi) -> None:
    job = begun(jobs_api, plan={"parts": ["slo"], "rate": 2, "window_seconds": 60})
    told = jobs_api.client().get(f"{JOBS}/{job['job']}/manifest").json()
    assert told["digest"] == job["manifest"]
    assert JobPlan.of(told["manifest"]["plan"]) == JobPlan(parts=("slo",), rate=2.0, window_seconds=60.0)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"plan": {"parts": ["cost"]}}, (422, "invalid_plan")),
        ({"plan": {"blocks": 3}}, (422, "invalid_plan")),
        ({"plan": {"rate": 0}}, (422, "invalid_request")),
        ({"plan": {"speed": 3}}, (422, "invalid_request")),
        ({"manifest": {"format": 0}}, (422, "invalid_manifest")),
        ({"manifest": {}, "plan": {"rate": 3.0}}, (422, "invalid_request")),
        ({"i_own_this_capacity": "yes"}, (422, "invalid_request")),
    ],
)
def test_a_body_that_cannot_be_meant_is_refused(
    body: dict[str, Any], expected: tuple[int, str], jobs_api: LiveApi
) -> None:
    assert code(jobs_api.client("approve").post(BEGIN, json=body)) == expected
    assert jobs_api.client().get(JOBS).json()["jobs"] == []


def test_a_manifest_is_repeated_and_what_differs_is_listed(jobs_api: LiveApi) -> None:
    first = begun(jobs_api, plan={"rate": 2.0})
    manifest = jobs_api.client().get(f"{JOBS}/{first['job']}/manifest").json()["manifest"]
    end_job(jobs_api.db, first["job"], JobState.DONE, reason="", now=jobs_api.clock())
    jobs_api.clock.at += 60
    second = begun(jobs_api, manifest={**manifest, "policy": "of last year"})
    assert (second["cause"], second["differences"]) == ("replay", ["policy: was of last year, is p1"])
    other = jobs_api.client("approve").post(BEGIN, json={"manifest": {**manifest, "model": "n"}})
    assert code(other) == (409, "other_model")


def test_backends_that_serve_are_named_and_only_an_admin_may_load_them(serving_api: LiveApi) -> None:
    refused = serving_api.client("approve").post(BEGIN, json={})
    assert code(refused) == (409, "serving_capacity")
    assert refused.json()["reasons"] == ["bf16: http://a:1 serves clients as m/bf16"]
    own = {"i_own_this_capacity": True}
    assert code(serving_api.client("approve").post(BEGIN, json=own)) == (403, "insufficient_scope")
    assert serving_api.client("admin").post(BEGIN, json=own).json()["i_own_this_capacity"] is True


@pytest.mark.parametrize("path", ["", "/manifest"])
def test_an_unknown_job_is_404(path: str, jobs_api: LiveApi) -> None:
    assert code(jobs_api.client().get(f"{JOBS}/nobody{path}")) == (404, "unknown_job")
    assert code(jobs_api.client("approve").delete(f"{JOBS}/nobody")) == (404, "unknown_job")


def test_an_unknown_model_is_404(jobs_api: LiveApi) -> None:
    answer = jobs_api.client("approve").post("/api/v1/models/x/shadow-jobs", json={})
    assert code(answer) == (404, "unknown_model")
    assert code(jobs_api.client().get(JOBS, params={"model": "x"})) == (404, "unknown_model")
