"""Kayenta's standalone analysis: a client that knows yes, no, and "not complete"."""

from __future__ import annotations

from typing import Any

from tests.approval.dialects.argo_client import strict
from tests.approval.live import LiveApi

APPROVAL = "/api/v1/models/org/model/tiers/w8a8/approval"


def test_a_standalone_analysis_is_incomplete_until_it_is_decided_or_over(sqlite_api: LiveApi) -> None:
    api, client = sqlite_api, sqlite_api.client("read")
    config = next(
        each["id"]
        for each in client.get("/gates/kayenta/canaryConfig").json()
        if each["name"] == "org/model@w8a8"
    )
    path = "/gates/kayenta/standalone_canary_analysis"

    def analysis(**asked: Any) -> str:
        thresholds = {"pass": 90, "marginal": 75}
        begun = client.post(f"{path}/{config}", json={"scopes": [], "thresholds": thresholds, **asked})
        assert begun.status_code == 200, begun.text
        return str(begun.json()["canaryAnalysisExecutionId"])

    api.accept("w8a8")
    lasting, bounded = analysis(), analysis(lifetimeDurationMins=10)
    for name in (lasting, bounded):
        told = strict(client.get(f"{path}/{name}").text)
        assert (told["complete"], told["status"]) == (False, "running")
        assert told["canaryAnalysisExecutionResult"] is None
    api.clock.at += 600
    assert not client.get(f"{path}/{lasting}").json()["complete"]
    over = client.get(f"{path}/{bounded}").json()
    assert (over["complete"], over["executionStatus"]) == (True, "SUCCEEDED")
    assert not over["canaryAnalysisExecutionResult"]["didPassThresholds"]
    assert over["canaryAnalysisExecutionResult"]["hasWarnings"]
    assert api.client("approve").put(APPROVAL, json={"artifact": "ab" * 32}).status_code == 200
    done = client.get(f"{path}/{lasting}").json()["canaryAnalysisExecutionResult"]
    assert (done["didPassThresholds"], done["canaryScores"]) == (True, [100])
    other = analysis(scopes=[{"scopeName": "default", "experimentScope": f"sha256:{'cd' * 32}"}])
    told = client.get(f"{path}/{other}").json()
    assert told["complete"]
    assert not told["canaryAnalysisExecutionResult"]["didPassThresholds"]
