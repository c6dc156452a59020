"""The Kayenta facade as Argo Rollouts' provider and orca's tasks are known to call it."""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from service.approval.dialects.judgement import Judgement, State
from service.approval.dialects.kayenta import score_between
from service.store.access import tokens
from tests.approval.dialects.argo_client import (
    ERROR,
    FAILED,
    INCONCLUSIVE,
    SUCCESSFUL,
    Metric,
    resolved,
    strict,
)
from tests.approval.live import LiveApi

EXAMPLES = Path(__file__).parents[3] / "deploy" / "examples" / "kayenta"
TEMPLATE = EXAMPLES / "argo-analysis-template.yaml"
APPROVAL = "/api/v1/models/org/model/tiers/w8a8/approval"
ARTIFACT = "ab" * 32
SUCCEEDED, RUNNING, TERMINAL = "SUCCEEDED", "RUNNING", "TERMINAL"


@pytest.fixture
def api(sqlite_api: LiveApi) -> LiveApi:
    """What a gate says does not depend on the database."""
    return sqlite_api


def metric_of(api: LiveApi, *, config: str = "org/model@w8a8", artifact: str = ARTIFACT) -> dict[str, Any]:
    host = api.url.removeprefix("http://")
    args = {"config": config, "artifact": f"sha256:{artifact}", "host": host, "scheme": "http"}
    return resolved(TEMPLATE, {**args, "token": api.secrets["read"]})


def argo_measures(metric: Mapping[str, Any], client: httpx.Client) -> str:
    """One measurement of Argo's kayenta provider: look the config up, begin, ask once."""
    told = metric["provider"]["kayenta"]
    address, account = told["address"], told["storageAccountName"]
    listed = client.get(
        f"{address}/canaryConfig",
        params={"application": told["application"], "configurationAccountName": account},
    )
    if listed.status_code != 200:
        return ERROR
    found = [each["id"] for each in strict(listed.text) if each["name"] == told["canaryConfigName"]]
    scopes = {
        scope["name"]: {name: scope[name] for name in ("controlScope", "experimentScope")}
        for scope in told["scopes"]
    }
    begun = client.post(
        f"{address}/canary/{found[0] if found else ''}",
        params={
            "application": told["application"],
            "metricsAccountName": told["metricsAccountName"],
            "configurationAccountName": account,
            "storageAccountName": account,
        },
        json={"scopes": scopes, "thresholds": told["threshold"]},
    )
    if begun.status_code != 200:
        return ERROR
    told_of = client.get(f"{address}/canary/{strict(begun.text)['canaryExecutionId']}")
    if told_of.status_code != 200:
        return ERROR
    body = strict(told_of.text)
    if not isinstance(body.get("complete"), bool):
        return ERROR
    score = int(body["result"]["judgeResult"]["score"]["score"])
    if score >= told["threshold"]["pass"]:
        return SUCCESSFUL
    return INCONCLUSIVE if score >= told["threshold"]["marginal"] else FAILED


def orca_monitors(told: Mapping[str, Any], thresholds: Mapping[str, int]) -> str:
    """orca's MonitorKayentaCanaryTask, of one execution."""
    assert {"application", "judgeResult", "canaryExecutionRequest", "canaryDuration"} <= set(told["result"])
    assert re.fullmatch(r"PT\d+S", told["result"]["canaryDuration"])
    score = told["result"]["judgeResult"]["score"]
    assert isinstance(score["score"], int)
    if told["status"].upper() != "SUCCEEDED":
        return RUNNING
    return TERMINAL if score["score"] <= thresholds["marginal"] else SUCCEEDED


def orca_aggregates(score: int, thresholds: Mapping[str, int]) -> str:
    """orca's AggregateCanaryResultsTask, of the last execution."""
    return SUCCEEDED if score >= thresholds["pass"] and score > thresholds["marginal"] else TERMINAL


def approve(api: LiveApi) -> None:
    assert api.client("approve").put(APPROVAL, json={"artifact": ARTIFACT}).status_code == 200


def test_argo_waits_promotes_and_aborts_through_the_facade(api: LiveApi) -> None:
    api.accept("w8a8")
    client, metric = api.client(), metric_of(api)
    assert argo_measures(metric, client) == INCONCLUSIVE
    approve(api)
    assert argo_measures(metric, client) == SUCCESSFUL
    assert argo_measures(metric_of(api, artifact="cd" * 32), client) == INCONCLUSIVE
    api.record("w8a8", harm=60)
    assert argo_measures(metric, client) == FAILED


def test_a_config_that_is_not_there_is_an_error_and_no_success(shared_api: LiveApi) -> None:
    assert argo_measures(metric_of(shared_api, config="org/model@w8a9"), shared_api.client()) == ERROR
    waiting = Metric(metric_of(shared_api))
    assert {waiting.assess(ERROR) for _ in range(100)} == {"Running"}


def test_the_evidence_alone_is_an_account_of_its_own(api: LiveApi) -> None:
    api.accept("w8a8")
    metric = metric_of(api)
    metric["provider"]["kayenta"]["metricsAccountName"] = "verdict"
    metric["provider"]["kayenta"]["scopes"][0]["experimentScope"]["scope"] = "canary"
    assert argo_measures(metric, api.client()) == SUCCESSFUL
    names = [each["name"] for each in api.client("read").get("/gates/kayenta/credentials").json()]
    assert names == ["approval", "verdict"]


def test_orca_reads_the_same_three_states(api: LiveApi) -> None:
    client, thresholds = api.client("read"), {"pass": 90, "marginal": 75}
    config = next(
        each["id"]
        for each in client.get("/gates/kayenta/canaryConfig").json()
        if each["name"] == "org/model@w8a8"
    )

    def execution() -> Any:
        path = f"/gates/kayenta/canary/{config}"
        query = {"application": "llm", "parentPipelineExecutionId": "01H"}
        begun = client.post(path, params=query, json={"scopes": {}, "thresholds": thresholds})
        name = begun.json()["canaryExecutionId"]
        return strict(client.get(f"/gates/kayenta/canary/{name}", params={"storageAccountName": ""}).text)

    api.accept("w8a8")
    waiting = execution()
    assert orca_monitors(waiting, thresholds) == SUCCEEDED  # goes on to the next interval
    assert orca_aggregates(waiting["result"]["judgeResult"]["score"]["score"], thresholds) == TERMINAL
    approve(api)
    done = execution()
    assert orca_monitors(done, thresholds) == SUCCEEDED
    assert orca_aggregates(done["result"]["judgeResult"]["score"]["score"], thresholds) == SUCCEEDED
    assert done["result"]["judgeResult"]["results"][0]["controlMetadata"]["stats"]["count"] == 40
    api.record("w8a8", harm=60)
    assert orca_monitors(execution(), thresholds) == TERMINAL
    cancelled = client.put(f"/gates/kayenta/pipelines/{done['pipelineId']}/cancel", json="")
    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "canceled")


def test_a_token_for_one_model_sees_and_asks_about_that_one(api: LiveApi) -> None:
    api.accept("w8a8")
    for model, phase in (("org/model", INCONCLUSIVE), ("other", ERROR)):
        secret = tokens.create(api.db, name=model, scopes=["read"], now=api.clock(), models=[model])
        metric = metric_of(api)
        told = metric["provider"]["kayenta"]
        told["address"] = told["address"].replace(api.secrets["read"], secret)
        assert argo_measures(metric, api.client()) == phase
        listed = api.client().get(f"{told['address']}/canaryConfig")
        assert listed.status_code == (200 if phase == INCONCLUSIVE else 403)


def test_thresholds_that_leave_no_room_are_refused(shared_api: LiveApi) -> None:
    client = shared_api.client("read")
    config = client.get("/gates/kayenta/canaryConfig").json()[0]["id"]
    for least, marginal in ((90, 89), (75, 90), (2, 0)):
        answer = client.post(
            f"/gates/kayenta/canary/{config}", json={"thresholds": {"pass": least, "marginal": marginal}}
        )
        assert answer.status_code == 422, (least, marginal)


@pytest.mark.parametrize(
    "scopes",
    [
        ["sha256:"],
        ["sha256:" + "a" * 300],
        ["SHA256:" + "ab" * 32],
        ["registry/model@sha256:" + "ab" * 32],
        ["ab" * 32, "cd" * 32],
    ],
)
def test_a_scope_that_is_nearly_a_digest_or_two_of_them_are_refused(
    shared_api: LiveApi, scopes: list[str]
) -> None:
    client = shared_api.client("read")
    config = client.get("/gates/kayenta/canaryConfig").json()[0]["id"]
    body = {
        "scopes": {
            f"s{number}": {"experimentScope": {"scope": scope}} for number, scope in enumerate(scopes)
        },
        "thresholds": {"pass": 90, "marginal": 75},
    }
    assert client.post(f"/gates/kayenta/canary/{config}", json=body).status_code == 422


def test_fields_that_are_null_are_left_out(shared_api: LiveApi) -> None:
    """Kayenta's clients write what they do not say as null, or not at all."""
    client = shared_api.client("read")
    config = client.get("/gates/kayenta/canaryConfig").json()[0]["id"]
    thresholds = {"pass": 90, "marginal": 75}
    for scopes in (None, {"default": {"controlScope": None, "experimentScope": {"scope": None}}}):
        body = {"scopes": scopes, "thresholds": thresholds}
        assert client.post(f"/gates/kayenta/canary/{config}", json=body).status_code == 200
    path = f"/gates/kayenta/standalone_canary_analysis/{config}"
    nothing = {"scopes": None, "lifetimeDurationMins": None}
    assert client.post(path, json={**nothing, "thresholds": thresholds}).status_code == 200
    assert client.post(path, json={**nothing, "thresholds": None}).status_code == 422


def test_an_inconclusive_score_lies_strictly_between_any_thresholds() -> None:
    def found(state: State, score: float) -> Judgement:
        return Judgement(
            state=state,
            reason="because.",
            score=score,
            n_pairs=1,
            evaluation_id="e",
            model="m",
            tier="t",
            artifact=None,
            approved_at=None,
            expires_at=None,
            evidence_age=None,
            settled=False,
        )

    for least in range(3, 101):
        for marginal in range(1, least - 1):
            for score in (75.0, 80.4, 89.0):
                waiting = score_between(
                    found(State.INCONCLUSIVE, score), marginal=marginal, least_to_pass=least
                )
                assert marginal < waiting < least
            assert score_between(found(State.APPROVED, 100), marginal=marginal, least_to_pass=least) >= least
            assert score_between(found(State.REJECTED, 0), marginal=marginal, least_to_pass=least) < marginal


@pytest.mark.parametrize("name", ["x", "eyJ9", "..", "%00", "A" * 1900, "e30"])
def test_an_execution_that_nobody_began_is_unknown(shared_api: LiveApi, name: str) -> None:
    answer = shared_api.client("read").get(f"/gates/kayenta/canary/{name}")
    assert answer.status_code == 404
    assert "unknown_execution" in answer.text or "not_found" in answer.text


def test_an_execution_without_room_between_its_thresholds_was_begun_by_nobody(shared_api: LiveApi) -> None:
    client = shared_api.client("read")
    config = client.get("/gates/kayenta/canaryConfig").json()[0]["id"]
    asked = {"artifact": None, "basis": "approval", "application": "", "at": 1.0}
    for least, marginal in ((0, 0), (0, 100), (90, 89)):
        made_up = {**asked, "config": config, "least_to_pass": least, "marginal": marginal}
        name = urlsafe_b64encode(json.dumps(made_up).encode()).decode().rstrip("=")
        assert client.get(f"/gates/kayenta/canary/{name}").status_code == 404


def test_the_examples_have_only_fields_that_the_tools_have() -> None:
    """Names of Argo Rollouts' KayentaMetric, and of Kayenta's and orca's configuration."""
    told = yaml.safe_load(TEMPLATE.read_text(encoding="utf-8"))["spec"]["metrics"][0]["provider"]["kayenta"]
    assert set(told) == {
        *("address", "application", "canaryConfigName", "metricsAccountName"),
        *("configurationAccountName", "storageAccountName", "threshold", "scopes"),
    }
    assert set(told["threshold"]) == {"pass", "marginal"}
    for scope in told["scopes"]:
        assert set(scope["controlScope"]) == {"scope", "region", "step", "start", "end"}
    for name in ("kayenta", "orca"):
        assert yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8"))["kayenta"]
