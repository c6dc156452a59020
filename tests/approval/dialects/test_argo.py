"""Argo Rollouts as it is known to behave, against the example that we ship."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from service.store.redis.captures import Captures
from service.store.sql.database import Database
from tests.approval.dialects.argo_client import (
    ERROR,
    FAILED,
    INCONCLUSIVE,
    RUNNING,
    SUCCESSFUL,
    Metric,
    measure,
    resolved,
    strict,
)
from tests.approval.live import LiveApi, live_api

EXAMPLES = Path(__file__).parents[3] / "deploy" / "examples" / "argo"
TEMPLATE = EXAMPLES / "analysis-template.yaml"
GATE = "/gates/argo/models/org/model/tiers/w8a8"
APPROVAL = "/api/v1/models/org/model/tiers/w8a8/approval"
ARTIFACT = "ab" * 32


@pytest.fixture
def api(sqlite_api: LiveApi) -> LiveApi:
    """What a gate says does not depend on the database."""
    return sqlite_api


def metric_of(api: LiveApi, *, artifact: str = ARTIFACT, url: str | None = None) -> dict[str, Any]:
    args = {"model": "org/model", "tier": "w8a8", "artifact": artifact, "token": api.secrets["read"]}
    return resolved(TEMPLATE, {**args, "tiergate": url or api.url})


def approve(api: LiveApi, **body: Any) -> None:
    answer = api.client("approve").put(APPROVAL, json={"artifact": ARTIFACT, **body})
    assert answer.status_code == 200, answer.text


def test_undecided_evidence_pauses_nothing_and_promotes_nothing(api: LiveApi) -> None:
    api.record("w8a8", clean=3)
    metric = metric_of(api, artifact=ARTIFACT)
    assert measure(metric, api.client()) == INCONCLUSIVE


def test_an_approval_is_success_and_harm_is_failure(api: LiveApi) -> None:
    api.accept("w8a8")
    client, metric = api.client(), metric_of(api)
    assert measure(metric, client) == INCONCLUSIVE  # nobody has approved it yet
    approve(api)
    assert measure(metric, client) == SUCCESSFUL
    api.record("w8a8", harm=60)
    assert measure(metric, client) == FAILED


def test_two_hours_of_inconclusive_are_not_a_success(api: LiveApi) -> None:
    metric = Metric(metric_of(api))
    phases = [metric.assess(INCONCLUSIVE) for _ in range(metric.spec["count"])]
    assert phases[:-1] == [RUNNING] * (metric.spec["count"] - 1)
    assert phases[-1] == INCONCLUSIVE


def test_with_inconclusive_limits_beyond_the_count_argo_would_promote() -> None:
    """The trap that the example's numbers avoid, in the model of the client."""
    careless = Metric({"count": 2, "inconclusiveLimit": 2})
    assert [careless.assess(INCONCLUSIVE) for _ in range(2)] == [RUNNING, SUCCESSFUL]


def test_one_approval_ends_the_wait(api: LiveApi) -> None:
    metric = Metric(metric_of(api))
    assert [metric.assess(phase) for phase in (INCONCLUSIVE, SUCCESSFUL)] == [RUNNING, SUCCESSFUL]


def test_an_outage_neither_promotes_nor_aborts(api: LiveApi) -> None:
    spec = metric_of(api, url="http://127.0.0.1:9")
    metric = Metric(spec)
    with httpx.Client(trust_env=False, timeout=5) as client:
        assert measure(spec, client) == ERROR
    assert {metric.assess(ERROR) for _ in range(1000)} == {RUNNING}
    assert Metric({**spec, "consecutiveErrorLimit": 4}).assess(ERROR) == RUNNING


def test_without_its_database_the_gate_is_an_error_and_no_success(
    sqlite_database: Database, captures: Captures, sqlite_url: str
) -> None:
    with live_api(sqlite_database, captures) as api:
        api.accept("w8a8")
        approve(api)
        metric, client = metric_of(api), api.client()
        assert measure(metric, client) == SUCCESSFUL
        sqlite_database.close()
        path = Path(sqlite_url.removeprefix("sqlite:///"))
        for suffix in ("", "-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        path.write_bytes(b"this is no database" * 500)
        assert measure(metric, client) == ERROR


def test_what_is_no_json_would_be_a_success_so_every_answer_is_json(
    sqlite_database: Database, captures: Captures
) -> None:
    def page(request: Request) -> Response:
        return PlainTextResponse("<html>please log in</html>")

    with live_api(sqlite_database, captures, pages=[Route("/page", page)]) as api:
        metric = metric_of(api)
        client = api.client()
        login = {**metric, "provider": {"web": {**metric["provider"]["web"], "url": f"{api.url}/page"}}}
        assert measure(login, client) == SUCCESSFUL  # the trap, in the model of the client
        for suffix in (
            "",
            "?artifact=" + ARTIFACT,
            "?artifact=",
            "?artefact=" + ARTIFACT,
            "?basis=nothing",
            "/",
        ):
            answer = client.get(GATE + suffix)
            assert strict(answer.text), suffix
            kinds = ("application/json", "application/problem+json")
            assert answer.headers["content-type"].partition(";")[0] in kinds
            assert not answer.is_redirect


@pytest.mark.parametrize(
    "path", [GATE + "?artifact=", GATE + "?artefact=" + ARTIFACT, GATE + "?artifact=latest"]
)
def test_a_parameter_that_binds_nothing_is_refused(shared_api: LiveApi, path: str) -> None:
    answer = shared_api.client("read").get(path)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


def test_an_unknown_tier_is_an_error_that_says_so(shared_api: LiveApi) -> None:
    answer = shared_api.client("read").get("/gates/argo/models/org/model/tiers/w8a9")
    assert answer.status_code == 404
    assert "w8a8" in answer.text


def test_another_artifact_than_the_approved_one_is_not_evaluated(api: LiveApi) -> None:
    api.accept("w8a8")
    approve(api)
    assert measure(metric_of(api), api.client()) == SUCCESSFUL
    other = metric_of(api, artifact="cd" * 32)
    assert measure(other, api.client()) == INCONCLUSIVE
    reason = api.client("read").get(GATE, params={"artifact": "cd" * 32}).json()["data"]["reason"]
    assert reason.startswith("not evaluated")


def test_an_approval_that_expired_is_inconclusive_and_says_when(api: LiveApi) -> None:
    api.accept("w8a8")
    approve(api, expires_in="1h")
    told = api.client("read").get(GATE).json()["data"]
    assert (told["verdict"], told["expires_at"]) == ("approved", "2023-11-14T23:13:20Z")
    api.clock.at += 3601
    told = api.client("read").get(GATE).json()["data"]
    assert (told["verdict"], told["ok"]) == ("inconclusive", False)
    assert "expired at 2023-11-14T23:13:20Z" in told["reason"]


def test_the_evidence_alone_suffices_where_the_pipeline_says_so(api: LiveApi) -> None:
    api.accept("w8a8")
    client = api.client("read")
    assert client.get(GATE).json()["data"]["verdict"] == "inconclusive"
    assert client.get(GATE, params={"basis": "verdict"}).json()["data"]["verdict"] == "approved"


def test_what_argo_keeps_of_an_answer_is_small(shared_api: LiveApi) -> None:
    told = shared_api.client("read").get(GATE)
    assert set(told.json()["data"]) >= {"verdict", "ok", "score", "reason", "evaluation_id", "n_pairs"}
    assert len(told.content) < 800


def test_the_gate_needs_a_token_and_scope_read_is_enough(
    sqlite_database: Database, captures: Captures
) -> None:
    with live_api(sqlite_database, captures, loopback_reads=False) as api:
        assert api.client().get(GATE).status_code == 401
        assert api.client("read").get(GATE).status_code == 200


WEB_FIELDS = {"method", "url", "headers", "body", "jsonBody", "timeoutSeconds", "jsonPath", "insecure"}
METRIC_FIELDS = {
    *("name", "interval", "initialDelay", "count", "successCondition", "failureCondition", "failureLimit"),
    *("inconclusiveLimit", "consecutiveErrorLimit", "consecutiveSuccessLimit", "provider"),
}


def test_the_example_has_only_fields_that_the_resource_has() -> None:
    """The names are those of AnalysisTemplate and Rollout, argoproj.io/v1alpha1 (1.8)."""
    template = yaml.safe_load(TEMPLATE.read_text(encoding="utf-8"))
    assert (template["apiVersion"], template["kind"]) == ("argoproj.io/v1alpha1", "AnalysisTemplate")
    metric = template["spec"]["metrics"][0]
    assert set(metric) <= METRIC_FIELDS
    assert set(metric["provider"]["web"]) <= WEB_FIELDS
    assert all(set(each) == {"key", "value"} for each in metric["provider"]["web"]["headers"])
    rollout = yaml.safe_load((EXAMPLES / "rollout.yaml").read_text(encoding="utf-8"))
    given = {each["name"] for each in rollout["spec"]["strategy"]["canary"]["steps"][1]["analysis"]["args"]}
    asked = {
        each["name"] for each in template["spec"]["args"] if "value" not in each and "valueFrom" not in each
    }
    assert given == asked
